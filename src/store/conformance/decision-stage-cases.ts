import assert from "node:assert/strict";
import {
  DECISION_STATES,
  type Decision,
  MAX_RAW_BYTES,
  type Metadata,
  NO_VERDICT,
  type Verdict,
} from "../../model/decision.ts";
import { toIso } from "../../util/clock.ts";
import { cases, type DecisionHarness } from "./case.ts";
import { refuses, START, sampleDraft, sampleVerdict, stagedIn, utf8, YES } from "./samples.ts";

const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, byte) => byte);

/** Staging: what goes in, what comes back, what is refused. */
export const decisionStageCases = cases<DecisionHarness>((test) => {
  test("stage: gives the record an id and returns it; get finds the same record under it [S0-15]", async (harness) => {
    const { decisions } = harness;
    const staged = await decisions.stage(sampleDraft());
    assert.equal(typeof staged.id, "string");
    assert.notEqual(staged.id, "");
    assert.equal(staged.state, "pending_tech");
    assert.equal(staged.sessionId, "session-1");
    assert.deepEqual(await decisions.get(staged.id), staged);
  });
  test("stage: a caller cannot choose the id, not even that of another record [S0-18]", async (harness) => {
    const { decisions } = harness;
    const first = await decisions.stage(sampleDraft({ id: "mine" }));
    assert.notEqual(first.id, "mine");
    await refuses("not_found", () => decisions.get("mine"));
    const second = await decisions.stage(sampleDraft({ id: first.id, sessionId: "session-2" }));
    assert.notEqual(second.id, first.id);
    assert.deepEqual(await decisions.get(first.id), first);
  });
  test("stage: ids are unique, also for equal drafts staged at the same instant [S0-19]", async (harness) => {
    const { decisions } = harness;
    const draft = sampleDraft();
    const staged = await Promise.all(Array.from({ length: 50 }, () => decisions.stage(draft)));
    assert.equal(new Set(staged.map(({ id }) => id)).size, 50);
    assert.equal((await decisions.list()).length, 50);
  });
  test("stage: source tool, raw payload and metadata come back unchanged [S0-10]", async (harness) => {
    const { decisions } = harness;
    const diff = {
      sourceTool: "crm/update customer ü",
      raw: ALL_BYTES,
      metadata: {
        text: "a\u0000b \ud800 日本 👩‍👩‍👧",
        number: -12.5e-7,
        nothing: null,
        list: [1, [2, { three: true }]],
        nested: { "": "empty key", "a.b": 1, constructor: "c", toString: "t" },
        $v8: "not a wrapper",
      },
    };
    const staged = await decisions.stage(sampleDraft({ metadata: diff.metadata }, diff));
    for (const record of [staged, await decisions.get(staged.id), (await decisions.list())[0]]) {
      assert.deepEqual(record?.diff, diff);
      assert.deepEqual(record?.metadata, diff.metadata);
    }
  });
  test("stage: metadata may hold what JSON cannot say [S0-10]", async ({ decisions }) => {
    const metadata = {
      when: new Date(START),
      map: new Map([["k", new Set([1n])]]),
      bytes: new Uint8Array([1, 2]),
      odd: [undefined, Number.NaN, -0, Number.POSITIVE_INFINITY],
    };
    const { id } = await decisions.stage(sampleDraft({ metadata }, { metadata }));
    const stored = await decisions.get(id);
    assert.deepEqual(stored.diff.metadata, metadata);
    assert.deepEqual(stored.metadata, metadata);
  });
  test("stage: bytes that are no JSON, no text, none at all or a whole mebibyte are kept [S0-11]", async (harness) => {
    const { decisions } = harness;
    const odd = [Uint8Array.of(0xff, 0xfe, 0, 0xc3, 0x28), utf8('{"a":'), utf8("")];
    for (const raw of [...odd, new Uint8Array(1024 * 1024).fill(7)]) {
      const { id } = await decisions.stage(sampleDraft({}, { raw }));
      const stored = (await decisions.get(id)).diff.raw;
      assert.ok(stored instanceof Uint8Array);
      assert.ok(Buffer.from(stored).equals(raw));
    }
  });
  test("stage: record metadata of its own is passed through beside the diff's [S0-24]", async (harness) => {
    const { decisions } = harness;
    const metadata = { tenant: "acme", upstream: ["x"], free: { any: "thing" } };
    const { id } = await decisions.stage(sampleDraft({ metadata }, { metadata: { other: 1 } }));
    await decisions.updateTechVerdict(id, YES);
    const stored = await decisions.get(id);
    assert.deepEqual(stored.metadata, metadata);
    assert.deepEqual(stored.diff.metadata, { other: 1 });
  });
  test("stage: any other state, known or not, is an illegal transition and stores nothing [S0-16 S0-99]", async (harness) => {
    const { decisions } = harness;
    const others = [...DECISION_STATES, "", "PENDING_TECH", "pending", "constructor", "executing"];
    for (const state of others.filter((one) => one !== "pending_tech")) {
      const draft = sampleDraft({ state: state as Decision["state"] });
      await refuses("illegal_transition", () => decisions.stage(draft), state);
    }
    assert.deepEqual(await decisions.list(), []);
  });
  test("stage: an empty session is an illegal transition and stores nothing [S0-17]", async (harness) => {
    const { decisions } = harness;
    await refuses("illegal_transition", () => decisions.stage(sampleDraft({ sessionId: "" })));
    assert.deepEqual(await decisions.list(), []);
  });
  test("stage: both times are the store's own and equal, whatever the draft says [S0-20 S0-21]", async (harness) => {
    const { decisions, clock } = harness;
    clock.advance(1_234);
    const staged = await decisions.stage(
      sampleDraft({
        createdAt: "1999-01-01T00:00:00.000Z",
        updatedAt: "1999-01-02T00:00:00.000Z",
      }),
    );
    assert.equal(staged.createdAt, toIso(START + 1_234));
    assert.equal(staged.updatedAt, staged.createdAt);
  });
  test("stage: verdicts, proof and error are empty, whatever the draft says [S0-23 S0-72 S0-73]", async (harness) => {
    const { decisions } = harness;
    const forged = sampleVerdict({ validator: "forger" });
    const staged = await decisions.stage(
      sampleDraft({
        techVerdict: forged,
        bizVerdict: forged,
        executionProof: "forged",
        executionError: "forged",
      }),
    );
    for (const record of [staged, await decisions.get(staged.id)]) {
      assert.deepEqual(record.techVerdict, NO_VERDICT);
      assert.deepEqual(record.bizVerdict, NO_VERDICT);
      assert.equal(record.techVerdict.validator, "");
      assert.equal(record.executionProof, undefined);
      assert.equal(record.executionError, "");
    }
  });
  test("stage: one decision is one record, however many things its payload touches [S0-08]", async (harness) => {
    const raw = utf8(JSON.stringify([{ table: "a" }, { table: "b" }, { table: "c" }]));
    const decision = await stagedIn("approved", harness, sampleDraft({}, { raw }));
    assert.equal((await harness.decisions.list()).length, 1);
    const executed = await harness.decisions.markExecuted(decision.id, "all of it");
    assert.deepEqual(executed.diff.raw, raw);
    assert.deepEqual(await harness.decisions.list(), [executed]);
  });
});

