// Step "judge": schema, confidence, permission, policies, hooks, checkpoint. Before it: nothing; every call meets it first, and
// again before it runs. After it: run (allowed), or propose (a person is asked).

import { type BoundCaller, boundOf } from "../delegation/bounds.ts";
import type { CallAnswer, CallRequest } from "../model/call.ts";
import { SallyportError } from "../model/errors.ts";
import type { Finding, Grant } from "../model/finding.ts";
import { parseJson } from "../model/parse-json.ts";
import { type CallFacts, isBlocking } from "../policy/answers.ts";
import { runCheckpoint } from "../policy/checkpoint.ts";
import { checkConfidence } from "../policy/confidence.ts";
import { decide, type GateDecision } from "../policy/decide.ts";
import { type GatePolicy, runPolicies } from "../policy/gate-policy.ts";
import { mergeHooks, runHooks } from "../policy/hooks.ts";
import type { GateEvaluation } from "../store/gate-ledger.ts";
import type { ClaimRef } from "../store/tasks.ts";
import { checkClaim } from "../tasks/claim-next.ts";
import { definitionHash } from "../tools/definition.ts";
import { placesOf, resolveResources } from "../tools/resources.ts";
import { capabilityOf, metadataOf } from "../tools/safety.ts";
import type { Resource, Tool } from "../tools/tool.ts";
import { inputError } from "../tools/tool-input.ts";
import { errorText } from "../util/error-text.ts";
import type { JsonValue } from "../util/json.ts";
import type { GateContext } from "./context.ts";

/** Who asks, and from where. */
export interface Caller {
  readonly tenant: string;
  readonly sessionId: string;
  /** The agent, then each agent that delegated to it. */
  readonly chain: readonly string[];
  /** On whose behalf; empty when nobody was named. */
  readonly owner?: string;
  /** The claim of a task under which it works: once that is over, so are its calls. */
  readonly claim?: ClaimRef;
  readonly workingDirectory: string;
  /** Ends its calls. */
  readonly signal?: AbortSignal;
  /** It continues an undo that was begun. */
  readonly takesBack?: boolean;
}

/** A judged call: refused with a text for the model, or ready to run or to be staged. */
export type Judged =
  | { readonly verdict: "failed"; readonly text: string }
  | { readonly verdict: "deny"; readonly text: string; readonly findings: readonly Finding[] }
  | {
      readonly verdict: "allow" | "ask";
      readonly tool: Tool;
      readonly definition: string;
      readonly input: JsonValue;
      readonly decision: GateDecision;
      readonly facts: CallFacts;
      /** The resolved paths of what it names; see `ToolContext.places`. */
      readonly places: readonly string[];
      /** A person allows each call; a standing rule does not replace that. */
      readonly needsPerson: boolean;
    };

const ASK_MS = 60_000;

/**
 * The one check for every call, however it arrives: direct, batched, staged, approved, resumed or undone. The agent's
 * confidence belongs to its own call and is not asked for again; what a person approved needs no checkpoint.
 */
