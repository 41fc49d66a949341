import type { AtPoint } from "../executor/crash-point.ts";
import type { Executor } from "../executor/executor.ts";
import type { Order } from "../executor/order.ts";
import { type Preview, previewHash } from "../model/approval.ts";
import type { CallAnswer } from "../model/call.ts";
import type { Decision, DecisionId } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { describeRollback } from "../operations/describe-rollback.ts";
import { rollback } from "../operations/rollback.ts";
import type { UndoDispatch } from "../operations/take-back.ts";
import { executedMove } from "../store/decision-moves.ts";
import type { TenantStore } from "../store/store.ts";
import { definitionHash } from "../tools/definition-hash.ts";
import { previewCall } from "../tools/preview-call.ts";
import type { Registry } from "../tools/registry.ts";
import { highestClass, safetyClassOf } from "../tools/safety-class.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonValue } from "../util/json.ts";
import { decodeAction, type PlannedCall } from "./action.ts";
import { answerOf } from "./answer-of.ts";
import { type JudgeParts, judgeCall } from "./judge-call.ts";
import { lookingCall } from "./looking-call.ts";

export interface DecideParts {
  readonly judging: JudgeParts;
  readonly store: TenantStore;
  readonly registry: Registry;
  readonly executor: Executor;
  readonly dispatchUndo: UndoDispatch;
  readonly at: AtPoint;
}

type Shown = { readonly preview: Preview; readonly hash: string };

/** What a reviewer sees of the calls of a decision, and what the approval will be bound to. */
export async function previewOf(
  decision: Decision,
  facts: Pick<Preview, "policyHash" | "expiresAt" | "nonce">,
  parts: Pick<DecideParts, "store" | "registry">,
): Promise<Preview> {
  const calls = decodeAction(decision);
  const looks = await lookAt(decision, calls, parts);
  const classes = calls.map(({ tool: name }) => {
    const tool = parts.registry.get(name);
    return tool === undefined ? "irreversible" : safetyClassOf(tool);
  });
  return {
    decisionId: decision.id,
    tenant: parts.store.tenant,
    actionHash: sha256Hex(decision.diff.raw),
    dryRun: looks.map(({ dryRun }) => dryRun),
    stateVersion: looks.map(({ stateVersion }) => stateVersion),
    safetyClass: highestClass(classes),
    ...facts,
  };
}

/**
 * Carries out an approved decision: every call in order, once. Before the first one the dry runs are repeated; if they show
 * something else than the reviewer saw, nothing runs. When a call fails, those before it are taken back in reverse.
 */
export async function runDecision(
  id: DecisionId,
  hash: string,
  parts: DecideParts,
): Promise<readonly CallAnswer[]> {
  const answers = await runFrom(0, await parts.store.decisions.get(id), parts, hash);
  parts.at("S8.before");
  return answers;
}

/** The calls from this step on; those before it were done, and are taken back when it cannot go on. */
export async function runFrom(
  first: number,
  decision: Decision,
  parts: DecideParts,
  approved?: string,
): Promise<readonly CallAnswer[]> {
  const { id, state } = decision;
  const shown = await parts.store.approvals.shown(id);
  if (state !== "approved" || shown === undefined) {
    const hint = "Only what was shown and approved can be carried out.";
    throw new SallyportError("illegal_transition", { id, from: state, to: "executed", hint });
  }
  const forged = forgeryOf(decision, shown, approved);
  if (forged !== undefined) {
    await takeBackAll(decision, forged, parts);
    return [{ answer: "failed", text: forged }];
  }
  const calls = decodeAction(decision);
  const drift = await driftOf(decision, calls, first, shown.preview, parts);
  if (drift !== undefined) {
    await takeBackAll(decision, drift, parts);
    return calls.slice(first).map(() => ({ answer: "failed", text: drift }));
  }
  const answers: CallAnswer[] = [];
  for (const [step, call] of calls.entries()) {
    if (step < first) continue;
    const answer = await runStep(decision, shown, call, step, calls.length, parts);
    answers.push(answer);
    if (answer.answer === "done") continue;
    if (answer.answer !== "unknown") await takeBackAll(decision, answer.text, parts);
    break;
  }
  return answers;
}

/** The bytes that would run must be those that were shown, whatever happened to the stored rows since. */
function forgeryOf(decision: Decision, shown: Shown, approved = shown.hash): string | undefined {
  const { preview, hash } = shown;
  const isWhole = previewHash(preview) === hash && hash === approved;
  if (isWhole && sha256Hex(decision.diff.raw) === preview.actionHash) return undefined;
  return "Not executed: what is stored is not what was approved. Tell the operator, and propose it again.";
}

