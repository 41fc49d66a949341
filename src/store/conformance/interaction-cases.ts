import assert from "node:assert/strict";
import {
  type InteractionDraft,
  ONE_PERSON,
  previewHash,
  type Requirement,
} from "../../model/interaction.ts";

import { toIso } from "../../util/clock.ts";
import type { Showing } from "../interactions.ts";
import { cases, type EngineHarness, TENANT } from "./case.ts";

import {
  ids,
  refuses,
  START,
  sampleDraft,
  sampleVerdict,
  soundTrail,
  stagedIn,
  together,
} from "./samples.ts";

const BY = { actor: "agent:one" };
const HOUR = 3_600_000;
const HASH = "h".repeat(64);

function question(over: Partial<InteractionDraft> = {}): InteractionDraft {
  return {
    type: "ask_user",
    sessionId: "session-1",
    callId: "call-1",
    displayText: "Which warehouse?",
    hash: HASH,
    chain: ["agent:one", "agent:lead", "person:owner"],
    choices: ["north", "south"],
    metadata: { why: "two have stock" },
    deadlineMs: HOUR,
    ...over,
  };
}

/** A decision that people were asked about. */
async function confirmed(harness: EngineHarness, requires: Requirement = ONE_PERSON) {
  const { interactions } = harness.store.tenant(TENANT);
  const { id } = await stagedIn("pending_ml", harness);
  const preview: Showing["preview"] = {
    decisionId: id,
    tenant: TENANT,
    actionHash: "a".repeat(64),
    dryRun: [],
    stateVersion: [],
    safetyClass: "irreversible",
    policyHash: "p".repeat(64),
    requires,
    expiresAt: toIso(START + HOUR),
    nonce: "n-1",
    epoch: "",
    sessionId: "session-1",
    askers: ["agent:one"],
  };
  const { sessionId, callId, displayText, chain } = question();
  const asked = { sessionId, callId, displayText, chain, requires };
  const key = { key: `key-${id}`, step: 0, actionHash: "x" };
  const showing = { preview, definitions: [{ name: "t" }], question: asked, keys: [key] };
  await interactions.show(showing, BY);
  return { id, hash: previewHash(preview), key: key.key, showing };
}

const yes = (hash: string, by: string) => ({ hash, by, verdict: sampleVerdict({ validator: by }) });
const no = (hash: string, by: string) => ({
  hash,
  by,
  verdict: sampleVerdict({ validator: by, approved: false, reason: "not today" }),
});

