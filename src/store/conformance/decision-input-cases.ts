import assert from "node:assert/strict";
import type { Decision, Metadata } from "../../model/decision.ts";
import type { Verdict } from "../../model/verdict.ts";
import { MAX_RAW_BYTES } from "../decision-checks.ts";
import type { DecisionCase } from "./case.ts";
import { bytes, refuses, sampleDraft, sampleVerdict, stagedIn, YES } from "./samples.ts";

/** Inputs that callers change afterwards, and inputs that cannot be kept. */
export const decisionInputCases: readonly DecisionCase[] = [
  {
    name: "copies: S0-27 changing bytes or a map after handing it in does not reach the store",
    async run({ decisions }) {
      const raw = bytes("before");
      const metadata = { note: "before", deep: { list: [1] } };
      const asked = decisions.stage(sampleDraft({ metadata }, { raw, metadata }));
      raw.fill(0);
      metadata.note = "after";
      metadata.deep.list.push(2);
      await assertBefore(decisions.get((await asked).id));
      await assertBefore(asked);
    },
  },
  {
    name: "copies: S0-27 the same for a Buffer, whose slice shares memory",
    async run({ decisions }) {
      const raw = Buffer.from("before");
      const metadata = { note: "before", deep: { list: [1] } };
      const asked = decisions.stage(sampleDraft({ metadata }, { raw, metadata }));
      raw.fill(0);
      const { id } = await asked;
      raw.fill(1);
      await assertBefore(decisions.get(id));
      await assertBefore(asked);
    },
  },
  {
    name: "copies: S0-27 changing what a call returned does not reach the store or other readers",
    async run({ decisions }) {
      const metadata = { note: "before", deep: { list: [1] } };
      const staged = await decisions.stage(
        sampleDraft({ metadata }, { raw: bytes("before"), metadata }),
      );
      const [one, other] = await Promise.all([decisions.get(staged.id), decisions.get(staged.id)]);
      const [listed] = await decisions.list();
      for (const record of [staged, one, listed]) spoil(record);
      await assertBefore(Promise.resolve(other as Decision));
      await assertBefore(decisions.get(staged.id));
    },
  },
  {
    name: "copies: S0-27 a verdict or proof that is changed after handing it in is kept as it was",
    async run(harness) {
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
    },
  },
  {
    name: "input: a payload over the limit is payload_too_large, one that is no bytes invalid_input",
    async run({ decisions }) {
      const large = { raw: new Uint8Array(MAX_RAW_BYTES + 1) };
      await refuses("payload_too_large", () => decisions.stage(sampleDraft({}, large)));
      for (const raw of ["text", [1, 2], null, new ArrayBuffer(1)]) {
        const draft = sampleDraft({}, { raw: raw as unknown as Uint8Array });
        await refuses("invalid_input", () => decisions.stage(draft));
      }
      assert.deepEqual(await decisions.list(), []);
    },
  },
  {
    name: "input: metadata 64 levels deep is kept, 65 levels are payload_too_large",
    async run({ decisions }) {
      const deepest = nested(64);
      const { id } = await decisions.stage(
        sampleDraft({ metadata: deepest }, { metadata: deepest }),
      );
      assert.deepEqual((await decisions.get(id)).metadata, deepest);
      const deeper = nested(65);
      const draft = sampleDraft({ metadata: deeper }, { metadata: deeper });
      await refuses("payload_too_large", () => decisions.stage(draft));
      assert.equal((await decisions.list()).length, 1);
    },
  },
  {
    name: "input: metadata or a proof that is no data is invalid_input, as a rejection and not as a throw",
    async run(harness) {
      const { decisions } = harness;
      const hooks = { metadata: { hook: () => 1 } };
      for (const metadata of [null, "text", [1], 5]) {
        const draft = sampleDraft({}, { metadata: metadata as unknown as Metadata });
        await refuses(
          "invalid_input",
          () => decisions.stage(draft),
          `metadata ${String(metadata)}`,
        );
      }
      await refuses(
        "invalid_input",
        () => decisions.stage(sampleDraft(hooks, hooks)),
        "a function",
      );
      const { id } = await stagedIn("approved", harness);
      let asked: Promise<unknown> | undefined;
      assert.doesNotThrow(() => {
        asked = decisions.markExecuted(id, () => 1);
      }, "an async call never throws at once");
      await refuses("invalid_input", async () => asked, "a proof that is a function");
      assert.equal((await decisions.get(id)).state, "approved");
    },
  },
  {
    name: "input: a verdict without a name, or that is none, is invalid_input and moves nothing",
    async run({ decisions }) {
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
    },
  },
  {
    name: "input: odd but lawful verdict texts are kept to the letter",
    async run({ decisions }) {
      const { id } = await decisions.stage(sampleDraft());
      const verdict = sampleVerdict({
        reason: "nul \u0000, half \ud800, 日本 👩‍👩‍👧",
        score: -0.1,
      });
      await decisions.updateTechVerdict(id, verdict);
      assert.deepEqual((await decisions.get(id)).techVerdict, verdict);
    },
  },
  {
    name: "input: metadata or a proof over 1 MiB is payload_too_large, and nothing is written",
    async run(harness) {
      const big = { text: "x".repeat(2 ** 20) };
      const { decisions } = harness;
      await refuses("payload_too_large", () => decisions.stage(sampleDraft({}, { metadata: big })));
      const { id } = await stagedIn("approved", harness);
      await refuses("payload_too_large", () => decisions.markExecuted(id, big));
      assert.equal((await decisions.get(id)).state, "approved");
    },
  },
];

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
