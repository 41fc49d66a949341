// Step "permit": an external executor carries out an approved decision. It takes the single-use right to do so, renews it while
// it works, and reports what came of it. Before it: decide, or the reviews of a payload that was staged from outside. After it:
// nothing, or recover when no report comes. A permit is an operation with an executor, so it takes the place of attempt and
// settle, and everything that holds for operations holds for it.

import type { Decision, DecisionId } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { lostId, whyClosed } from "../model/interaction.ts";
import type { Instant } from "../model/names.ts";
import type { CallAnswer, Operation, OperationId } from "../model/operation.ts";
import {
  type By,
  type DecisionMove,
  type DecisionPage,
  executedMove,
  failedMove,
  permitTaken,
} from "../store/decisions.ts";
import type { Along } from "../store/engine.ts";
import { closingStep, type Shown } from "../store/interactions.ts";
import type { Hold, Intent, Outcome, StartAnswer } from "../store/operations.ts";
import { metadataOf } from "../tools/tool.ts";
import { processResult } from "../tools/tool-call.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import { isExternal, operationOf, REFUSALS, recorded } from "./answers.ts";
import type { GateContext } from "./context.ts";
import type { FoundOut } from "./inbox.ts";
import { checkPermitLease, permitOf, startPermit, undoOfReport } from "./permit-tool.ts";
import { takeBackAll } from "./rollback.ts";
import { changedSince, forgeryOf, judgedAgain } from "./run.ts";
import { lostFrom } from "./settle.ts";
import {
  askersOf,
  type CallDecision,
  type PlannedCall,
  requestedBy,
  withProposal,
} from "./show.ts";

/**
 * The single-use right of an external executor to execute one approved decision. Throws not_found for an unknown id and
 * not_allowed for another executor's permit.
 */
export interface Permits {
  /**
   * Of many executors one gets the permit. Throws illegal_transition when the decision is not approved, approval_void when it
   * expired or is not what was approved any more, permit_taken when another has it or it was used, stopped, claim_lost,
   * not_allowed when a delegation behind it ended or the gate executes it itself.
   */
  take(decisionId: DecisionId, how: TakePermit): Promise<Permit>;
  /** Approved decisions for external executors, oldest first; also those whose permit is taken. */
  waiting(page: DecisionPage): Promise<readonly Decision[]>;
  /** Extends the lease while the work goes on. Throws permit_lost. */
  renew(id: OperationId, held: HeldPermit & { readonly leaseMs?: number }): Promise<Renewed>;
  /**
   * What came of it, once: the same report again changes nothing. After the lease ran out it counts until a person has said
   * what happened. Throws permit_lost, already_final with another outcome, already_answered with who was first.
   */
  report(id: OperationId, report: HeldPermit & PermitOutcome): Promise<Decision>;
  /** The executor says that it did not start and will not: another one may take the permit. Throws permit_lost. */
  giveBack(id: OperationId, held: HeldPermit): Promise<void>;
}

export interface TakePermit {
  /** The executor: only it may renew, report and give back. */
  readonly by: string;
  /** Refused unless this is the hash that was approved. */
  readonly hash?: string;
  readonly leaseMs?: number;
}

export interface HeldPermit {
  readonly by: string;
  readonly fence: number;
}

export interface Permit {
  readonly id: OperationId;
  /** Empty for a call that the rules allowed without a decision; see `session.permit`. */
  readonly decisionId: DecisionId | "";
  readonly sessionId: string;
  readonly fence: number;
  /** By the store's clock. Without a report by then, people are asked what happened. */
  readonly leaseUntil: Instant;
  /** The same for every permit of this decision, for targets that know keys. */
  readonly idempotencyKey: string;
  /** The hash that was approved; empty for a payload that was staged from outside. */
  readonly hash: string;
  /** The exact bytes that were approved. */
  readonly raw: Uint8Array;
  /** The same as calls; undefined for a payload that was staged from outside. */
  readonly calls?: readonly PlannedCall[];
}

export interface Renewed {
  readonly leaseUntil: Instant;
  /** Everything was stopped since: an executor that has not begun must give the permit back. */
  readonly stopped: boolean;
}