/** Questions to people: open, answered once, in time, by the hash that was shown. */
export const interactionCases = cases<EngineHarness>((test) => {
  test("interactions: a question comes back as it was asked, and the first one stays [S1-12]", async (harness) => {
    const { store } = harness;
    const { interactions } = store.tenant(TENANT);
    const opened = await interactions.open("q-1", question(), BY);
    assert.deepEqual(await interactions.get("q-1"), opened);
    assert.equal(opened.status, "open");
    assert.equal(opened.deadline, toIso(START + HOUR));
    assert.deepEqual(opened.choices, ["north", "south"]);
    assert.deepEqual(opened.metadata, { why: "two have stock" });
    const second = question({ displayText: "Another?" });
    await refuses("already_exists", () => interactions.open("q-1", second, BY));
    assert.equal((await interactions.get("q-1")).displayText, "Which warehouse?");
    await refuses("not_found", () => interactions.get("q-9"));
    await refuses("not_found", () => store.tenant("globex").interactions.get("q-1"));
    await refuses("invalid_input", () => interactions.open("q-2", question({ deadlineMs: 0 }), BY));
    await refuses("invalid_input", () => interactions.open("q-2", question({ requires: [] }), BY));
  });
  test("interactions: an answer names the question and the hash that was shown; the second one changes nothing [R12 T7]", async (harness) => {
    const { interactions } = harness.store.tenant(TENANT);
    await interactions.open("q-1", question(), BY);
    await interactions.open("q-2", question({ hash: "i".repeat(64) }), BY);
    const answer = { hash: HASH, by: "person:ada", answer: "north", reason: "closer" };
    await refuses("approval_void", () => interactions.answer("q-2", answer));
    const done = await interactions.answer("q-1", answer);
    assert.deepEqual(
      [done.status, done.outcome, done.answer, done.answeredBy, done.reason],
      ["resolved", "answered", "north", "person:ada", "closer"],
    );
    const late = { ...answer, by: "person:bob", answer: "south" };
    const error = await refuses("already_answered", () => interactions.answer("q-1", late));
    assert.match(error.message, /person:ada was first/);
    assert.deepEqual(await interactions.get("q-1"), done);
    assert.equal((await interactions.get("q-2")).status, "open");
    await refuses("not_found", () => interactions.answer("q-9", answer));
  });
  test("interactions: of 32 answers at once one counts, and all others are told which", async (harness) => {
    const { store } = harness;
    const { interactions } = store.tenant(TENANT);
    await interactions.open("q-1", question(), BY);
    const answers = await together(32, (index) =>
      interactions
        .answer("q-1", { hash: HASH, by: `person:${index}`, answer: index })
        .then(({ answeredBy }) => answeredBy, String),
    );
    const { answeredBy } = await interactions.get("q-1");
    assert.equal(answers.filter((said) => said === answeredBy).length, 1);
    const others = answers.filter((said) => said !== answeredBy);
    assert.ok(
      others.every((said) => said.includes(`${answeredBy} was first`)),
      others[0],
    );
  });
  test("interactions: silence means no by the store's clock, and takes the decision along [T34]", async (harness) => {
    const { interactions, decisions } = harness.store.tenant(TENANT);
    const { id, hash } = await confirmed(harness);
    await interactions.open("q-1", question({ deadlineMs: 2 * HOUR }), BY);
    assert.equal(await interactions.expire(id), false, "its time is not over");
    assert.deepEqual(await interactions.overdue(10), []);
    // The last millisecond still belongs to the people who are asked.
    harness.clock.advance(HOUR);
    assert.equal(await interactions.expire(id), false, "its deadline is now");
    harness.clock.advance(1);
    await refuses("approval_void", () => interactions.approve(id, yes(hash, "person:ada")));
    assert.deepEqual(ids(await interactions.overdue(10)), [id]);
    assert.deepEqual(await together(4, () => interactions.expire(id)).then(sorted), [
      false,
      false,
      false,
      true,
    ]);
    assert.equal((await interactions.get(id)).outcome, "expired");
    assert.equal((await decisions.get(id)).state, "rejected_ml");
    assert.deepEqual(await interactions.overdue(10), []);
    // A clock that steps back revives nothing.
    harness.clock.set(START);
    await refuses("already_answered", () => interactions.approve(id, yes(hash, "person:ada")));
    await soundTrail(harness.engine, TENANT);
  });
  test("interactions: escalation fires once, and not for what was answered", async (harness) => {
    const { store, clock } = harness;
    const { interactions } = store.tenant(TENANT);
    const escalation = { afterMs: 1_000, to: "person:boss" };
    await interactions.open("q-1", question({ escalation }), BY);
    await interactions.open("q-2", question({ escalation }), BY);
    await interactions.answer("q-2", { hash: HASH, by: "person:ada", answer: "north" });
    assert.equal(await interactions.escalate("q-1"), false);
    clock.advance(1_000);
    assert.deepEqual(ids(await interactions.toEscalate(10)), ["q-1"]);
    const fired = await together(8, () => interactions.escalate("q-1"));
    assert.equal(fired.filter(Boolean).length, 1);
    assert.equal(await interactions.escalate("q-2"), false);
    const { assignedTo, escalated, status } = await interactions.get("q-1");
    assert.deepEqual([assignedTo, escalated, status], ["person:boss", true, "open"]);
    assert.deepEqual(await interactions.toEscalate(10), []);
  });
  test("interactions: n of m, different people per factor, one no is a no", async (harness) => {
    const { interactions, decisions } = harness.store.tenant(TENANT);
    const requires = [
      { name: "security", count: 1, from: ["person:sue", "person:sam"] },
      { name: "business", count: 2 },
    ];
    const { id, hash } = await confirmed(harness, requires);
    await interactions.approve(id, yes(hash, "person:ada"));
    await interactions.approve(id, yes(hash, "person:ada"));
    assert.equal((await interactions.get(id)).votes.length, 1, "one person counts once");
    await interactions.approve(id, yes(hash, "person:bob"));
    await refuses("not_allowed", () => interactions.approve(id, yes(hash, "person:eve")));
    assert.equal((await decisions.get(id)).state, "pending_ml");
    const last = await interactions.approve(id, yes(hash, "person:sue"));
    assert.equal(last.outcome, "approved");
    assert.equal((await decisions.get(id)).state, "approved");
    const other = await confirmed(harness, requires);
    await interactions.approve(other.id, yes(other.hash, "person:ada"));
    await interactions.reject(other.id, no(other.hash, "person:bob"));
    assert.equal((await decisions.get(other.id)).state, "rejected_ml");
  });
  test("interactions: votes that arrive at once are all counted, each once", async (harness) => {
    const { interactions, decisions } = harness.store.tenant(TENANT);
    const { id, hash } = await confirmed(harness, [{ name: "review", count: 8 }]);
    await together(8, (index) => interactions.approve(id, yes(hash, `person:${index}`)));
    const { votes, outcome } = await interactions.get(id);
    assert.equal(new Set(votes.map(({ by }) => by)).size, 8);
    assert.equal(outcome, "approved");
    assert.equal((await decisions.get(id)).state, "approved");
  });
  test("interactions: handed over, asked back and called off, each in the trail", async (harness) => {
    const { interactions, decisions } = harness.store.tenant(TENANT);
    const { id, hash } = await confirmed(harness);
    const by = { actor: "person:ada" };
    assert.equal(
      (await interactions.handOver(id, "person:bob", "away", by)).assignedTo,
      "person:bob",
    );
    const asked = await interactions.remark(id, "Why this one?", "people", by);
    assert.deepEqual([asked.waitsFor, asked.status], ["agent", "open"]);
    const replied = await interactions.remark(id, "It is the oldest.", "agent", BY);
    assert.deepEqual(replied.remarks, [
      { by: "person:ada", text: "Why this one?" },
      { by: "agent:one", text: "It is the oldest." },
    ]);
    assert.equal(replied.waitsFor, "people");
    await interactions.cancel(id, "no longer needed", by);
    assert.equal((await decisions.get(id)).state, "rejected_ml", "nothing waits for nobody");
    await refuses("already_answered", () => interactions.approve(id, yes(hash, "person:ada")));
    const types = (await harness.engine.entries(TENANT, { after: 0, limit: 100 }))
      .map(({ type }) => type)
      .filter((type) => type.startsWith("interaction."));
    assert.deepEqual(types, [
      "interaction.opened",
      "interaction.handed_over",
      "interaction.asked_back",
      "interaction.replied",
      "interaction.canceled",
    ]);
  });
  test("interactions: what was shown is asked about once, and a keyed call leads to one decision", async (harness) => {
    const { interactions, decisions, leftBehind } = harness.store.tenant(TENANT);
    const { id, key, showing } = await confirmed(harness);
    assert.equal((await interactions.ofCall("session-1", key))?.decisionId, id);
    assert.equal(await interactions.ofCall("session-2", key), undefined);
    await refuses("illegal_transition", () => interactions.show(showing, BY));
    const draft = { ...sampleDraft(), origin: "port" } as const;
    const second = await stagedIn("pending_ml", harness, draft);
    const preview = { ...showing.preview, decisionId: second.id };
    await refuses("already_exists", () => interactions.show({ ...showing, preview }, BY));
    assert.equal((await decisions.get(second.id)).state, "pending_ml");
    assert.deepEqual(ids((await leftBehind.unasked(0, { after: 0, limit: 10 })).items), [
      second.id,
    ]);
    assert.equal(await interactions.shown(second.id), undefined, "nothing of it was written");
  });
  test("interactions: the list is by status, session and person, in pages", async ({ store }) => {
    const { interactions } = store.tenant(TENANT);
    for (const [index, assignedTo] of ["", "person:ada", "", "person:ada"].entries()) {
      const sessionId = index < 3 ? "session-1" : "session-2";
      await interactions.open(`q-${index}`, question({ assignedTo, sessionId }), BY);
    }
    const listed = async (query: Parameters<typeof interactions.list>[0]) =>
      (await interactions.list(query)).map(({ id }) => id);
    assert.deepEqual(await listed({ limit: 2 }), ["q-0", "q-1"]);
    const after = (await interactions.get("q-1")).ord;
    assert.deepEqual(await listed({ limit: 2, after }), ["q-2", "q-3"]);
    assert.deepEqual(await listed({ limit: 9, assignedTo: "person:ada" }), ["q-1", "q-3"]);
    assert.deepEqual(await listed({ limit: 9, sessionId: "session-2" }), ["q-3"]);
    await interactions.cancel("q-0", "no", BY);
    assert.deepEqual(await listed({ limit: 9, status: "open" }), ["q-1", "q-2", "q-3"]);
    assert.deepEqual(await listed({ limit: 9, status: "canceled" }), ["q-0"]);
  });
});

function sorted(list: readonly boolean[]): readonly boolean[] {
  return list.toSorted((a, b) => Number(a) - Number(b));
}
