import assert from "node:assert/strict";
import { emptyHead } from "../../model/audit-entry.ts";
import { DECISIONS } from "../../model/decision.ts";
import { toIso } from "../../util/clock.ts";
import { NOW } from "../engine.ts";
import { cases, type EngineHarness, TENANT } from "./case.ts";

import {
  change,
  event,
  insert,
  NOWHERE,
  plain,
  refuses,
  START,
  soundTrail,
  together,
  update,
  written,
} from "./samples.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** The trail, its ends, and the time. */
export const engineTrailCases = cases<EngineHarness>((test) => {
  test("trail: an entry carries all of its event, the time of its change and the hash before it [I17]", async (harness) => {
    const { engine, clock } = harness;
    const draft = {
      type: "case.ran",
      subject: "a",
      session: "Sitzung ü",
      actor: "agent:x",
      data: { b: [1, "two", null], a: { deep: true } },
    };
    await engine.commit(TENANT, change([insert("a")], [draft, event("a")]));
    clock.advance(1);
    await engine.commit(TENANT, change([insert("b")]));
    const [first, second, third] = await soundTrail(engine);
    assert.deepEqual(
      {
        type: first?.type,
        subject: first?.subject,
        session: first?.session,
        actor: first?.actor,
      },
      { type: "case.ran", subject: "a", session: "Sitzung ü", actor: "agent:x" },
    );
    assert.equal(first?.data, '{"a":{"deep":true},"b":[1,"two",null]}', "canonical JSON");
    assert.deepEqual(
      [first?.at, second?.at, third?.at],
      [toIso(START), toIso(START), toIso(START + 1)],
    );
    const salts = [first, second, third].map((entry) => entry?.salt);
    assert.equal(new Set(salts).size, 3, "every entry has a salt of its own");
  });
  test("trail: events are made from the rows that the steps leave behind", async ({ engine }) => {
    await written(engine, [insert("a", { created_at: 5 })]);
    const steps = [
      insert("b", { session_id: "session-b" }),
      update("a", {}, { created_at: { plus: 1 }, updated_at: NOW }),
    ];
    const facts = {
      id: { left: "id" },
      count: { left: "created_at", step: 1 },
      at: { left: "updated_at", step: 1 },
      nothing: { left: "metadata", step: 1 },
    };
    const plan = { ...event({ left: "id", step: 1 }, { own: true }), facts };
    const session = { left: "session_id" };
    await engine.commit(TENANT, change(steps, [{ ...plan, session }]));
    const [, entry] = await soundTrail(engine);
    assert.deepEqual([entry?.subject, entry?.session], ["a", "session-b"]);
    const told = { own: true, id: "b", count: 6, at: START, nothing: null };
    assert.deepEqual(JSON.parse(entry?.data ?? ""), told);
  });
  test("trail: an event that speaks of what is not there, or of bytes, is refused, and nothing is written", async (harness) => {
    const { engine } = harness;
    for (const plan of [
      event({ left: "no_such_column" }),
      event({ left: "id", step: 1 }),
      event({ left: "created_at" }),
      { ...event("a"), session: { left: "metadata" } },
      { ...event("a"), facts: { raw: { left: "raw" } } },
    ]) {
      const broken = change([insert("a")], [plan]);
      await refuses("invalid_input", () => engine.commit(TENANT, broken));
    }
    assert.equal(await engine.get(TENANT, DECISIONS, "a"), undefined);
    assert.equal((await soundTrail(engine)).length, 0);
  });
  test("trail: a change without an event is refused, and nothing is written", async (harness) => {
    const { engine } = harness;
    const silent = change([insert("a")], []);
    await refuses("invalid_input", () => engine.commit(TENANT, silent));
    assert.equal(await engine.get(TENANT, DECISIONS, "a"), undefined);
    assert.equal((await soundTrail(engine)).length, 0);
  });
  test("trail: can be read in pages by number, without gap or repeat [I20]", async ({ engine }) => {
    await together(25, (index) => written(engine, [insert(`id-${index}`)]));
    const all = await soundTrail(engine);
    const paged = [];
    for (let after = 0; ; after += 10) {
      const page = await engine.entries(TENANT, { after, limit: 10 });
      if (page.length === 0) break;
      paged.push(...page);
    }
    assert.deepEqual(paged, all);
    assert.deepEqual(await engine.entries(TENANT, { after: 24, limit: 10 }), [all[24]]);
    assert.deepEqual(await engine.entries(TENANT, { after: 3, limit: 1 }), [all[3]]);
    assert.deepEqual(await engine.entries(TENANT, { after: 25, limit: 10 }), []);
    assert.deepEqual(await engine.entries(TENANT, { after: 7, limit: 0 }), []);
  });
  test("heads: one per tenant that wrote, and an empty one for all others", async ({ engine }) => {
    assert.deepEqual(await engine.heads(), []);
    assert.deepEqual(await engine.head(TENANT), emptyHead(TENANT));
    await written(engine, [insert("a")], "acme");
    await written(engine, [insert("a")], "globex");
    await written(engine, [insert("b")], "globex");
    await engine.commit("initech", change([update(NOWHERE, {}, { state: "failed" })]));
    const heads = (await engine.heads()).toSorted((a, b) => (a.tenant < b.tenant ? -1 : 1));
    assert.deepEqual(heads, [await engine.head("acme"), await engine.head("globex")]);
    assert.deepEqual(
      heads.map((head) => head.seq),
      [1, 2],
    );
    assert.deepEqual(await engine.head("initech"), emptyHead("initech"));
  });
  test("time: never runs backwards in the trail when the clock does, and rows agree with it [I18]", async (harness) => {
    const { engine, clock } = harness;
    await written(engine, [insert("a")]);
    clock.set(START - MINUTE);
    const { rows, at } = await written(engine, [insert("b")]);
    assert.equal(at, START);
    assert.equal(rows[0]?.["created_at"], START);
    clock.set(START + 1);
    assert.equal((await written(engine, [insert("c")])).at, START + 1);
    const times = (await soundTrail(engine)).map((entry) => entry.at);
    assert.deepEqual(times, [toIso(START), toIso(START), toIso(START + 1)]);
  });
  test("time: a tenant whose trail is ahead of the clock does not move the time of another", async (harness) => {
    const { engine, clock } = harness;
    clock.set(START + MINUTE);
    await written(engine, [insert("a")], "acme");
    clock.set(START);
    const [ahead, other] = await Promise.all([
      written(engine, [insert("b")], "acme"),
      written(engine, [insert("b")], "globex"),
    ]);
    assert.equal(ahead?.at, START + MINUTE);
    assert.equal(other?.at, START);
    assert.equal((await soundTrail(engine, "globex"))[0]?.at, toIso(START));
  });
  test("time: while the clock is far behind the trail nothing but what is urgent is written, and no other tenant is concerned [SH9]", async (harness) => {
    const { engine, store, clock } = harness;
    clock.set(START + 24 * HOUR);
    await written(engine, [insert("a")], "acme");
    clock.set(START);
    const asked = [insert("b"), insert("c")].map((step) => engine.commit("acme", change([step])));
    const stopped = store.tenant("acme").killSwitch.stop("stop", { actor: "operator" });
    const other = written(engine, [insert("b")], "globex");
    for (const refused of asked) await refuses("clock_wrong", () => refused);
    await stopped;
    assert.equal((await other).at, START);
    assert.equal(await engine.get("acme", DECISIONS, "b"), undefined);
    const times = (await soundTrail(engine, "acme")).map(({ at }) => at);
    assert.deepEqual(times, [toIso(START + 24 * HOUR), toIso(START + 24 * HOUR)]);
    assert.equal((await store.tenant("acme").clock.look()).state, "refused");
  });
  test("time: once an operator has said that the clock is right, rows go by it and entries stay in order; for a trail still further ahead it is asked anew [SH9]", async (harness) => {
    const { engine, store, clock } = harness;
    const mark = store.tenant(TENANT).clock;
    const accept = () => mark.accept("The clock is right.", { actor: "operator" });
    await written(engine, [insert("a")]);
    assert.equal((await accept()).state, "right");
    clock.set(START + 24 * HOUR);
    await written(engine, [insert("b")]);
    clock.set(START + HOUR);
    const { state, behindMs } = await mark.look();
    assert.deepEqual([state, behindMs], ["refused", 23 * HOUR]);
    assert.equal((await accept()).state, "accepted");
    const { rows, at } = await written(engine, [insert("c")]);
    assert.equal(at, START + HOUR);
    assert.equal(rows[0]?.["created_at"], START + HOUR);
    clock.set(START + 48 * HOUR);
    await written(engine, [insert("d")]);
    clock.set(START + 2 * HOUR);
    await refuses("clock_wrong", () => written(engine, [insert("e")]));
    await accept();
    assert.equal((await written(engine, [insert("e")])).at, START + 2 * HOUR);
    const told = (await soundTrail(engine)).map((entry) => entry.type);
    assert.equal(told.filter((type) => type === "store.clock_accepted").length, 2);
  });
  test("time: now tells the time that leases and deadlines go by", async ({ engine, clock }) => {
    assert.equal(await engine.now(), START);
    clock.advance(HOUR);
    assert.equal(await engine.now(), START + HOUR);
  });
  test("onCommit: tells of a commit, not of nothing, until it is told to stop; a bad listener harms nobody", async (harness) => {
    const { engine } = harness;
    let told = 0;
    const stopBad = engine.onCommit(() => {
      throw new Error("a listener failed");
    });
    const stop = engine.onCommit(() => {
      told += 1;
    });
    assert.equal(told, 0);
    await written(engine, [insert("a")]);
    assert.ok(told >= 1, "told by the time the caller has its answer");
    stop();
    const before = told;
    await written(engine, [insert("b")]);
    assert.equal(told, before);
    stopBad();
  });
  test("backdate: sets a time without a trace, and does nothing for an unknown id [S0-97]", async (harness) => {
    const { engine } = harness;
    await written(engine, [insert("a"), insert("b")]);
    const before = plain(await engine.get(TENANT, DECISIONS, "a"));
    await engine.backdate(TENANT, DECISIONS, "a", "updated_at", START - HOUR);
    await engine.backdate(TENANT, DECISIONS, NOWHERE, "updated_at", 0);
    await engine.backdate("globex", DECISIONS, "b", "updated_at", 0);
    const after = plain(await engine.get(TENANT, DECISIONS, "a"));
    assert.deepEqual(after, { ...before, updated_at: START - HOUR });
    assert.equal((await engine.get(TENANT, DECISIONS, "b"))?.["updated_at"], START);
    assert.equal((await engine.find(TENANT, DECISIONS, { limit: 10 })).length, 2);
    assert.equal((await soundTrail(engine)).length, 1);
  });
});
