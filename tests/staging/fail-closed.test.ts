import { describe, expect, test } from "vitest";
import { type Decision, TIERS } from "../../src/model/decision.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { manualTimers } from "../support/manual-timers.ts";
import { atTier, scripted, scriptedGuard, stagingOver } from "../support/staging.ts";

const yes = {
  approved: true,
  score: 1,
  reason: "",
  severity: "",
  validator: "v",
  policyVersion: "",
} as const;

const fails = (error: unknown) => () => {
  throw error;
};

/** What a validator may do instead of giving a verdict. */
const BROKEN: readonly (readonly [string, () => unknown, string])[] = [
  ["throws", fails(new Error("disk on fire")), "disk on fire"],
  ["rejects", () => Promise.reject(new Error("model down")), "model down"],
  ["throws a text", fails("just text"), "just text"],
  ["throws nothing", fails(undefined), "undefined"],
  ["throws what cannot be described", fails(Object.create(null)), ""],
  ["throws an error that looks like a yes", fails(Object.assign(new Error("no!"), yes)), "no!"],
  [
    "answers with an error that looks like a yes",
    () => Object.assign(new Error("no!"), yes),
    "no!",
  ],
  ["answers nothing", () => undefined, ""],
  ["answers true", () => true, ""],
  ["answers with a truthy approval", () => ({ ...yes, approved: "yes" }), "approved"],
  ["answers with half a verdict", () => ({ approved: true }), ""],
  ["answers with a score that is none", () => ({ ...yes, score: Number.NaN }), "score"],
];

forEachStore("a broken validator", (open) => {
  describe.each(["tech", "business"] as const)("of the %s tier", (tier) => {
    const { no, field } = TIERS[tier];
    const row = tier === "tech" ? "S0-33" : "S0-47";

    test(`rejects the record in its name, and the call succeeds [${row} S0-34 S0-35]`, async () => {
      const store = await open();
      for (const [what, answer, said] of BROKEN) {
        const { id, guard, review } = await atTier(tier, async () => store, answer);
        const rejected = await review();
        expect(rejected.state, what).toBe(no);
        expect(rejected[field], what).toMatchObject({
          approved: false,
          severity: "block",
          validator: `${tier}-v`,
        });
        expect(rejected[field].reason, what).toContain(said);
        expect(await store.decisions.get(id), what).toEqual(rejected);
        expect(guard.asked, `S0-36 ${what}`).toEqual([]);
      }
    });

    test(`one that hangs is rejected when its time is over, and a late yes changes nothing [${row}]`, async () => {
      const asked = Promise.withResolvers<void>();
      const late = Promise.withResolvers<unknown>();
      const hang = () => {
        asked.resolve();
        return late.promise;
      };
      const { store, id, review, timers } = await timed(tier, hang);
      const reviewing = review();
      await asked.promise;
      await timers.advance(59_999);
      expect((await store.decisions.get(id)).state).toBe(TIERS[tier].from);
      await timers.advance(1);
      const rejected = await reviewing;
      expect(rejected.state).toBe(no);
      expect(rejected[field].reason).toContain("60000");
      late.resolve({ ...yes });
      await timers.advance(1);
      expect(await store.decisions.get(id), "S0-34 the error wins").toEqual(rejected);
      expect(timers.open).toBe(0);
    });

    test(`one that hangs is told to stop [${row}]`, async () => {
      const { promise: stopped, resolve } = Promise.withResolvers<unknown>();
      const asked = Promise.withResolvers<void>();
      const hanging = {
        name: `${tier}-v`,
        review(_diff: unknown, { signal }: { signal: AbortSignal }) {
          signal.addEventListener("abort", () => resolve(signal.reason));
          asked.resolve();
          return new Promise<never>(() => {});
        },
      };
      const { review, timers } = await timed(tier, {}, { [tier]: hanging });
      const reviewing = review();
      await asked.promise;
      await timers.advance(60_000);
      expect((await reviewing).state).toBe(no);
      expect(await stopped).toMatchObject({ name: "TimeoutError" });
    });
  });

  async function timed(
    tier: "tech" | "business",
    answer: Parameters<typeof atTier>[2],
    over: Parameters<typeof atTier>[3] = {},
  ) {
    const store = await open();
    const timers = manualTimers(store.clock);
    return { ...(await atTier(tier, async () => store, answer, { timers, ...over })), timers };
  }
});

forEachStore("a validator that answers yes and then the guard", (open) => {
  test("the guard is asked after the verdict exists and before anything is stored [S0-37]", async () => {
    const order: string[] = [];
    const store = await open();
    const watched = {
      ...store,
      decisions: {
        ...store.decisions,
        updateTechVerdict: (...args: Parameters<typeof store.decisions.updateTechVerdict>) => {
          order.push("stored");
          return store.decisions.updateTechVerdict(...args);
        },
      },
    };
    const tech = scripted("tech-v", () => {
      order.push("reviewed");
      return yes;
    });
    const guard = scriptedGuard(() => {
      order.push("asked");
      return true;
    });
    const { stage, validateTech } = stagingOver(watched, {
      tech,
      guard,
    });
    const { id } = await stage("session-1", {
      sourceTool: "t",
      raw: new Uint8Array(),
      metadata: {},
    });
    await validateTech(id);
    expect(order).toEqual(["reviewed", "asked", "stored"]);
  });

  test("a guard that scribbles on what it is shown changes nothing of what is stored [S0-38]", async () => {
    const vandal = {
      allows({ techVerdict, diff }: Decision) {
        Object.assign(techVerdict, { approved: false, reason: "scribbled" });
        diff.raw.fill(0);
        return true;
      },
    };
    const { store, id, review } = await atTier("tech", open, { reason: "mine" }, { guard: vandal });
    const before = await store.decisions.get(id);
    const moved = await review();
    expect(moved.state).toBe("pending_ml");
    expect(moved.techVerdict.reason).toBe("mine");
    expect(moved.diff).toEqual(before.diff);
  });
});
