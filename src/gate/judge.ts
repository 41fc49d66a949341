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
import type { CompiledPolicy } from "../policy/policy.ts";
import type { GateEvaluation } from "../store/gate-ledger.ts";
import type { TenantStore } from "../store/store.ts";
import type { ClaimRef } from "../store/tasks.ts";
import { definitionHash } from "../tools/definition.ts";
import type { Registry } from "../tools/registry.ts";
import { placesOf, resolveResources } from "../tools/resources.ts";
import { capabilityOf, metadataOf } from "../tools/safety.ts";
import type { Resource, Tool } from "../tools/tool.ts";
import { inputError } from "../tools/tool-input.ts";
import { errorText } from "../util/error-text.ts";
import type { JsonValue } from "../util/json.ts";
import type { Timers } from "../util/timers.ts";
import type { GateOptions } from "./options.ts";

/** Who asks, and from where. */
export interface Caller {
  readonly tenant: string;
  readonly sessionId: string;
  /** The agent, then whoever delegated to it. */
  readonly chain: readonly string[];
  /** On whose behalf; empty when nobody was named. */
  readonly owner?: string;
  /** The claim of a task under which it works: once that is over, so are its calls. */
  readonly claim?: ClaimRef;
  readonly workingDirectory: string;
  /** Ends its calls. */
  readonly signal?: AbortSignal;
  /** An undo that somebody began goes on. */
  readonly takesBack?: boolean;
}

export interface JudgeParts extends Pick<GateOptions, "hooks" | "checkpoint" | "confidenceKey"> {
  readonly registry: Registry;
  readonly policy: CompiledPolicy;
  readonly bindings: Bindings;
  readonly fileRoots: NonNullable<GateOptions["fileRoots"]>;
  readonly protectedPaths: NonNullable<GateOptions["protectedPaths"]>;
  /** What is to be said against working under this claim; empty while it is live. */
  readonly checkClaim: (claim: ClaimRef) => Promise<readonly Finding[]>;
  readonly timers: Timers;
  readonly now: () => number;
}

/** A call that was looked at: refused with a text for the model, or ready to be run or staged. */
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
      /** Where the files and folders that it names are; see `ToolContext.places`. */
      readonly places: readonly string[];
      /** Each call is let through by a person; no rule made beforehand stands for that. */
      readonly needsPerson: boolean;
    };

const ASK_MS = 60_000;

/**
 * The one way into the gate, for every call however it comes in: direct, batched, staged, approved, resumed or undone. An
 * agent's estimate belongs to its own call and is not asked for again; a person who approved needs no checkpoint.
 */