async function runStep(
  decision: Decision,
  { preview, hash }: Shown,
  call: PlannedCall,
  step: number,
  steps: number,
  { registry, executor, judging, store }: DecideParts,
): Promise<CallAnswer> {
  const tool = registry.get(call.tool);
  if (tool === undefined) return { answer: "failed", text: `The tool "${call.tool}" is gone.` };
  const { sessionId } = decision;
  const chain = Array.isArray(decision.metadata["chain"])
    ? decision.metadata["chain"].map(String)
    : [];
  const { workingDirectory } = call;
  const caller = { tenant: store.tenant, sessionId, chain, workingDirectory };
  // A rule that was made since the approval binds it too: the stricter one wins.
  const judged = await judgeCall({ ...call }, caller, judging, "approved");
  if (judged.verdict === "deny" || judged.verdict === "failed") {
    return { answer: "failed", text: judged.text };
  }
  const order: Order = {
    operationId: `${decision.id}.${step}`,
    tool,
    definitionHash: call.definition,
    input: call.input,
    sessionId,
    messageId: String(decision.metadata["messageId"] ?? ""),
    callId: call.callId,
    turn: call.turn,
    step,
    workingDirectory,
    expectedVersions: await versionsFor(decision, step, preview, store),
    approval: { decisionId: decision.id, hash },
    actor: "executor",
    closes: closing(decision.id, step, steps),
  };
  return answerOf(await executor.run(order));
}

/** As it was shown, or as an earlier call of the same decision has left it. */
async function versionsFor(
  { id, sessionId }: Decision,
  step: number,
  { stateVersion }: Preview,
  { operations }: TenantStore,
): Promise<readonly string[]> {
  const shown = Array.isArray(stateVersion) ? String(stateVersion[step] ?? "") : "";
  const before = step === 0 ? [] : await operations.listBySession(sessionId, { decisionId: id });
  return [shown, ...before.map((operation) => operation.stateVersion)];
}

/** With the success of its last step a decision is executed, in the same transaction. */
export function closing(id: DecisionId, step: number, steps: number): NonNullable<Order["closes"]> {
  return (outcome) => {
    if (outcome.status !== "success" || step !== steps - 1) return undefined;
    const proof = { steps, output_sha256: sha256Hex(outcome.output.toWellFormed()) };
    return executedMove(id, proof, "executor");
  };
}

/** Takes back what was done of a decision, newest first, and closes it with what became of that. May be repeated. */
export async function takeBackAll(
  decision: Decision,
  reason: string,
  parts: DecideParts,
): Promise<void> {
  const { operations, decisions } = parts.store;
  const done = await operations.listBySession(decision.sessionId, { decisionId: decision.id });
  const reports: string[] = [];
  for (const { id: operationId, status } of [...done].reverse()) {
    if (status !== "success") continue;
    const scope = { sessionId: decision.sessionId, operationId };
    const report = await rollback({
      operations,
      scope,
      dispatch: parts.dispatchUndo,
      by: "executor",
    });
    reports.push(describeRollback(report));
  }
  await decisions.markFailed(decision.id, [reason, ...reports].join("\n"), { actor: "executor" });
}

interface Look {
  readonly dryRun: JsonValue;
  readonly stateVersion: JsonValue;
}

async function lookAt(
  decision: Decision,
  calls: readonly PlannedCall[],
  { store, registry }: Pick<DecideParts, "store" | "registry">,
): Promise<readonly Look[]> {
  return Promise.all(
    calls.map(async ({ tool: name, definition, input, workingDirectory, callId }) => {
      const tool = registry.get(name);
      if (tool === undefined || definitionHash(tool) !== definition) {
        return { dryRun: { unavailable: "the tool is gone or was changed" }, stateVersion: "" };
      }
      const { tenant } = store;
      const { sessionId } = decision;
      const call = lookingCall({ tenant, sessionId, callId, input, workingDirectory });
      const dryRun = await previewCall(tool, call);
      const stateVersion = (await tool.stateVersion?.(call)) ?? "";
      return {
        dryRun: dryRun === undefined ? { unavailable: "no dry run" } : { ...dryRun },
        stateVersion,
      };
    }),
  );
}

/** What differs from what the reviewer saw, in a sentence; undefined when nothing does. */
async function driftOf(
  decision: Decision,
  calls: readonly PlannedCall[],
  first: number,
  preview: Preview,
  parts: DecideParts,
): Promise<string | undefined> {
  // What was done has changed its target itself: only what is left can be compared.
  const from = (looks: JsonValue) =>
    canonicalJson(Array.isArray(looks) ? looks.slice(first) : looks);
  const now = await lookAt(decision, calls, parts);
  const dryRun = from(now.map((look) => look.dryRun));
  const approved = from(preview.dryRun);
  const isSameState = from(now.map((look) => look.stateVersion)) === from(preview.stateVersion);
  if (dryRun === approved && isSameState) return undefined;
  return (
    "Not executed: what would happen now is not what was approved. " +
    `Approved: ${approved}. Now: ${dryRun}. Propose it again, so that it is looked at anew.`
  );
}