/** Inputs that callers change afterwards, and inputs that cannot be kept. */
export const decisionInputCases = cases<DecisionHarness>((test) => {
  test("copies: changing bytes or a map after handing it in does not reach the store [S0-27]", async (harness) => {
    const { decisions } = harness;
    const raw = utf8("before");
    const metadata = { note: "before", deep: { list: [1] } };
    const asked = decisions.stage(sampleDraft({ metadata }, { raw, metadata }));
    raw.fill(0);
    metadata.note = "after";
    metadata.deep.list.push(2);
    await assertBefore(decisions.get((await asked).id));
    await assertBefore(asked);
  });
  test("copies: the same for a Buffer, whose slice shares memory [S0-27]", async (harness) => {
    const { decisions } = harness;
    const raw = Buffer.from("before");
    const metadata = { note: "before", deep: { list: [1] } };
    const asked = decisions.stage(sampleDraft({ metadata }, { raw, metadata }));
    raw.fill(0);
    const { id } = await asked;
    raw.fill(1);
    await assertBefore(decisions.get(id));
    await assertBefore(asked);
  });
  test("copies: changing what a call returned does not reach the store or other readers [S0-27]", async (harness) => {
    const { decisions } = harness;
    const metadata = { note: "before", deep: { list: [1] } };
    const staged = await decisions.stage(
      sampleDraft({ metadata }, { raw: utf8("before"), metadata }),
    );
    const [one, other] = await Promise.all([decisions.get(staged.id), decisions.get(staged.id)]);
    const [listed] = await decisions.list();
    for (const record of [staged, one, listed]) spoil(record);
    await assertBefore(Promise.resolve(other as Decision));
    await assertBefore(decisions.get(staged.id));
  });
  test("copies: a verdict or proof that is changed after handing it in is kept as it was [S0-27]", async (harness) => {
    const { decisions } = harness;
    const { id } = await decisions.stage(sampleDraft());
    const verdict = { ...YES };
    const reviewing = decisions.updateTechVerdict(id, verdict);
    Object.assign(verdict, { approved: false, reason: "changed" });
    assert.deepEqual((await reviewing).techVerdict, YES);
    await decisions.updateBizVerdict(id, YES);
    const proof = { receipts: [1] };
    const closing = decisions.markExecuted(id, proof);
    proof.receipts.push(2);
    assert.deepEqual((await closing).executionProof, { receipts: [1] });
    assert.deepEqual((await decisions.get(id)).executionProof, { receipts: [1] });
  });
  test("input: a payload over the limit is payload_too_large, one that is no bytes invalid_input", async (harness) => {
    const { decisions } = harness;
    const large = { raw: new Uint8Array(MAX_RAW_BYTES + 1) };
    await refuses("payload_too_large", () => decisions.stage(sampleDraft({}, large)));
    for (const raw of ["text", [1, 2], null, new ArrayBuffer(1)]) {
      const draft = sampleDraft({}, { raw: raw as unknown as Uint8Array });
      await refuses("invalid_input", () => decisions.stage(draft));
    }
    assert.deepEqual(await decisions.list(), []);
  });
  test("input: metadata 64 levels deep is kept, 65 levels are payload_too_large", async (harness) => {
    const { decisions } = harness;
    const deepest = nested(64);
    const { id } = await decisions.stage(sampleDraft({ metadata: deepest }, { metadata: deepest }));
    assert.deepEqual((await decisions.get(id)).metadata, deepest);
    const deeper = nested(65);
    const draft = sampleDraft({ metadata: deeper }, { metadata: deeper });
    await refuses("payload_too_large", () => decisions.stage(draft));
    assert.equal((await decisions.list()).length, 1);
  });
  test("input: metadata or a proof that is no data is invalid_input, as a rejection and not as a throw", async (harness) => {
    const { decisions } = harness;
    const hooks = { metadata: { hook: () => 1 } };
    for (const metadata of [null, "text", [1], 5]) {
      const draft = sampleDraft({}, { metadata: metadata as unknown as Metadata });
      await refuses("invalid_input", () => decisions.stage(draft), `metadata ${String(metadata)}`);
    }
    await refuses("invalid_input", () => decisions.stage(sampleDraft(hooks, hooks)), "a function");
    const { id } = await stagedIn("approved", harness);
    let asked: Promise<unknown> | undefined;
    assert.doesNotThrow(() => {
      asked = decisions.markExecuted(id, () => 1);
    }, "an async call never throws at once");
    await refuses("invalid_input", async () => asked, "a proof that is a function");
    assert.equal((await decisions.get(id)).state, "approved");
  });
  test("input: a verdict without a name, or that is none, is invalid_input and moves nothing", async (harness) => {
    const { decisions } = harness;
    const { id } = await decisions.stage(sampleDraft());
    const broken: unknown[] = [
      { ...YES, validator: "" },
      { ...YES, approved: "yes" },
      { ...YES, score: Number.NaN },
      { ...YES, severity: "fatal" },
      { ...YES, reason: undefined },
      {},
    ];
    for (const verdict of broken) {
      await refuses("invalid_input", () => decisions.updateTechVerdict(id, verdict as Verdict));
    }
    await refuses("invalid_input", () => decisions.markFailed(id, 5 as unknown as string));
    assert.equal((await decisions.get(id)).state, "pending_tech");
  });
  test("input: odd but lawful verdict texts are kept to the letter", async ({ decisions }) => {
    const { id } = await decisions.stage(sampleDraft());
    const verdict = sampleVerdict({
      reason: "nul \u0000, half \ud800, 日本 👩‍👩‍👧",
      score: -0.1,
    });
    await decisions.updateTechVerdict(id, verdict);
    assert.deepEqual((await decisions.get(id)).techVerdict, verdict);
  });
  test("input: metadata or a proof over 1 MiB is payload_too_large, and nothing is written", async (harness) => {
    const big = { text: "x".repeat(2 ** 20) };
    const { decisions } = harness;
    await refuses("payload_too_large", () => decisions.stage(sampleDraft({}, { metadata: big })));
    const { id } = await stagedIn("approved", harness);
    await refuses("payload_too_large", () => decisions.markExecuted(id, big));
    assert.equal((await decisions.get(id)).state, "approved");
  });
});

async function assertBefore(asked: Promise<Decision>): Promise<void> {
  const { diff, metadata } = await asked;
  assert.equal(new TextDecoder().decode(diff.raw), "before");
  assert.deepEqual(diff.metadata, { note: "before", deep: { list: [1] } });
  assert.deepEqual(metadata, { note: "before", deep: { list: [1] } });
}

function spoil(record: Decision | undefined): void {
  record?.diff.raw.fill(0);
  for (const metadata of [record?.metadata, record?.diff.metadata]) {
    const open = metadata as { note: string; deep: { list: number[] } };
    open.note = "after";
    open.deep.list.push(9);
  }
}

function nested(levels: number): Metadata {
  let value: Metadata = {};
  for (let level = 1; level < levels; level += 1) value = { in: value };
  return value;
}