export async function judgeCall(
  request: CallRequest,
  caller: Caller,
  parts: JudgeParts,
  again?: "approved" | "undo",
): Promise<Judged> {
  const tool = parts.registry.get(request.tool);
  if (tool === undefined) {
    return {
      verdict: "failed",
      text: `There is no tool "${request.tool}". Use one of those listed.`,
    };
  }
  const { confidenceMin: min, checkpoint } = capabilityOf(tool);
  const { confidenceKey: key } = parts;
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
  const waiting = { timers: parts.timers, timeoutMs: ASK_MS };
  const isUndo = again === "undo" || caller.takesBack === true;
  if (tool.undoOnly === true && !isUndo) return onlyAsUndo(tool);
  const lost = caller.claim === undefined || isUndo ? [] : await parts.checkClaim(caller.claim);
  if (lost.length > 0) return { verdict: "deny", text: textOf(tool, lost), findings: lost };
  const bound = await parts.bindings.of(caller, isUndo ? "undo" : "call");
  const hooks = parts.hooks?.length
    ? await runHooks(parts.hooks, "before_tool", event, waiting)
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
    now: parts.now(),
  };
  const decision = decide(facts, {
    policy: parts.policy,
    fileRoots: parts.fileRoots,
    protectedPaths: parts.protectedPaths,
    ...bound,
    canAsk: true,
    others: [{ check: "hooks", ...hooks }],
    workingDirectory,
  });
  if (decision.overridden.length > 0) await parts.bindings.overridden(caller, decision);
  if (decision.answer === "deny") {
    // What would only have been asked about is no part of the answer: there is nobody to ask for a call that is denied.
    const denials = decision.trace.filter(({ answer }) => answer === "deny");
    const said = denials.flatMap(({ findings }) => findings);
    return { verdict: "deny", text: textOf(tool, said), findings: decision.findings };
  }
  const definition = definitionHash(tool);
  const places = placesOf(facts.resources);
  const needed = checkpoint && again !== "approved";
  // Answered from the inbox, in minutes or in days: the call becomes a decision like every other that people are asked about.
  if (needed && parts.checkpoint === "inbox") {
    return { verdict: "ask", tool, definition, input, decision, facts, places, needsPerson: true };
  }
  // Asked last: nobody is bothered with a call that is refused anyway.
  if (needed) {
    const handler = parts.checkpoint === "inbox" ? undefined : parts.checkpoint;
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

/** The input as the gate reads it, without the agent's estimate: for calls that are compared with one that was judged before. */
export function readRequest(
  tool: Tool,
  given: CallRequest["input"],
  { confidenceKey: key }: Pick<JudgeParts, "confidenceKey">,
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

/** What a tool cannot tell, no rule can judge: that is a no, and nothing the agent can change. */
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

/** What binds a session beside the rules that bind everybody. */
export interface Binding {
  readonly policies: readonly GatePolicy[];
  /** What people have lifted for it. */
  readonly grants: readonly Grant[];
  /** The run it works in, and the phase of that. */
  readonly run?: string;
  readonly phase?: string;
  /** What it was sent out for. */
  readonly role?: string;
}

/** Finds out what binds a session, and writes down what a grant has lifted. */
interface Bindings {
  of(caller: BoundCaller, kind: "call" | "undo"): Promise<Binding>;
  /** For a decision in which a grant has lifted something. */
  overridden(caller: BoundCaller, decision: GateDecision): Promise<void>;
  /** What policies say once it has happened: told to the agent and written down. Nothing is taken back for it. */
  after(
    caller: BoundCaller,
    facts: CallFacts,
    answer: CallAnswer,
  ): CallAnswer | Promise<CallAnswer>;
}

export function bindingsOf(
  store: Pick<TenantStore, "delegations" | "runs" | "grants" | "gateLedger">,
  house: readonly GatePolicy[],
  parts: {
    readonly newId: () => string;
    readonly onProblem: (problem: { readonly traceId: string; readonly error: unknown }) => void;
  },
): Bindings {
  return {
    async of(caller, kind) {
      const bound = await boundOf(caller, store, kind);
      const { rootSession, run, role } = bound;
      const policies = [...house, ...bound.policies];
      if (policies.length === 0) return { policies, grants: [] };
      return {
        policies,
        // Those of a root count for everybody below it.
        grants: await store.grants.listFor(rootSession),
        ...(run === undefined ? {} : { run: run.id, phase: run.phase }),
        ...(role === undefined ? {} : { role }),
      };
    },
    async overridden(caller, { answer, findings, overridden }) {
      await tell(caller, { point: "pre-tool", allowed: answer !== "deny", findings, overridden });
    },
    after: (caller, facts, answer) =>
      house.length === 0 || !("operationId" in answer) ? answer : after(caller, facts, answer),
  };

  async function after(
    caller: BoundCaller,
    facts: CallFacts,
    answer: CallAnswer,
  ): Promise<CallAnswer> {
    const isWrite = facts.resources.some((one) => "access" in one && one.access === "write");
    const points = isWrite ? (["post-tool", "post-write"] as const) : (["post-tool"] as const);
    const said: Finding[] = [];
    for (const point of points) {
      const payload = { ...facts, answer: answer.answer };
      const context = { point, run: caller.sessionId, tool: facts.tool, payload };
      const findings = runPolicies(house, context);
      if (findings.length === 0) continue;
      said.push(...findings);
      const allowed = !findings.some(isBlocking);
      await tell(caller, { point, allowed, findings, overridden: [] });
    }
    if (said.length === 0) return answer;
    const text = [answer.text, ...said.map(({ message }) => message)].join("\n");
    return { ...answer, text };
  }

  async function tell(
    { sessionId, chain }: BoundCaller,
    said: Pick<GateEvaluation, "point" | "allowed" | "findings" | "overridden">,
  ): Promise<void> {
    const traceId = parts.newId();
    try {
      await store.gateLedger.record({ traceId, sessionId, actor: chain[0] ?? "agent", ...said });
    } catch (error) {
      parts.onProblem({ traceId, error });
    }
  }
}