export async function judgeCall(
  context: GateContext,
  request: CallRequest,
  caller: Caller,
  again?: "approved" | "undo",
): Promise<Judged> {
  const tool = context.registry.get(request.tool);
  if (tool === undefined) {
    return {
      verdict: "failed",
      text: `There is no tool "${request.tool}". Use one of those listed.`,
    };
  }
  const { confidenceMin: min, checkpoint } = capabilityOf(tool);
  const { confidenceKey: key } = context;
  const confident = checkConfidence(request.input, {
    min: again === undefined ? min : 0,
    ...(key === undefined ? {} : { key }),
  });
  if (!confident.ok) {
    const finding = {
      severity: "soft-deny",
      policy: "confidence",
      message: confident.message,
    } as const;
    return { verdict: "deny", text: confident.message, findings: [finding] };
  }
  const parsed = readInput(tool, confident.input);
  if ("text" in parsed) return { verdict: "failed", text: parsed.text };
  const { input } = parsed;
  const { workingDirectory } = caller;
  const touched = touchedBy(tool, input, workingDirectory);
  if ("text" in touched) return { verdict: "failed", text: touched.text };
  const event = { tool: tool.name, sessionId: caller.sessionId, callId: request.callId };
  const waiting = { timers: context.timers, timeoutMs: ASK_MS };
  const isUndo = again === "undo" || caller.takesBack === true;
  if (tool.undoOnly === true && !isUndo) return onlyAsUndo(tool);
  const { claim } = caller;
  const { tasks } = context.store;
  const lost = claim === undefined || isUndo ? [] : await checkClaim(tasks, claim, context.clock);
  if (lost.length > 0) return { verdict: "deny", text: textOf(tool, lost), findings: lost };
  const bound = await bindingOf(context, caller, isUndo ? "undo" : "call");
  const hooks =
    context.hooks.length > 0
      ? await runHooks(context.hooks, "before_tool", event, waiting)
      : mergeHooks("before_tool", []);
  const facts: CallFacts = {
    tool: tool.name,
    permissionClass: metadataOf(tool).permissionClass,
    input,
    resources:
      touched.resources.length === 0
        ? []
        : await resolveResources(touched.resources, workingDirectory),
    tenant: caller.tenant,
    sessionId: caller.sessionId,
    chain: caller.chain,
    now: context.clock.now(),
  };
  const decision = decide(facts, {
    policy: context.policy,
    fileRoots: context.fileRoots,
    protectedPaths: context.protectedPaths,
    ...bound,
    canAsk: true,
    others: [{ check: "hooks", ...hooks }],
    workingDirectory,
  });
  if (decision.overridden.length > 0) {
    const { findings, overridden } = decision;
    const allowed = decision.answer !== "deny";
    await recordEvaluation(context, caller, { point: "pre-tool", allowed, findings, overridden });
  }
  if (decision.answer === "deny") {
    // Only denials: nobody is asked about a call that is denied.
    const denials = decision.trace.filter(({ answer }) => answer === "deny");
    const said = denials.flatMap(({ findings }) => findings);
    return { verdict: "deny", text: textOf(tool, said), findings: decision.findings };
  }
  const definition = definitionHash(tool);
  const places = placesOf(facts.resources);
  const needed = checkpoint && again !== "approved";
  // Answered from the inbox, in minutes or days: the call becomes a decision like every other that people are asked about.
  if (needed && context.checkpoint === "inbox") {
    return { verdict: "ask", tool, definition, input, decision, facts, places, needsPerson: true };
  }
  // Asked last, so that nobody is asked about a call that is refused anyway.
  if (needed) {
    const handler = context.checkpoint === "inbox" ? undefined : context.checkpoint;
    const reason = "The tool wants a person to let each call through.";
    const asked = { tool: tool.name, input, reason };
    const waited = await runCheckpoint(asked, { needed, handler, ...waiting });
    if (!waited.go) {
      const { message } = waited;
      const finding = { severity: "soft-deny", policy: "checkpoint", message } as const;
      return { verdict: "deny", text: message, findings: [finding] };
    }
  }
  const { answer: verdict } = decision;
  return { verdict, tool, definition, input, decision, facts, places, needsPerson: false };
}

/** The input as the gate reads it, without the agent's confidence: to compare a call with one that was judged before. */
export function readRequest(
  { confidenceKey: key }: Pick<GateContext, "confidenceKey">,
  tool: Tool,
  given: CallRequest["input"],
): { input: JsonValue } | { text: string } {
  const { confidenceMin: min } = capabilityOf(tool);
  const read = checkConfidence(given, { min, ...(key === undefined ? {} : { key }) });
  return read.ok ? readInput(tool, read.input) : { text: read.message };
}

function readInput(tool: Tool, given: string | JsonValue): { input: JsonValue } | { text: string } {
  try {
    const parsed = tool.parseInput(typeof given === "string" ? parseJson(given) : given);
    return parsed.ok
      ? { input: parsed.value }
      : { text: inputError(tool.name, parsed.issues).text };
  } catch (error) {
    if (error instanceof SallyportError) {
      return { text: `"${tool.name}" was not called: ${error.details.hint ?? error.message}` };
    }
    const why = `its input could not be read (${errorText(error)})`;
    return { text: `"${tool.name}" was not called: ${why}. Tell the operator.` };
  }
}