export type PermitOutcome =
  | {
      readonly outcome: "executed";
      /** Stored as given and never inspected. */
      readonly proof?: unknown;
      /** What the agent reads. */
      readonly output?: string;
    }
  /** It was tried and did not happen. An executor that does not know says nothing, and people are asked. */
  | { readonly outcome: "failed"; readonly reason: string };

export function permitsOf(context: GateContext): Permits {
  const { operations, killSwitch } = context.store;
  return {
    take: (decisionId, how) => take(context, decisionId, how),
    async waiting(page) {
      const { decisions, interactions } = context.store;
      const found: Decision[] = [];
      for (const decision of await decisions.list({ ...page, states: ["approved"] })) {
        const isOutside = decision.origin !== "port";
        if (isOutside || isExternal(await interactions.shown(decision.id))) found.push(decision);
      }
      return found;
    },
    async renew(id, { by, fence, leaseMs = context.leaseMs }) {
      await ownPermit(context, id, by);
      checkPermitLease(leaseMs);
      const isOurs = await operations.renew(id, fence, leaseMs);
      const { leaseUntil, ...now } = await operations.get(id);
      if (!isOurs) throw await lost(context, now);
      return { leaseUntil, stopped: await killSwitch.isStopped() };
    },
    async report(id, report) {
      const { decisionId } = await ownPermit(context, id, report.by);
      if (decisionId === "") {
        const hint = "No decision is behind it. Report it with session.report.";
        throw new SallyportError("illegal_transition", { id, hint });
      }
      await reportOutcome(context, id, report);
      return context.store.decisions.get(decisionId);
    },
    async giveBack(id, { by, fence }) {
      await ownPermit(context, id, by);
      const giving = { fence, from: "started", actor: by } as const;
      const { settled, operation } = await operations.giveBack(id, giving);
      if (!settled) throw await lost(context, operation);
    },
  };
}

/** Shares its id with the decision's first call, so that of a permit and an execution here only one can begin. */
function permitId(id: DecisionId): OperationId {
  return `${id}.0`;
}

async function take(
  context: GateContext,
  decisionId: DecisionId,
  { by, hash, leaseMs = context.leaseMs }: TakePermit,
): Promise<Permit> {
  checkPermitLease(leaseMs);
  const { store } = context;
  const decision = await store.decisions.get(decisionId);
  if (decision.state !== "approved") throw notApproved(decision);
  const terms = await termsOf(context, decision);
  if (hash !== undefined && hash !== terms.hash) {
    const hint = "It is not what you saw. Look at the decision again.";
    throw new SallyportError("approval_void", { id: decisionId, hint });
  }
  const intent = intentOf(decision, terms, { by, leaseMs });
  const begun = await startPermit(context, { ...intent, holds: terms.holds });
  if (!begun.started) throw refusal(decision, begun);
  return {
    ...permitOf(context, begun.operation),
    hash: terms.hash ?? "",
    raw: decision.diff.raw,
    ...(terms.calls === undefined ? {} : { calls: terms.calls }),
  };
}

/** What a permit is bound to, besides the state of the decision. */
interface Terms extends Pick<Intent, "tool" | "input" | "definitionHash" | "effect"> {
  readonly hash: string | undefined;
  readonly calls?: readonly PlannedCall[];
  readonly holds: readonly Hold[];
}

async function termsOf(context: GateContext, decision: Decision): Promise<Terms> {
  const shown = await context.store.interactions.shown(decision.id);
  if (decision.origin === "port") return callTerms(context, decision, shown);
  return { ...outsideTerms(decision), hash: shown?.hash, holds: [] };
}

/** A payload that only its author can read: it stands here by its hash, and its bytes are in the decision. */
function outsideTerms({ diff }: Decision) {
  const input = canonicalJson({ raw_sha256: sha256Hex(diff.raw) });
  return { tool: diff.sourceTool, input, definitionHash: "", effect: "external" };
}

