import { describe, expect, test } from "vitest";
import { DECISION_STATES, NO_VERDICT, TIERS } from "../../src/model/decision.ts";
import { START } from "../../src/store/conformance/index.ts";
import { stagedIn } from "../../src/store/conformance/samples.ts";
import { toIso } from "../../src/util/clock.ts";
import { forEachStore } from "../support/for-each-store.ts";
import {
  atTier,
  NO,
  refusal,
  reviewOf,
  scripted,
  scriptedGuard,
  stagingOver,
} from "../support/staging.ts";

/** Row ids per tier: the business tier's rows say "the same as the tech tier's". */
const ROWS = {
  tech: { moves: "S0-28", not: "S0-31", fails: "S0-33", guard: "S0-37" },
  business: { moves: "S0-46", not: "S0-49", fails: "S0-47", guard: "S0-48" },
} as const;

forEachStore("review", (open) => {
  describe.each(["tech", "business"] as const)("%s", (tier) => {
    const { from, yes, no, field } = TIERS[tier];
    const rows = ROWS[tier];

    test(`an approving verdict moves ${from} to ${yes} and is written with it [${rows.moves} S0-29]`, async () => {
      const { store, id, review } = await atTier(tier, open, { severity: "", score: 0.7 });
      store.clock.advance(5);
      const moved = await review();
      expect(moved.state).toBe(yes);
      expect(moved[field]).toMatchObject({ approved: true, score: 0.7, validator: `${tier}-v` });
      expect(moved.updatedAt).toBe(toIso(START + 5));
      expect(await store.decisions.get(id)).toEqual(moved);
    });

    test(`a refusing verdict moves ${from} to ${no} and is written with it [${rows.moves} S0-29]`, async () => {
      const { store, id, review } = await atTier(tier, open, NO);
      const moved = await review();
      expect(moved.state).toBe(no);
      expect(moved[field]).toMatchObject({ ...NO, validator: `${tier}-v` });
      expect(await store.decisions.get(id)).toEqual(moved);
    });

    test("an unknown id is not_found, and nobody is asked [S0-30 S0-32]", async () => {
      const { staging, validator, guard } = await atTier(tier, open);
      await refusal("not_found", reviewOf(staging, tier, "no-such-id"));
      expect(validator.seen).toEqual([]);
      expect(guard.asked).toEqual([]);
    });

    test(`any other state is an illegal transition: nobody is asked, nothing changes [${rows.not} S0-32 S0-49]`, async () => {
      const { store, staging, validator, guard } = await atTier(tier, open);
      for (const state of DECISION_STATES.filter((one) => one !== from)) {
        const before = await stagedIn(state, store);
        store.clock.advance(1);
        await refusal("illegal_transition", reviewOf(staging, tier, before.id));
        expect(await store.decisions.get(before.id)).toEqual(before);
      }
      expect(validator.seen).toEqual([]);
      expect(guard.asked).toEqual([]);
    });

    test("only the approved flag decides: approved with a warning goes on and keeps it [S0-43]", async () => {
      const { review } = await atTier(tier, open, { severity: "warn", reason: "hmm" });
      const moved = await review();
      expect(moved.state).toBe(yes);
      expect(moved[field]).toMatchObject({ severity: "warn", reason: "hmm" });
    });

    test("not approved with a mere warning and a high score is still a no [S0-43 S0-52]", async () => {
      const { review } = await atTier(tier, open, { approved: false, severity: "warn", score: 1 });
      expect((await review()).state).toBe(no);
    });

    test("a verdict without a validator's name is stamped with that name [S0-45]", async () => {
      const { review } = await atTier(tier, open, { validator: "" });
      const moved = await review();
      expect(moved.state, "it is a verdict like any other").toBe(yes);
      expect(moved[field]).toMatchObject({ approved: true, validator: `${tier}-v` });
    });

    test("a name that the verdict brings along is kept [S0-45]", async () => {
      const { review } = await atTier(tier, open, { validator: "model-7" });
      expect((await review())[field].validator).toBe("model-7");
    });

    test("a refusal does not ask the guard, whatever it would have done [S0-36]", async () => {
      for (const answer of [false, thrown("guard"), () => new Promise(() => {})] as const) {
        const guard = scriptedGuard(answer);
        const { review } = await atTier(tier, open, NO, { guard });
        expect((await review()).state).toBe(no);
        expect(guard.asked).toEqual([]);
      }
    });

    test(`an approval asks it once, with the fresh verdict, in the old state, for ${yes} [${rows.guard} S0-38]`, async () => {
      const { store, id, guard, review } = await atTier(tier, open, { reason: "fresh" });
      const before = await store.decisions.get(id);
      await review();
      const [question, ...more] = guard.asked;
      expect(more).toEqual([]);
      expect(question?.target).toBe(yes);
      expect(question?.decision).toEqual({
        ...before,
        [field]: expect.objectContaining({ reason: "fresh", validator: `${tier}-v` }),
      });
      expect(question?.decision.state).toBe(from);
    });
  });

  test("the business verdict leaves the tech verdict untouched [S0-50]", async () => {
    const store = await open();
    const tech = scripted("tech-v", { severity: "warn", reason: "large", score: 0.3 });
    const staging = stagingOver(store, { tech });
    const { id } = await stagedIn("pending_tech", store);
    const first = await staging.validateTech(id);
    expect(first.bizVerdict).toEqual(NO_VERDICT);
    const second = await staging.validateBiz(id);
    expect(second.techVerdict).toEqual(first.techVerdict);
    expect(second.bizVerdict.validator).toBe("biz-v");
  });

  test("a warning of the tech tier is still readable on the approved record [S0-44]", async () => {
    const store = await open();
    const tech = scripted("tech-v", { severity: "warn", reason: "unusually large" });
    const staging = stagingOver(store, { tech });
    const { id } = await stagedIn("pending_tech", store);
    await staging.validateTech(id);
    await staging.validateBiz(id);
    const { state, techVerdict } = await staging.get(id);
    expect([state, techVerdict.reason]).toEqual(["approved", "unusually large"]);
  });

  test("one and the same validator can serve both tiers [S0-51]", async () => {
    const store = await open();
    const both = scripted("both");
    const staging = stagingOver(store, { tech: both, business: both });
    const { id } = await stagedIn("pending_tech", store);
    await staging.validateTech(id);
    expect((await staging.validateBiz(id)).state).toBe("approved");
    expect(both.seen).toHaveLength(2);
  });
});

function thrown(message: string) {
  return () => {
    throw new Error(message);
  };
}
