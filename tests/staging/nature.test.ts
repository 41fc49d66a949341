import { expect, test } from "vitest";
import { type Decision, isFinal } from "../../src/model/decision.ts";

import { SallyportError } from "../../src/model/errors.ts";
import { stagedIn } from "../../src/store/conformance/samples.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { manualTimers } from "../support/manual-timers.ts";
import { diffOf, NO, scripted, scriptedGuard, stagingOver } from "../support/staging.ts";

const YEAR = 365 * 24 * 3_600_000;

forEachStore("the staging engine", (open) => {
  test("keeps no state: a second one over the same store goes on where the first stopped [S0-55]", async () => {
    const store = await open();
    const { id } = await stagingOver(store).stage("session-1", diffOf());
    expect((await stagingOver(store).validateTech(id)).state).toBe("pending_ml");
    expect((await stagingOver(store).validateBiz(id)).state).toBe("approved");
    expect((await stagingOver(store).markExecuted(id, "proof")).state).toBe("executed");
    expect((await stagingOver(store).get(id)).techVerdict.validator).toBe("tech-v");
  });

  test("serves many callers at once, each getting its own answer [S0-56]", async () => {
    const store = await open();
    const tech = {
      name: "odd-refused",
      review: ({ metadata }: { metadata: { n?: number } }) =>
        scripted("odd-refused", { approved: Number(metadata.n) % 2 === 0 }).review(diffOf()),
    };
    const staging = stagingOver(store, { tech });
    const ends = await Promise.all(
      Array.from({ length: 40 }, async (_, n) => {
        const { id } = await staging.stage(`session-${n % 4}`, diffOf({ metadata: { n } }));
        const reviewed = await staging.validateTech(id);
        if (reviewed.state !== "pending_ml") return reviewed;
        await staging.validateBiz(id);
        return n % 4 === 0 ? staging.markExecuted(id, n) : staging.markFailed(id, `no ${n}`);
      }),
    );
    for (const [n, { state, diff, executionProof }] of ends.entries()) {
      expect(diff.metadata["n"]).toBe(n);
      const expected = n % 2 === 1 ? "rejected_tech" : n % 4 === 0 ? "executed" : "failed";
      expect(state).toBe(expected);
      expect(executionProof).toBe(state === "executed" ? n : undefined);
    }
    expect((await staging.list()).every(({ state }) => isFinal(state))).toBe(true);
  });

  test("two reviews racing on one record: one is stored, the other is an illegal transition [S0-57]", async () => {
    const store = await open();
    const bothAsked = Promise.withResolvers<void>();
    let asked = 0;
    const meet = async () => {
      asked += 1;
      if (asked === 2) bothAsked.resolve();
      await bothAsked.promise;
    };
    const raced = (name: string, approved: boolean) =>
      stagingOver(store, {
        tech: scripted(name, async () => {
          await meet();
          return { ...NO, approved, score: 0, policyVersion: "", validator: name };
        }),
      });
    const { id } = await stagedIn("pending_tech", store);
    const outcomes = await Promise.allSettled([
      raced("one", true).validateTech(id),
      raced("two", false).validateTech(id),
    ]);
    expect(asked, "both got as far as the review").toBe(2);
    const [won] = outcomes.filter((one) => one.status === "fulfilled");
    const [lost] = outcomes.filter((one) => one.status === "rejected");
    expect(lost?.reason).toBeInstanceOf(SallyportError);
    expect(lost?.reason).toMatchObject({ code: "illegal_transition" });
    expect(await store.decisions.get(id)).toEqual(won?.value);
    expect((await store.engine.head("acme")).seq, "it moved once").toBe(2);
  });

  test("never drives the last arc: an approved record stays so for years [S0-58]", async () => {
    const store = await open();
    const timers = manualTimers(store.clock);
    const staging = stagingOver(store, { timers });
    const { id } = await staging.stage("session-1", diffOf());
    await staging.validateTech(id);
    const approved = await staging.validateBiz(id);
    expect(timers.open, "nothing waits").toBe(0);
    await timers.advance(10 * YEAR);
    expect(await staging.get(id)).toEqual(approved);
    expect(await staging.listStuck("approved", 10 * YEAR)).toEqual([approved]);
  });

  test("outcomes are seen only by asking: nobody is called when a record is closed [S0-59]", async () => {
    const store = await open();
    const [tech, business, guard] = [scripted("t"), scripted("b"), scriptedGuard(true)];
    const staging = stagingOver(store, { tech, business, guard });
    const { id } = await stagedIn("approved", store);
    await staging.markExecuted(id, "proof");
    await staging.markExecuted(id, "again");
    expect([tech.seen, business.seen, guard.asked]).toEqual([[], [], []]);
    expect((await stagingOver(store).list({ states: ["executed"] })).map((one) => one.id)).toEqual([
      id,
    ]);
  });

  test("the guard is not asked on the last arc [S0-75 S0-74]", async () => {
    const store = await open();
    const guard = scriptedGuard(false);
    const staging = stagingOver(store, { guard });
    const [one, other] = [await stagedIn("approved", store), await stagedIn("approved", store)];
    expect((await staging.markExecuted(one.id, "proof")).state).toBe("executed");
    expect((await staging.markFailed(other.id, "reason")).state).toBe("failed");
    expect(guard.asked).toEqual([]);
  });

  test("a session id alone gives its trail in order and the records to cancel or roll back [S0-92]", async () => {
    const store = await open();
    const staging = stagingOver(store);
    const made: Decision[] = [];
    for (const session of ["session-1", "session-2", "session-1", "session-1"]) {
      made.push(await staging.stage(session, diffOf()));
      store.clock.advance(1_000);
    }
    const [a, , c, d] = made.map(({ id }) => id);
    await staging.validateTech(c ?? "");
    await staging.validateTech(a ?? "");
    await staging.validateBiz(a ?? "");
    await staging.markExecuted(a ?? "", "proof");
    const entries = await store.store.tenant("acme").audit.read({ after: 0, limit: 100 });
    const trail = entries.filter(({ session }) => session === "session-1");
    expect(trail.map(({ type, subject }) => [type, subject])).toEqual([
      ["decision.staged", a],
      ["decision.staged", c],
      ["decision.staged", d],
      ["decision.reviewed", c],
      ["decision.reviewed", a],
      ["decision.reviewed", a],
      ["decision.executed", a],
    ]);
    const records = await staging.listBySession("session-1");
    expect(records.map(({ id }) => id)).toEqual([a, c, d]);
    const toCancel = records.filter(({ state }) => !isFinal(state)).map(({ id }) => id);
    const toRollBack = records.filter(({ state }) => state === "executed").map(({ id }) => id);
    expect([toCancel, toRollBack]).toEqual([[c, d], [a]]);
  });
});