/** A tool that cannot tell what it touches cannot be judged by any rule. The call is refused, and the agent cannot change that. */
function touchedBy(
  tool: Tool,
  input: JsonValue,
  workingDirectory: string,
): { resources: readonly Resource[] } | { text: string } {
  try {
    return { resources: tool.resources?.(input, { workingDirectory }) ?? [] };
  } catch (error) {
    const why = `it could not say what it would touch (${errorText(error)})`;
    return { text: `"${tool.name}" was not called: ${why}. Tell the operator.` };
  }
}

/** Its input is an undo record, which only the record of an operation can vouch for. */
function onlyAsUndo({ name }: Tool): Judged {
  const message = `"${name}" only undoes what another tool did and cannot be called by itself. Nothing was executed. Ask for a rollback of the call you want to undo.`;
  const finding = { severity: "hard-deny", policy: "undo-only", message } as const;
  return { verdict: "deny", text: message, findings: [finding] };
}

function textOf(tool: Tool, findings: readonly Finding[]): string {
  const said = findings.map(({ message }) => message).join("\n");
  return said || `"${tool.name}" was refused. Nothing was executed.`;
}

/** What binds a session besides the rules that bind everyone. */
interface Binding {
  readonly policies: readonly GatePolicy[];
  /** Findings that people have lifted for it. */
  readonly grants: readonly Grant[];
  /** The run it works in, and the phase of that. */
  readonly run?: string;
  readonly phase?: string;
  /** The role it was delegated. */
  readonly role?: string;
}

async function bindingOf(
  { store, gatePolicies }: GateContext,
  caller: BoundCaller,
  kind: "call" | "undo",
): Promise<Binding> {
  const bound = await boundOf(caller, store, kind);
  const { rootSession, run, role } = bound;
  const policies = [...gatePolicies, ...bound.policies];
  if (policies.length === 0) return { policies, grants: [] };
  return {
    policies,
    // The grants of a root session count for every session below it.
    grants: await store.grants.listFor(rootSession),
    ...(run === undefined ? {} : { run: run.id, phase: run.phase }),
    ...(role === undefined ? {} : { role }),
  };
}

/** What the gate policies say once a call was executed: reported to the agent and recorded. Nothing is undone for it. */
export async function policiesAfter(
  context: GateContext,
  caller: BoundCaller,
  facts: CallFacts,
  answer: CallAnswer,
): Promise<CallAnswer> {
  const { gatePolicies } = context;
  if (gatePolicies.length === 0 || !("operationId" in answer)) return answer;
  const isWrite = facts.resources.some((one) => "access" in one && one.access === "write");
  const points = isWrite ? (["post-tool", "post-write"] as const) : (["post-tool"] as const);
  const said: Finding[] = [];
  for (const point of points) {
    const payload = { ...facts, answer: answer.answer };
    const seen = { point, run: caller.sessionId, tool: facts.tool, payload };
    const findings = runPolicies(gatePolicies, seen);
    if (findings.length === 0) continue;
    said.push(...findings);
    const allowed = !findings.some(isBlocking);
    await recordEvaluation(context, caller, { point, allowed, findings, overridden: [] });
  }
  if (said.length === 0) return answer;
  const text = [answer.text, ...said.map(({ message }) => message)].join("\n");
  return { ...answer, text };
}

async function recordEvaluation(
  { store, newId, onLedgerProblem }: GateContext,
  { sessionId, chain }: BoundCaller,
  said: Pick<GateEvaluation, "point" | "allowed" | "findings" | "overridden">,
): Promise<void> {
  const traceId = newId();
  try {
    await store.gateLedger.record({ traceId, sessionId, actor: chain[0] ?? "agent", ...said });
  } catch (error) {
    onLedgerProblem({ traceId, error });
  }
}
