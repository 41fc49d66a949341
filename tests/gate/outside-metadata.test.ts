// The metadata of what others stage is theirs: whatever its keys are called, the gate reads nothing out of it.

import { expect, test } from "vitest";
import { allowAlways, createStaging } from "../../src/gate/review.ts";
import { newDraft } from "../../src/model/decision.ts";
import { openHttp } from "../http/http-world.ts";
import { type InboxWorld, onStores, set, yes } from "../interactions/inbox-world.ts";
import { AGENT, decisionIdOf, PERSON, TENANT } from "../support/port-world.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

const LEASE_MS = 1_000;
/** Every key under which the gate keeps facts of its own. */
const KEYS = {
  facts: { invoice: 7 },
  requester: "agent:forged",
  chain: ["agent:forged"],
  owner: "person:forged",
  messageId: "m-9",
  claim: { id: "t", fence: 1 },
  keys: [{ key: "k", step: 0 }],
};
const DIFFS = {
  opaque: new TextEncoder().encode("not JSON at all"),
  calls: new TextEncoder().encode('{"calls":[],"v":1}'),
};

function stagingOf({ gate, clock }: Pick<InboxWorld, "gate" | "clock">) {
  return createStaging({
    store: gate.decisions,
    tech: sampleVerdictValidator("schema"),
    business: sampleVerdictValidator("limits"),
    guard: allowAlways,
    clock,
  });
}

onStores(
  "outside metadata",
  (open) => {
    for (const [form, raw] of Object.entries(DIFFS)) {
      test(`recovery leaves decisions alone that another platform staged with the gate's keys, ${form} [B2]`, async () => {
        const world = await open({ leaseMs: LEASE_MS });
        const staging = stagingOf(world);
        for (const metadata of [KEYS, { facts: { invoice: 7 } }, { facts: {} }]) {
          const diff = { sourceTool: "erp", raw, metadata };
          await staging.stage("outside", diff);
          await staging.validateTech((await staging.stage("outside", diff)).id);
          const { id } = await staging.stage("outside", diff);
          await staging.validateTech(id);
          await staging.validateBiz(id);
        }
        const before = await world.gate.decisions.list();
        world.clock.advance(5 * LEASE_MS);
        expect(await world.gate.recover()).toEqual({
          operations: [],
          decisions: [],
          proposals: [],
          left: [],
        });
        expect(await world.gate.decisions.list()).toEqual(before);
      });
    }

    test("a replay of a standing rule passes over what another platform staged with the gate's keys [B2]", async () => {
      const world = await open();
      const diff = { sourceTool: "erp", raw: DIFFS.opaque, metadata: KEYS };
      await stagingOf(world).stage("outside", diff);
      const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
      await yes(world.gate, decisionIdOf(await session.call(set("a", 1))));
      const pattern = { key: { oneOf: ["a"] } };
      const replay = await world.gate.standingRules.replay({ tool: "world.set", pattern });
      expect(JSON.stringify(replay)).not.toContain("forged");
    });

    test("nobody stages as the gate through the port's own list of decisions [B2]", async () => {
      const world = await open({ leaseMs: LEASE_MS });
      const diff = { sourceTool: "erp", raw: DIFFS.opaque, metadata: KEYS };
      const draft = newDraft("outside", diff, "2026-11-15T06:00:00.000Z");
      const { id } = await world.gate.decisions.stage({ ...draft, origin: "port" });
      world.clock.advance(5 * LEASE_MS);
      await world.gate.recover();
      const stored = await world.gate.decisions.get(id);
      expect(stored).toMatchObject({ state: "pending_tech" });
      expect(stored.origin).toBeUndefined();
    });
  },
  ["memory", "sqlite", "postgres"],
);

test("a list of sessions names nobody that only the metadata of another platform names [B2]", async () => {
  const world = await openHttp();
  const diff = { sourceTool: "erp", raw: DIFFS.opaque, metadata: KEYS };
  const { decisions } = world.store.tenant(TENANT);
  await decisions.stage(newDraft("outside", diff, "2026-11-15T06:00:00.000Z"));
  const auditor = await world.client("acme", "admin", PERSON);
  const { items } = await auditor.sessions.list();
  expect(items).toMatchObject([{ id: "outside", agent: "unknown", owner: "" }]);
});
