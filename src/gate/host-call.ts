// A call that its caller executes itself: a coding agent's own tool, for which its hook asks before and reports after. Before it:
// judge, or decide where a person was asked. After it: the caller acts under the permit, then reports; or recover when it does not.

import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { CallAnswer, CallRequest, EditedCall } from "../model/operation.ts";
import type { StandingRule } from "../model/standing-rule.ts";
import { allowingRules } from "../policy/decide.ts";
import { callKeyId } from "../store/decisions.ts";
import { metadataOf } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { definedFields } from "../util/defined-fields.ts";
import { operationOf, operationOfKey, REFUSALS, recorded, resultOfId } from "./answers.ts";
import type { GateContext } from "./context.ts";
import type { Caller, Judged } from "./judge.ts";
import { type Permit, type PermitOutcome, permitsOf, reportOutcome } from "./permit.ts";
import { permitOf, startPermit } from "./permit-tool.ts";

/** The permit to execute the call now, once; or the answer of a call that may not run, or not yet. */
export type PermitAnswer =
  | {
      readonly answer: "permitted";
      /** Which rule allowed it, or who. */
      readonly text: string;
      readonly permit: Permit;
      /** Set when people changed the call: only `permit.calls` may be executed. */
      readonly edited?: EditedCall;
    }
  | CallAnswer;

export interface PermitTerms {
  /** Who executes it and reports. */
  readonly by: string;
  /** How long it may take without a report before people are asked what happened. */
  readonly leaseMs?: number;
}

export const NOT_EXTERNAL: CallAnswer = Object.freeze({
  answer: "failed",
  text: "Not executed: the gate executes this tool itself, so there is no permit for it. Call it through the gate.",
});

type Allowed = Extract<Judged, { verdict: "allow" | "review" | "ask" }>;

/** The rules allow it, so its permit is an operation without a decision. */
export async function permitAllowed(
  context: GateContext,
  judged: Allowed,
  request: CallRequest,
  caller: Caller,
  { by, leaseMs = context.leaseMs, rule }: PermitTerms & { readonly rule?: StandingRule },
): Promise<PermitAnswer> {
  const { store } = context;
  const { tool, definition, input, decision, facts } = judged;
  const { callId, messageId = "", turn = 0, key = request.requestKey } = request;
  const { sessionId, workingDirectory, owner = "" } = caller;
  const askers = owner === "" ? caller.chain : [...caller.chain, owner];
  const rules = rule === undefined ? allowingRules(facts, context.policy) : [];
  const held = rule === undefined ? [] : [store.standingRules.holdOf(rule)];
  const begun = await startPermit(context, {
    id: key === undefined ? context.newId() : callKeyId(sessionId, key),
    sessionId,
    messageId,
    callId,
    turn,
    tool: tool.name,
    effect: metadataOf(tool).effect,
    definitionHash: definition,
    input: canonicalJson(input),
    workingDirectory,
    // Neither those who asked nor the executor say what became of it when its outcome is lost.
    chain: [...askers, by],
    step: 0,
    undoOf: "",
    approval: undefined,
    executor: by,
    holds: [...held, ...context.claimHolds(caller.claim)],
    allowedBy: rule === undefined ? ["policy", ...rules].join(":") : `rule:${rule.id}`,
    leaseMs,
    actor: by,
  });
  if (!begun.started) {
    const { reason, operation } = begun;
    if (operation !== undefined) return recorded(operation);
    return { answer: "failed", text: REFUSALS[reason] };
  }
  const call = { tool: tool.name, definition, input, workingDirectory, callId, turn };
  const raw = new TextEncoder().encode(canonicalJson(input));
  const permit = { ...permitOf(context, begun.operation), hash: "", raw, calls: [call] };
  const said = decision.findings.map(({ message }) => message).join(" ");
  const allowed =
    rule === undefined
      ? `The rules allow it${rules.length === 0 ? "" : ` (${rules.join(", ")})`}.`
      : `Standing rule ${rule.id} allows it.`;
  return { answer: "permitted", text: `${allowed} ${said}`.trim(), permit };
}

/** A permit without a decision that was not used: the call is judged again, and the permit taken under a new fence. */
export async function wasGivenBack(
  { store }: GateContext,
  sessionId: string,
  key: string | undefined,
): Promise<boolean> {
  if (key === undefined) return false;
  const operation = await operationOf(callKeyId(sessionId, key), store);
  return operation?.status === "returned" && operation.decisionId === "";
}

/** What people approved and no process has begun is permitted now; every other answer stays. */
export async function permitApproved(
  context: GateContext,
  answer: CallAnswer,
  how: PermitTerms,
): Promise<PermitAnswer> {
  if (answer.answer !== "pending" || answer.decisionId === "") return answer;
  const { decisionId, edited } = answer;
  const { state } = await context.store.decisions.get(decisionId);
  if (state !== "approved") return answer;
  let permit: Permit;
  try {
    permit = await permitsOf(context).take(decisionId, how);
  } catch (error) {
    // Its answer says who holds or has used it.
    if (isSallyportError(error, "permit_taken")) return answer;
    throw error;
  }
  const text = `Approved as decision ${decisionId}.`;
  return definedFields({ answer: "permitted" as const, text, permit, edited });
}

/**
 * What came of the call with this key, or this operation of the session, from the one who executed it. The operation says under which fence it is held.
 * Throws permit_lost when no permit was taken for it, and what `permits.report` throws.
 */
export async function reportCall(
  context: GateContext,
  sessionId: string,
  key: string,
  { by, ...outcome }: { readonly by: string } & PermitOutcome,
): Promise<CallAnswer> {
  const { store } = context;
  const operation =
    (await operationOfKey(sessionId, key, store)) ?? (await operationOf(key, store));
  if (operation === undefined || operation.sessionId !== sessionId) {
    throw new SallyportError("permit_lost", {
      id: key,
      hint: "No permit was taken for this call.",
    });
  }
  await reportOutcome(context, operation.id, { by, fence: operation.fence, ...outcome });
  return (
    (await resultOfId(sessionId, key, store)) ?? recorded(await store.operations.get(operation.id))
  );
}
