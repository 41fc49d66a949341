import assert from "node:assert/strict";
import { DECISION_STATES, type DecisionState } from "../../model/decision.ts";
import { MAX_LIST } from "../../model/record.ts";
import { toIso } from "../../util/clock.ts";
import { cases, type DecisionHarness } from "./case.ts";
import { ids, NOWHERE, refuses, START, sampleDraft, stagedIn, together, YES } from "./samples.ts";

/** Five records a second apart, in two sessions and four states; each was last touched when it was made. */
async function five(harness: DecisionHarness): Promise<readonly string[]> {
  const made: string[] = [];
  const plan = [
    ["pending_tech", "session-1"],
    ["approved", "session-2"],
    ["pending_ml", "session-1"],
    ["approved", "session-1"],
    ["rejected_tech", "session-2"],
  ] as const;
  for (const [state, sessionId] of plan) {
    made.push((await stagedIn(state, harness, sampleDraft({ sessionId }))).id);
    harness.clock.advance(1_000);
  }
  return made;
}

/** get, list and listBySession. */
export const decisionQueryCases = cases<DecisionHarness>((test) => {
  test("get: a known id gives its record, any other not_found [S0-81 S0-30]", async (harness) => {
    const { decisions } = harness;
    const staged = await stagedIn("approved", harness);
    assert.deepEqual(await decisions.get(staged.id), staged);
    const unknown = [NOWHERE, "", ` ${staged.id}`, `${staged.id}0`, "%", "x".repeat(2_000)];
    for (const id of unknown) await refuses("not_found", () => decisions.get(id), `get ${id}`);
  });
  test("get: an id with a NUL or half a character in it is not_found, and disturbs no other reader", async (harness) => {
    const { decisions } = harness;
    const { id } = await decisions.stage(sampleDraft());
    for (const odd of ["a\u0000b", "\ud800"]) {
      const [found] = await Promise.all([
        decisions.get(id),
        refuses("not_found", () => decisions.get(odd), "get"),
      ]);
      assert.equal(found.id, id);
      await refuses("not_found", () => decisions.markExecuted(odd, 1), "markExecuted");
    }
  });
  test("list: in ascending order of creation, whatever happened to the records since [S0-82]", async (harness) => {
    const made = await five(harness);
    await harness.decisions.markExecuted(made[1] ?? "", "proof");
    const listed = await harness.decisions.list();
    assert.deepEqual(ids(listed), made);
    const times = listed.map(({ createdAt }) => createdAt);
    assert.deepEqual(times, times.toSorted());
  });
  test("list: creation times ascend also when the clock stepped back in between [S0-82]", async (harness) => {
    const { decisions, clock } = harness;
    const first = await decisions.stage(sampleDraft());
    clock.set(START - 60_000);
    const second = await decisions.stage(sampleDraft());
    const listed = await decisions.list();
    assert.deepEqual(ids(listed), [first.id, second.id]);
    assert.ok(second.createdAt >= first.createdAt);
  });
  test("list: records of the same instant keep the order in which they were staged [S0-83]", async (harness) => {
    const { decisions } = harness;
    const staged = await together(30, (index) =>
      decisions.stage(sampleDraft({}, { metadata: { index } })),
    );
    assert.equal(new Set(staged.map(({ createdAt }) => createdAt)).size, 1);
    const order = (await decisions.list()).map(({ diff }) => diff.metadata["index"]);
    assert.deepEqual(
      order,
      Array.from({ length: 30 }, (_, index) => index),
    );
  });
  test("list: an empty query and a zero limit match everything up to the store's ceiling [S0-84 S0-88]", async (harness) => {
    const { decisions } = harness;
    await together(MAX_LIST + 5, (index) =>
      decisions.stage(sampleDraft({}, { metadata: { index } })),
    );
    for (const query of [undefined, {}, { limit: 0 }, { limit: -1 }, { limit: MAX_LIST + 4 }]) {
      const listed = await decisions.list(query);
      assert.equal(listed.length, MAX_LIST);
      assert.equal(listed[0]?.diff.metadata["index"], 0, "S0-89 the earliest");
    }
  });
  test("list: the session filter keeps one session; an empty one does not filter [S0-85]", async (harness) => {
    const [a, b, c, d, e] = await five(harness);
    const { decisions } = harness;
    assert.deepEqual(ids(await decisions.list({ sessionId: "session-1" })), [a, c, d]);
    assert.deepEqual(ids(await decisions.list({ sessionId: "session-2" })), [b, e]);
    assert.deepEqual(ids(await decisions.list({ sessionId: "session" })), []);
    assert.deepEqual(ids(await decisions.list({ sessionId: "" })), [a, b, c, d, e]);
  });
  test("list: the states filter keeps any of the listed; an empty list does not filter [S0-86]", async (harness) => {
    const [a, b, c, d, e] = await five(harness);
    const { decisions } = harness;
    assert.deepEqual(ids(await decisions.list({ states: ["approved"] })), [b, d]);
    assert.deepEqual(ids(await decisions.list({ states: ["rejected_tech", "pending_ml"] })), [
      c,
      e,
    ]);
    assert.deepEqual(ids(await decisions.list({ states: ["executed"] })), []);
    assert.deepEqual(ids(await decisions.list({ states: [] })), [a, b, c, d, e]);
    assert.equal((await decisions.list({ states: DECISION_STATES })).length, 5);
  });
  test("list: since compares the update time and includes the exact moment; empty does not filter [S0-87]", async (harness) => {
    const [a, b, c, d, e] = await five(harness);
    const { decisions, clock } = harness;
    clock.set(START + 10_000);
    await decisions.updateTechVerdict(a ?? "", YES);
    const since = async (ms: number) => ids(await decisions.list({ since: toIso(START + ms) }));
    assert.deepEqual(await since(0), [a, b, c, d, e]);
    assert.deepEqual(
      await since(2_000),
      [a, c, d, e],
      "the first was created before, updated after",
    );
    assert.deepEqual(await since(4_000), [a, e], "the exact moment counts");
    assert.deepEqual(await since(4_001), [a]);
    assert.deepEqual(await since(10_000), [a]);
    assert.deepEqual(await since(10_001), []);
    assert.equal((await decisions.list({ since: "" })).length, 5);
  });
  test("list: after a decision only those staged later, in order, together with the other filters", async (harness) => {
    const { decisions } = harness;
    const [a = "", b = "", c = "", d = "", e = ""] = await five(harness);
    assert.deepEqual(ids(await decisions.list({ after: a, limit: 2 })), [b, c]);
    assert.deepEqual(ids(await decisions.list({ after: c })), [d, e]);
    assert.deepEqual(ids(await decisions.list({ after: b, states: ["approved"] })), [d]);
    assert.deepEqual(ids(await decisions.list({ after: e })), []);
    for (const after of [NOWHERE, "a\u0000b"]) {
      await refuses("invalid_input", () => decisions.list({ after }), `after ${after}`);
    }
  });
  test("list: a limit caps the number and keeps the earliest created matches [S0-88 S0-89]", async (harness) => {
    const [a, b, c, d, e] = await five(harness);
    const { decisions } = harness;
    assert.deepEqual(ids(await decisions.list({ limit: 2 })), [a, b]);
    assert.deepEqual(ids(await decisions.list({ limit: 5 })), [a, b, c, d, e]);
    assert.deepEqual(ids(await decisions.list({ limit: 50 })), [a, b, c, d, e]);
    assert.deepEqual(ids(await decisions.list({ states: ["approved"], limit: 1 })), [b]);
  });
  test("list: all filters combine with AND [S0-90]", async (harness) => {
    const [, , , d] = await five(harness);
    const { decisions } = harness;
    const query = {
      sessionId: "session-1",
      states: ["approved", "pending_ml"],
      limit: 5,
    } as const;
    assert.deepEqual(ids(await decisions.list({ ...query, since: toIso(START + 3_000) })), [d]);
    assert.deepEqual(ids(await decisions.list({ ...query, since: toIso(START + 3_001) })), []);
    assert.equal((await decisions.list({ ...query, limit: 1 })).length, 1);
  });
  test("listBySession: is list filtered by that session alone, oldest first [S0-91]", async (harness) => {
    const [a, , c, d] = await five(harness);
    const { decisions } = harness;
    const found = await decisions.listBySession("session-1");
    assert.deepEqual(ids(found), [a, c, d]);
    assert.deepEqual(found, await decisions.list({ sessionId: "session-1" }));
    assert.deepEqual(await decisions.listBySession("session-9"), []);
  });
  test("listBySession: an empty session is refused, because all sessions would be a leak [S0-93]", async (harness) => {
    await five(harness);
    await refuses("invalid_input", () => harness.decisions.listBySession(""));
  });
});