/** The same checks as before an execution here: the bytes, the rules, the tools, the dry run, the gate's judgement. */
async function callTerms(
  context: GateContext,
  stored: Decision,
  shown: Shown | undefined,
): Promise<Terms> {
  const { id } = stored;
  const { store, registry } = context;
  if (shown === undefined) throw notApproved(stored);
  const forged = forgeryOf(stored, shown);
  if (forged !== undefined) throw await given(context, stored, forged);
  if (!isExternal(shown)) {
    const hint = "Its tools are executed by the gate itself, not by external executors.";
    throw new SallyportError("not_allowed", { id, hint });
  }
  const decision = withProposal(stored);
  const { calls, claim } = decision.proposal;
  const missing = calls.find(({ tool }) => registry.get(tool) === undefined);
  if (missing !== undefined) {
    const hint = `This process does not know "${missing.tool}" and cannot check the call. Ask one that does.`;
    throw new SallyportError("illegal_transition", { id, hint });
  }
  // Not even a dry run while everything is stopped: it would have to be repeated later.
  if (await store.killSwitch.isStopped()) throw stopped(id);
  const changed = await changedSince(context, decision, shown, 0);
  if (changed === "elsewhere") throw permitTaken(id);
  if (changed !== undefined) throw new SallyportError("approval_void", { id, hint: changed.text });
  for (const call of calls) {
    const again = await judgedAgain(context, decision, call);
    if ("text" in again) throw await given(context, decision, again.text);
  }
  return {
    ...callFacts(context, decision),
    hash: shown.hash,
    calls,
    holds: [store.epoch.holdOf(shown.preview.epoch), ...context.claimHolds(claim)],
  };
}

/** A bundle is executed as a whole, under one permit. */
function callFacts({ registry }: GateContext, { proposal: { calls } }: CallDecision) {
  const [first] = calls;
  if (first === undefined || calls.length > 1) {
    const input = canonicalJson(calls.map(({ tool, input }) => ({ tool, input })));
    return { tool: "bundle", input, definitionHash: "", effect: "external" };
  }
  const { tool: name, definition: definitionHash } = first;
  const tool = registry.get(name);
  const effect = tool === undefined ? "external" : metadataOf(tool).effect;
  return { tool: name, input: canonicalJson(first.input), definitionHash, effect };
}

/** What may not be executed any more is given up, as when the gate executes it itself. */
async function given(context: GateContext, decision: Decision, hint: string): Promise<Error> {
  await takeBackAll(context, decision, hint);
  return new SallyportError("approval_void", { id: decision.id, hint });
}

function intentOf(
  decision: Decision,
  terms: Pick<Terms, "tool" | "input" | "definitionHash" | "effect" | "hash" | "calls">,
  { by, leaseMs }: { readonly by: string; readonly leaseMs: number },
): Intent {
  const { id, sessionId } = decision;
  const requested = requestedBy(decision);
  const { tool, input, definitionHash, effect, hash } = terms;
  const [first] = terms.calls ?? [];
  return {
    id: permitId(id),
    sessionId,
    messageId: requested.messageId,
    callId: first?.callId ?? id,
    turn: first?.turn ?? 0,
    tool,
    effect,
    definitionHash,
    input,
    workingDirectory: first?.workingDirectory ?? "",
    // Neither those who asked nor the executor say what became of it when its outcome is lost.
    chain: [...askersOf(requested), by],
    step: 0,
    undoOf: "",
    approval: { decisionId: id, hash },
    executor: by,
    leaseMs,
    actor: by,
  };
}

function refusal(decision: Decision, answer: StartAnswer & { started: false }): SallyportError {
  const { id } = decision;
  const { reason, operation } = answer;
  switch (reason) {
    case "stopped":
      return stopped(id);
    case "not_approved":
      return notApproved(decision);
    case "claim_lost":
      return new SallyportError("claim_lost", { id });
    case "delegation_ended":
      return new SallyportError("not_allowed", { id, hint: REFUSALS[reason] });
    case "used_up":
      return takenBy(id, operation);
    default:
      return new SallyportError("approval_void", { id, hint: REFUSALS[reason] });
  }
}

function takenBy(id: DecisionId, operation: Operation | undefined): SallyportError {
  if (operation === undefined) return permitTaken(id);
  const { executor: by, status, leaseUntil } = operation;
  const isHeld = status === "started";
  const hint = isHeld ? `${by} holds it until ${leaseUntil}.` : "It was used before.";
  return new SallyportError("permit_taken", { id, by, status, hint });
}

function stopped(id: DecisionId): SallyportError {
  return new SallyportError("stopped", { id, hint: "Take the permit once work was resumed." });
}

