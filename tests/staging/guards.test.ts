import { describe, expect, test } from "vitest";
import { tenantDenyGuard, waitsForUpstreamGuard } from "../../src/gate/review.ts";
import { TIERS } from "../../src/model/decision.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { manualTimers } from "../support/manual-timers.ts";
import { atTier, diffOf, refusal, scriptedGuard, stagingOver } from "../support/staging.ts";

const fault = new Error("the upstream list is unreachable");
/** Everything that is not a plain yes. */
const NOT_YES: readonly (readonly [string, () => unknown, boolean])[] = [
  ["says no", () => false, false],
  ["says no later", () => Promise.resolve(false), false],
  [
    "throws",
    () => {
      throw fault;
    },
    true,
  ],
  ["rejects", () => Promise.reject(fault), true],
  ["answers with an error", () => fault, false],
  ["says nothing", () => undefined, false],
  ["says 1", () => 1, false],
  ["says yes in words", () => "true", false],
];

forEachStore("a guard", (open) => {
  describe.each(["tech", "business"] as const)("of the %s tier", (tier) => {
    const { yes } = TIERS[tier];
    const row = tier === "tech" ? "S0-39" : "S0-48";

    test(`that says anything but yes: denied, and nothing is stored [${row} S0-40 S0-41]`, async () => {
      const store = await open();
      for (const [what, answer, hasCause] of NOT_YES) {
        const guard = scriptedGuard(answer);
        const { id, review } = await atTier(tier, async () => store, {}, { guard });
        const before = await store.decisions.get(id);
        const trail = await store.engine.head("acme");
        store.clock.advance(10);
        const error = await refusal("dependency_denied", review());
        expect(await store.decisions.get(id), what).toEqual(before);
        expect(await store.engine.head("acme"), what).toEqual(trail);
        expect(error.cause, `${what}: its own error stays reachable`).toBe(
          hasCause ? fault : undefined,
        );
        expect(error.retry, "S0-101").toBe("later");
      }
    });

    test(`that hangs: denied when its time is over, and a late yes changes nothing [${row} S0-40]`, async () => {
      const asked = Promise.withResolvers<void>();
      const late = Promise.withResolvers<boolean>();
      const guard = scriptedGuard(() => {
        asked.resolve();
        return late.promise;
      });
      const store = await open();
      const timers = manualTimers(store.clock);
      const { id, review } = await atTier(tier, async () => store, {}, { guard, timers });
      const before = await store.decisions.get(id);
      const reviewing = refusal("dependency_denied", review());
      await asked.promise;
      await timers.advance(60_000);
      expect((await reviewing).cause).toMatchObject({ name: "TimeoutError" });
      late.resolve(true);
      await timers.advance(1);
      expect(await store.decisions.get(id)).toEqual(before);
      expect(timers.open).toBe(0);
    });

    test("after a denial the call can be repeated; it reviews again and moves on [S0-42 S0-101]", async () => {
      const guard = scriptedGuard(false, true);
      const { store, id, validator, review } = await atTier(tier, open, {}, { guard });
      await refusal("dependency_denied", review());
      store.clock.advance(10);
      expect((await review()).state).toBe(yes);
      expect(validator.seen).toHaveLength(2);
      expect(guard.asked).toHaveLength(2);
      expect((await store.decisions.get(id)).state).toBe(yes);
    });
  });

  test("decides by rules of its own from record and target, a different one per move [S0-106]", async () => {
    const guard = {
      allows: ({ metadata }: { metadata: object }, target: string) =>
        target !== "approved" || "signed" in metadata,
    };
    const store = await open();
    const staging = stagingOver(store, { guard });
    const unsigned = await staging.stage("session-1", diffOf({ metadata: {} }));
    const signed = await staging.stage("session-1", diffOf({ metadata: { signed: 1 } }));
    for (const { id } of [unsigned, signed]) await staging.validateTech(id);
    await refusal("dependency_denied", staging.validateBiz(unsigned.id));
    expect((await staging.validateBiz(signed.id)).state).toBe("approved");
  });

  test("a tenant block list works for records staged through the engine [S0-108]", async () => {
    const blocked: Record<string, boolean> = { acme: true };
    const store = await open();
    const staging = stagingOver(store, { guard: tenantDenyGuard(blocked) });
    const { id } = await staging.stage("session-1", diffOf({ metadata: { tenant: "acme" } }));
    await refusal("dependency_denied", staging.validateTech(id));
    blocked["acme"] = false;
    expect((await staging.validateTech(id)).state).toBe("pending_ml");
  });

  test("waiting for an upstream record: denied first, allowed once the upstream is executed [S0-113]", async () => {
    const store = await open();
    const read = (id: string) => store.decisions.get(id);
    const staging = stagingOver(store, { guard: waitsForUpstreamGuard({ read }) });
    const upstream = await staging.stage("session-1", diffOf());
    const metadata = { upstream: [upstream.id] };
    const { id } = await staging.stage("session-1", diffOf({ metadata }));
    await refusal("dependency_denied", staging.validateTech(id));
    await staging.validateTech(upstream.id);
    await staging.validateBiz(upstream.id);
    await refusal("dependency_denied", staging.validateTech(id));
    expect((await staging.get(id)).state).toBe("pending_tech");
    await staging.markExecuted(upstream.id, "done");
    expect((await staging.validateTech(id)).state).toBe("pending_ml");
    expect((await staging.validateBiz(id)).state).toBe("approved");
  });

  test("an upstream that failed or is unknown keeps it denied, with the reason as cause [S0-113]", async () => {
    const store = await open();
    const read = async (id: string) => (id === "unknown" ? undefined : store.decisions.get(id));
    const staging = stagingOver(store, { guard: waitsForUpstreamGuard({ read }) });
    const upstream = await staging.stage("session-1", diffOf());
    await store.decisions.updateTechVerdict(upstream.id, {
      approved: false,
      score: 0,
      reason: "no",
      severity: "block",
      validator: "v",
      policyVersion: "",
    });
    for (const named of [upstream.id, "unknown"]) {
      const { id } = await staging.stage("session-1", diffOf({ metadata: { upstream: named } }));
      const error = await refusal("dependency_denied", staging.validateTech(id));
      expect(error.cause).toBeInstanceOf(Error);
    }
  });
});
