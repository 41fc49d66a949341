import {
  collectEvidence,
  type LedgerEntry,
  type RunEvidence,
  type Told,
} from "../../src/crashkit/evidence.ts";
import { createGate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import type { CallAnswer } from "../../src/model/operation.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { canonicalJson } from "../../src/util/canonical-json.ts";
import { manualClock } from "../../src/util/clock.ts";
import { sha256Hex } from "../../src/util/hash.ts";
import type { JsonObject } from "../../src/util/json.ts";
import { sampleVerdictValidator } from "./validators.ts";

/** One of everything: evidence in which nothing is wrong, for tests that then make one thing wrong. */
export interface StoryEvidence {
  readonly evidence: RunEvidence;
  /** The operation of a single approved call, of a call that the policy lets through, of one under a standing rule. */
  readonly single: string;
  readonly free: string;
  readonly ruled: string;
  /** A call that was undone, and the call that undid it. */
  readonly undone: string;
  readonly undo: string;
  /** Decisions: executed, failed with its two steps undone, rejected, and one that waits. */
  readonly executed: string;
  readonly failed: string;
  readonly rejected: string;
  readonly waiting: string;
}

export async function tellStory(): Promise<StoryEvidence> {
  const clock = manualClock(Date.parse("2026-11-15T06:00:00.000Z"));
  const store = memoryStore({ clock });
  const ledger: LedgerEntry[] = [];
  const told: Told[] = [];
  const tool = (name: string) =>
    defineTool({
      name,
      description: "Changes something.",
      input: { type: "object", properties: { by: { type: "integer" } }, required: ["by"] },
      safety: { effect: "external", reversible: name !== "w.back" },
      idempotency: "keyed",
      dryRun: ({ input }) => `would do ${canonicalJson(input as JsonObject)}`,
      execute({ input, idempotencyKey: key, fence }) {
        if ((input as { by: number }).by === 13) {
          return { text: "production refuses 13", isError: true };
        }
        const inputSha256 = sha256Hex(canonicalJson(input as JsonObject));
        ledger.push({ kind: "keyed", key, fence, inputSha256, applied: true, at: clock.now() });
        return { text: "did it", isError: false };
      },
      ...(name === "w.back"
        ? {}
        : { undo: ({ input }) => ({ tool: "w.back", input: input as JsonObject }) }),
    });
  const gate = createGate({
    store,
    tenant: "acme",
    tools: ["w.do", "w.free", "w.ruled", "w.back"].map(tool),
    validators: { tech: sampleVerdictValidator("t"), business: sampleVerdictValidator("b") },
    guard: allowAlways,
    policy: {
      version: "1",
      rules: [{ id: "f", effect: "allow", tool: "w.free", reason: "a test" }],
    },
    clock,
  });
  const person = "person:ada";
  const session = gate.sessions.open({ id: "s-1", agent: "agent:one" });
  const requests = (...all: readonly number[]) =>
    all.map((by, at) => ({ callId: `c-${by}-${at}`, tool: "w.do", input: { by } }));
  const asked = async (answer: CallAnswer): Promise<string> => {
    if (answer.answer !== "pending") throw new Error(`expected a question: ${answer.text}`);
    told.push({ decisionId: answer.decisionId, answer: "pending" });
    return answer.decisionId;
  };
  const approve = async (id: string): Promise<string> => {
    const hash = (await gate.interactions.shown(id))?.hash ?? "";
    const { answers } = await gate.interactions.approve(id, { hash, by: person });
    told.push({ decisionId: id, answer: "approved" });
    return answers.map((answer) => heard(answer)).at(-1) ?? "";
  };
  const heard = (answer: CallAnswer): string => {
    if (!("operationId" in answer) || answer.operationId === undefined) return "";
    const { operationId } = answer;
    if (answer.answer === "done" || answer.answer === "failed") {
      told.push({ operationId, answer: answer.answer });
    }
    return operationId;
  };

  const executed = await asked(await session.stage(requests(1)));
  const single = await approve(executed);
  clock.advance(5);
  const failed = await asked(await session.stage(requests(2, 3, 13)));
  await approve(failed);
  const rejected = await asked(await session.stage(requests(4)));
  const hash = (await gate.interactions.shown(rejected))?.hash ?? "";
  await gate.interactions.reject(rejected, { hash, by: person, reason: "not now" });
  told.push({ decisionId: rejected, answer: "rejected" });
  const free = heard(await session.call({ callId: "free", tool: "w.free", input: { by: 5 } }));
  await gate.killSwitch.stop("look", { actor: person });
  clock.advance(5);
  await gate.killSwitch.resume("looked", { actor: person });
  const pattern = { by: { atMost: 10 } };
  const rule = { tool: "w.ruled", pattern, reason: "small", forMs: 60_000, by: person };
  await gate.standingRules.make(rule);
  const ruled = heard(await session.call({ callId: "ruled", tool: "w.ruled", input: { by: 6 } }));
  const other = gate.sessions.open({ id: "s-2", agent: "agent:two" });
  const undone = heard(await other.call({ callId: "back", tool: "w.free", input: { by: 7 } }));
  const report = await other.rollback(person);
  const waiting = await asked(await session.stage(requests(8)));
  const outside = {
    ledger,
    told,
    keyed: ["c-1-0", "c-2-0", "c-3-1", "c-13-2", "c-4-0", "c-8-0", "free", "ruled", "back"],
    isAtRest: true,
    mayRunAlone: (name: string) => name === "w.free",
  };
  return {
    evidence: await collectEvidence(store, "acme", outside),
    single,
    free,
    ruled,
    undone,
    undo: report.undone[0]?.undoOperationId ?? "",
    executed,
    failed,
    rejected,
    waiting,
  };
}