function notApproved({ id, state }: Decision): SallyportError {
  const hint = "Only what is approved and not closed can be executed.";
  return new SallyportError("illegal_transition", { id, from: state, to: "executed", hint });
}

async function ownPermit({ store }: GateContext, id: OperationId, by: string): Promise<Operation> {
  const operation = await store.operations.get(id);
  if (operation.executor === "") {
    const hint = "It is not a permit: the gate executes this itself.";
    throw new SallyportError("illegal_transition", { id, hint });
  }
  if (operation.executor === by) return operation;
  const hint = "Only the executor that took the permit may use it.";
  throw new SallyportError("not_allowed", { id, by, hint });
}

export async function reportOutcome(
  context: GateContext,
  id: OperationId,
  { by, fence, ...report }: HeldPermit & PermitOutcome,
): Promise<void> {
  const { operations } = context.store;
  const first = await ownPermit(context, id, by);
  const { decisionId } = first;
  const outcome = await outcomeOf(context, first, report);
  const closes = decisionId === "" ? {} : { closes: closingMove(decisionId, report, by) };
  for (let now = first; ; ) {
    const { status, attempt } = now;
    if (now.fence !== fence || (status !== "started" && status !== "unknown")) {
      const why = await lost(context, now);
      // The same report again: the answer to the first one may have been lost.
      const isRepeat = why.code === "already_final" && status === outcome.status;
      if (isRepeat && now.fence === fence) return;
      throw why;
    }
    // A report is a fact: it closes the question about the lost outcome unless a person has answered it.
    const along = status === "unknown" ? [answeredByReport(id, attempt, by)] : [];
    const settlement = { fence, from: status, outcome, actor: by, along } as const;
    const { settled, operation } = await operations.settle(id, { ...settlement, ...closes });
    if (settled) return;
    if (operation.status === status && operation.fence === fence) {
      // No other report came first, so the decision was closed by hand. The outcome is recorded nevertheless.
      const alone = await operations.settle(id, settlement);
      if (alone.settled) return;
    }
    now = await operations.get(id);
  }
}

function answeredByReport(id: OperationId, attempt: number, by: string): Along {
  const reason = `${by} has reported what came of it.`;
  return closingStep(lostId(id, attempt), { outcome: "canceled", by, reason }, {});
}

function closingMove(id: DecisionId, report: PermitOutcome, by: string): DecisionMove {
  return report.outcome === "executed"
    ? executedMove(id, report.proof, by)
    : failedMove(id, report.reason, by);
}

type ReportedOperation = Pick<Operation, "sessionId" | "callId" | "tool" | "executor">;

async function outcomeOf(
  context: GateContext,
  operation: ReportedOperation | Operation,
  report: PermitOutcome,
): Promise<Outcome> {
  if (report.outcome === "failed") {
    return { status: "failed", error: report.reason, output: report.reason };
  }
  const { output = `Carried out by ${operation.executor}.` } = report;
  const shown = await shortened(context, operation, output);
  const { undo, lost } = "fence" in operation ? await undoOfReport(context, operation, report) : {};
  const text = lost === undefined ? shown.output : `${shown.output}\n${lost}`;
  return { status: "success", ...shown, output: text, undo, stateVersion: "" };
}

/** The processor may remove secrets from the output, so when it fails none of the output is shown. */
async function shortened({ processor, store }: GateContext, of: ReportedOperation, text: string) {
  try {
    const { sessionId, callId, tool } = of;
    const call = { tenant: store.tenant, sessionId, callId, tool };
    const { text: output, ...rest } = await processResult(processor, call, text);
    return { output, ...rest };
  } catch (error) {
    const output = `[The output is withheld: it could not be looked through (${errorText(error)}).]`;
    return { output, truncated: false, storedPath: "" };
  }
}

/** Why this permit is of no use any more, and who was first. */
async function lost(
  { store }: GateContext,
  { id, status, attempt, fence }: Omit<Operation, "leaseUntil">,
): Promise<SallyportError> {
  const question = await store.interactions.peek(lostId(id, attempt));
  if (question?.outcome === "answered") return whyClosed(question);
  if (status === "success" || status === "failed" || status === "rolled_back") {
    const hint = "Its outcome was reported before, and that report stands.";
    return new SallyportError("already_final", { id, status, fence, hint });
  }
  const hint = WHY_LOST[status];
  return new SallyportError("permit_lost", { id, status, fence, hint });
}

