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
import type { ToolCall } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonValue } from "../util/json.ts";
import { decodeAction, type PlannedCall } from "./action.ts";
import { answerOf } from "./answer-of.ts";

export interface DecideParts {
  readonly store: TenantStore;
  readonly registry: Registry;
  readonly executor: Executor;
  readonly dispatchUndo: UndoDispatch;
  readonly workingDirectory: string;
}

/** What a reviewer sees of the calls of a decision, and what the approval will be bound to. */
export async function previewOf(
  decision: Decision,
  facts: Pick<Preview, "policyHash" | "expiresAt" | "nonce">,
  parts: Pick<DecideParts, "store" | "registry" | "workingDirectory">,
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
  parts: DecideParts,
): Promise<readonly CallAnswer[]> {
  const { store } = parts;
  const decision = await store.decisions.get(id);
  const shown = await store.approvals.shown(id);
  if (decision.state !== "approved" || shown === undefined) {
    const hint = "Only what was shown and approved can be carried out.";
    throw new SallyportError("illegal_transition", {
      id,
      from: decision.state,
      to: "executed",
      hint,
    });
  }
  const calls = decodeAction(decision);
  const drift = await driftOf(decision, calls, shown.preview, parts);
  if (drift !== undefined) {
    await store.decisions.markFailed(id, drift, { actor: "executor" });
    return calls.map(() => ({ answer: "failed", text: drift }));
  }
  const answers: CallAnswer[] = [];
  for (const [step, call] of calls.entries()) {
    const answer = await runStep(
      decision,
      previewHash(shown.preview),
      call,
      step,
      calls.length,
      parts,
    );
    answers.push(answer);
    if (answer.answer === "done") continue;
    if (answer.answer === "failed") await takeBackAll(decision, answer.text, parts);
    break;
  }
  return answers;
}

async function runStep(
  decision: Decision,
  hash: string,
  call: PlannedCall,
  step: number,
  steps: number,
  { registry, executor, workingDirectory }: DecideParts,
): Promise<CallAnswer> {
  const tool = registry.get(call.tool);
  if (tool === undefined) return { answer: "failed", text: `The tool "${call.tool}" is gone.` };
  const order: Order = {
    operationId: `${decision.id}.${step}`,
    tool,
    definitionHash: call.definition,
    input: call.input,
    sessionId: decision.sessionId,
    messageId: String(decision.metadata["messageId"] ?? ""),
    callId: `${decision.id}.${step}`,
    turn: 0,
    step,
    workingDirectory,
    approval: { decisionId: decision.id, hash },
    actor: "executor",
    closes: (outcome) =>
      outcome.status === "success" && step === steps - 1
        ? executedMove(
            decision.id,
            { steps, output_sha256: sha256Hex(outcome.output.toWellFormed()) },
            "executor",
          )
        : undefined,
  };
  return answerOf(await executor.run(order));
}

async function takeBackAll(decision: Decision, reason: string, parts: DecideParts): Promise<void> {
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
  {
    store,
    registry,
    workingDirectory,
  }: Pick<DecideParts, "store" | "registry" | "workingDirectory">,
): Promise<readonly Look[]> {
  return Promise.all(
    calls.map(async ({ tool: name, definition, input }, step) => {
      const tool = registry.get(name);
      if (tool === undefined || definitionHash(tool) !== definition) {
        return { dryRun: { unavailable: "the tool is gone or was changed" }, stateVersion: "" };
      }
      const call: ToolCall = {
        callId: `${decision.id}.${step}`,
        input,
        context: {
          tenant: store.tenant,
          sessionId: decision.sessionId,
          signal: AbortSignal.timeout(60_000),
          workingDirectory,
          progress: () => {},
          idempotencyKey: "",
          fence: 0,
        },
      };
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
  preview: Preview,
  parts: DecideParts,
): Promise<string | undefined> {
  const now = await lookAt(decision, calls, parts);
  const dryRun = canonicalJson(now.map((look) => look.dryRun));
  const versions = canonicalJson(now.map((look) => look.stateVersion));
  if (
    dryRun === canonicalJson(preview.dryRun) &&
    versions === canonicalJson(preview.stateVersion)
  ) {
    return undefined;
  }
  return (
    "Not executed: what would happen now is not what was approved. " +
    `Approved: ${canonicalJson(preview.dryRun)}. Now: ${dryRun}. Propose it again, so that it is looked at anew.`
  );
}