const HOUR = 3_600_000;

/** listStuck, and queries that make no sense. */
export const decisionStuckCases = cases<DecisionHarness>((test) => {
  test("listStuck: the age counts from the update time, against the current clock, inclusive [S0-94 S0-95]", async (harness) => {
    const { decisions, clock } = harness;
    const { id } = await stagedIn("pending_ml", harness);
    clock.advance(HOUR);
    await decisions.updateBizVerdict(id, YES);
    const isStuck = async (ms: number) => (await decisions.listStuck("approved", ms)).length === 1;
    assert.equal(await isStuck(1), false, "created an hour ago, but approved just now");
    assert.equal(await isStuck(0), true);
    clock.advance(1_000);
    assert.equal(await isStuck(999), true);
    assert.equal(await isStuck(1_000), true, "the boundary itself");
    assert.equal(await isStuck(1_001), false);
    clock.advance(1);
    assert.equal(await isStuck(1_001), true);
  });
  test("listStuck: works for any state and gives that state alone, oldest first [S0-96]", async (harness) => {
    const { decisions, clock } = harness;
    const made: (readonly [DecisionState, string])[] = [];
    for (const state of [...DECISION_STATES, ...DECISION_STATES]) {
      made.push([state, (await stagedIn(state, harness)).id]);
    }
    clock.advance(HOUR);
    for (const state of DECISION_STATES) {
      const expected = made.filter(([one]) => one === state).map(([, id]) => id);
      const stuck = await decisions.listStuck(state, HOUR);
      assert.deepEqual(
        stuck.map(({ id }) => id),
        expected,
        state,
      );
      assert.deepEqual(await decisions.listStuck(state, HOUR + 1), []);
    }
  });
  test("listStuck: comes in pages, each decision once, and refuses a place that is none", async (harness) => {
    const { decisions, clock } = harness;
    const made: string[] = [];
    for (let n = 0; n < 5; n += 1) made.push((await stagedIn("approved", harness)).id);
    clock.advance(HOUR);
    const found: string[] = [];
    for (let after = {}; ; ) {
      const page = await decisions.listStuck("approved", HOUR, { limit: 2, ...after });
      found.push(...page.map(({ id }) => id));
      if (page.length < 2) break;
      after = { after: page.at(-1)?.id };
    }
    assert.deepEqual(found, made);
    const nowhere = { after: NOWHERE };
    await refuses("invalid_input", () => decisions.listStuck("approved", HOUR, nowhere));
  });
  test("listStuck: a record can be backdated to test this without waiting; an unknown id does nothing [S0-97]", async (harness) => {
    const { decisions } = harness;
    const fresh = await stagedIn("approved", harness);
    const old = await stagedIn("approved", harness);
    await harness.backdate(old.id, toIso(START - HOUR));
    await harness.backdate(NOWHERE, toIso(0));
    const stuck = await decisions.listStuck("approved", HOUR);
    assert.deepEqual(stuck, [{ ...old, updatedAt: toIso(START - HOUR) }]);
    assert.deepEqual(await decisions.get(fresh.id), fresh);
    assert.equal((await decisions.list()).length, 2);
  });
  test("listStuck: an age beyond all times finds nothing, a negative one is refused", async (harness) => {
    await stagedIn("approved", harness);
    for (const ms of [Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER, 1e300]) {
      assert.deepEqual(await harness.decisions.listStuck("approved", ms), [], String(ms));
    }
    for (const ms of [-1, Number.NaN]) {
      await refuses("invalid_input", () => harness.decisions.listStuck("approved", ms));
    }
  });
  test("queries: unknown states and moments that are none are refused, not ignored", async (harness) => {
    const { decisions } = harness;
    for (const name of ["", "Approved", "constructor"]) {
      const state = name as DecisionState;
      await refuses("invalid_input", () => decisions.list({ states: ["approved", state] }));
      await refuses("invalid_input", () => decisions.listStuck(state, 0));
    }
    for (const since of ["yesterday", "2026-02-30T00:00:00.000Z", "2026-11-15"]) {
      await refuses("invalid_input", () => decisions.list({ since }));
    }
  });
  test("queries: a limit that is no whole number is refused or rounded down, on every store", async (harness) => {
    for (let count = 0; count < 4; count += 1) await stagedIn("pending_tech", harness);
    const answer = await harness.decisions.list({ limit: 2.5 }).catch((error: unknown) => error);
    if (Array.isArray(answer)) assert.equal(answer.length, 2);
    else await refuses("invalid_input", () => Promise.reject(answer));
  });
});