const WHY_LOST = {
  started: "Its lease ran out, or another executor took the permit under a newer fence.",
  unknown: "Its lease ran out and a person is asked what happened. Report it if you know.",
  returned: "It was given back. Take it again before you begin.",
} as const;

/**
 * For those who report an outcome without a permit: taking it and reporting are one transaction. Undefined when this is not
 * for a permit: the gate executes the decision itself, or it was begun or closed before.
 */
export async function reportWithout(
  context: GateContext,
  id: DecisionId,
  report: PermitOutcome,
  { actor }: By,
): Promise<Decision | undefined> {
  const { store } = context;
  const decision = await store.decisions.get(id);
  if (decision.state !== "approved") return undefined;
  const shown = await store.interactions.shown(id);
  const isOutside = decision.origin !== "port";
  if (!isOutside && !isExternal(shown)) return undefined;
  const live = await operationOf(permitId(id), store);
  if (live !== undefined) {
    const isOwn = live.executor === actor && live.status !== "returned";
    if (!isOwn) return undefined;
    await reportOutcome(context, live.id, { ...report, by: actor, fence: live.fence });
    return store.decisions.get(id);
  }
  const facts = isOutside ? outsideTerms(decision) : callFacts(context, withProposal(decision));
  const terms = { ...facts, hash: shown?.hash };
  const intent = intentOf(decision, terms, { by: actor, leaseMs: context.leaseMs });
  const outcome = await outcomeOf(
    context,
    { sessionId: decision.sessionId, callId: intent.callId, tool: intent.tool, executor: actor },
    report,
  );
  const closes = closingMove(id, report, actor);
  const { settled } = await store.operations.report(intent, { outcome, closes });
  return settled ? store.decisions.get(id) : undefined;
}

/** The lease of a permit ran out and no report came: people are asked, and it is not given to anybody else. */
export async function askAboutPermit(
  { store }: GateContext,
  operation: Operation,
): Promise<CallAnswer | undefined> {
  const { id, fence, executor } = operation;
  const error = `${executor} took the permit and did not report`;
  const { settled, operation: now } = await store.operations.settle(id, {
    fence,
    from: "abandoned",
    outcome: { status: "unknown", error },
    actor: "recovery",
    along: [lostFrom(operation, error, "recovery")],
  });
  return settled ? recorded(now) : undefined;
}

/**
 * A person says what became of a permit that was not reported. The decision is closed with it, or the permit may be taken
 * again. Undefined when an answer or a report was first.
 */
export async function settlePermit(
  { store }: GateContext,
  { id, fence, decisionId }: Operation,
  found: FoundOut & { readonly by: string },
  answer: Along,
): Promise<CallAnswer | undefined> {
  const { by } = found;
  const common = { fence, from: "unknown", actor: by, along: [answer] } as const;
  if (!found.happened && found.otherwise === "repeat") {
    const { settled, operation } = await store.operations.giveBack(id, common);
    return settled ? recorded(operation) : undefined;
  }
  const reason = `It did not happen: ${by} looked.`;
  const output = (found.happened ? found.output : undefined) ?? `It happened: ${by} looked.`;
  const outcome: Outcome = found.happened
    ? {
        status: "success",
        output,
        truncated: false,
        storedPath: "",
        undo: undefined,
        stateVersion: "",
      }
    : { status: "failed", error: reason, output: reason };
  const report: PermitOutcome = found.happened
    ? { outcome: "executed", proof: { found_by: by } }
    : { outcome: "failed", reason };
  const closing = decisionId === "" ? [] : [{ closes: closingMove(decisionId, report, by) }];
  // Without the move where the decision was closed by hand meanwhile, and where there is none.
  for (const moves of [...closing, {}]) {
    const { settled, operation } = await store.operations.settle(id, {
      ...common,
      outcome,
      ...moves,
    });
    if (settled) return recorded(operation);
  }
  return undefined;
}

/** Whether a question about a lost outcome is about a permit. */
export function isPermit({ executor }: Pick<Operation, "executor">): boolean {
  return executor !== "";
}
