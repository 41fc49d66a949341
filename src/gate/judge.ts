// Step "judge": schema, confidence, permission, policies, hooks, checkpoint, and the standing rule that covers a call. Before it:
// nothing; every call meets it first, and again before it runs. After it: run (allowed), or propose (a person is asked).

import path from "node:path";
import { type Bound, type BoundCaller, boundOf } from "../delegation/scope.ts";
import { isDelegated, isRunId } from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import type { Finding, Grant } from "../model/finding.ts";
import { parseJson } from "../model/names.ts";
import type { CallAnswer, CallRequest } from "../model/operation.ts";
import { MAX_LIST } from "../model/record.ts";
import type { StandingRule } from "../model/standing-rule.ts";
import { allow, type CallFacts, isBlocking } from "../policy/answers.ts";
import { checkConfidence, runCheckpoint } from "../policy/before-call.ts";
import {
  decide,
  type GateDecision,
  type GatePolicy,
  type GateState,
  runPolicies,
} from "../policy/decide.ts";
import { isWithin, segmentsOf } from "../policy/patterns.ts";
import {
  type Deliverable,
  decideReverseThinking,
  type ReverseThinkingDecision,
  toReplayEvent,
} from "../policy/reverse-thinking.ts";
import { matchesRule, type RuledCall, ruledTool } from "../policy/review-rules.ts";
import type { GateEvaluation } from "../store/grants.ts";
import type { ClaimRef } from "../store/tasks.ts";
import { checkClaim } from "../tasks/rules.ts";
import { inputError } from "../tools/define-tool.ts";
import { definitionHash, REVERSE_THINKING_KEY } from "../tools/registry.ts";
import type { JudgePlace, Resource, Tool } from "../tools/tool.ts";
import { capabilityOf, metadataOf } from "../tools/tool.ts";
import {
  placesOf,
  type ResolvedResource,
  resolveFolder,
  resolveResources,
} from "../tools/tool-call.ts";
import { toIso } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import { errorText } from "../util/error-text.ts";
import { realPath } from "../util/files.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { withDeadline } from "../util/timers.ts";
import { openBreaker } from "./breaker.ts";
import type { GateContext } from "./context.ts";
import { eventOf, hooksAt } from "./hooks.ts";
import { sameHand } from "./inbox.ts";

/** Who asks, and from where. */
export interface Caller {
  readonly tenant: string;
  readonly sessionId: string;
  /** The agent, then each agent that delegated to it. */
  readonly chain: readonly string[];
  /** On whose behalf; empty when no owner was named. */
  readonly owner?: string;
  /** The claim of a task under which it works: once that is over, so are its calls. */
  readonly claim?: ClaimRef;
  readonly workingDirectory: string;
  /** Facts for guards and validators; see `OpenSession.metadata`. */
  readonly metadata?: JsonObject;
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
      readonly verdict: "allow" | "review" | "ask";
      readonly tool: Tool;
      readonly definition: string;
      readonly input: JsonValue;
      readonly decision: GateDecision;
      readonly facts: CallFacts;
      /** The resolved paths of what it names; see `ToolContext.places`. */
      readonly places: readonly string[];
      /** See `ToolContext.judgePlace`. */
      readonly judgePlace: JudgePlace;
      /** A person allows each call; a standing rule does not replace that. */
      readonly needsPerson: boolean;
      /** The agent's counter-check of it, when it needs one. */
      readonly deliverable?: Deliverable;
    };

/** A judged call that is ready to run or to be staged. */
export type Ready = Extract<Judged, { verdict: "allow" | "review" | "ask" }>;

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
  const { confidenceMin: min, checkpoint, reverseThinking } = capabilityOf(tool);
  const { confidenceKey: key } = context;
  if (context.defersTools && again === undefined && caller.takesBack !== true) {
    const unloaded = await context.offering.whyNotLoaded(caller.sessionId, tool);
    if (unloaded !== undefined) return { verdict: "failed", text: unloaded };
  }
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
  const { written, rest } = takeDeliverable(tool, confident.input);
  const parsed = readInput(tool, rest);
  if ("text" in parsed) return { verdict: "failed", text: parsed.text };
  const { input } = parsed;
  const { workingDirectory } = caller;
  const touched = touchedBy(tool, input, workingDirectory);
  if ("text" in touched) return { verdict: "failed", text: touched.text };
  const isUndo = again === "undo" || caller.takesBack === true;
  const isRead = metadataOf(tool).effect === "read";
  if (tool.undoOnly === true && !isUndo) return onlyAsUndo(tool);
  const { claim } = caller;
  const { tasks } = context;
  const lost = claim === undefined || isUndo ? [] : await checkClaim(tasks, claim, context.clock);
  if (lost.length > 0) return { verdict: "deny", text: textOf(tool, lost), findings: lost };
  const counts = context.breaker !== undefined && !isUndo && !isRead;
  const open = counts ? await openBreaker(context.store, tool.name) : undefined;
  if (open !== undefined) return { verdict: "deny", text: open.message, findings: [open] };
  const bound = await bindingOf(context, caller, isUndo ? "undo" : "call");
  const { callId } = request;
  const event = () => ({ ...eventOf("before_tool", caller), tool: tool.name, callId, input });
  const hooks = context.hooks.length === 0 ? allow() : await hooksAt(context, event());
  const needsCheck = reverseThinking && again === undefined && !isUndo;
  const challenged = await challenge(
    context,
    { tool: tool.name, input, written },
    caller,
    needsCheck,
  );
  const facts: CallFacts = {
    tool: tool.name,
    permissionClass: metadataOf(tool).permissionClass,
    effect: metadataOf(tool).effect,
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
  const rules: GateState = {
    policy: context.policy,
    fileRoots: context.fileRoots,
    protectedPaths: context.protectedPaths,
    ...bound,
    canAsk: context.people === undefined || context.people.length > 0,
    workingDirectory,
  };
  const decision = decide(facts, {
    ...rules,
    others: [
      { check: "hooks", ...hooks },
      { check: "reverse-thinking", answer: challenged.answer, findings: challenged.findings },
    ],
  });
  const { deliverable } = challenged;
  const called = { tool: tool.name, callId };
  for (const { point, findings, overridden } of decision.evaluations) {
    const allowed = !findings.some(isBlocking);
    await recordEvaluation(context, caller, { point, allowed, findings, overridden, call: called });
  }
  if (deliverable !== undefined || challenged.findings.length > 0) {
    const { findings } = challenged;
    const allowed = challenged.answer !== "deny";
    const at = toIso(facts.now);
    const about = { ...called, sessionId: caller.sessionId, at };
    const call = deliverable === undefined ? called : toReplayEvent(deliverable, about);
    const said = { point: "reverse-thinking", allowed, findings, overridden: [], call };
    await recordEvaluation(context, caller, said);
  }
  if (decision.answer === "deny") {
    // Only denials: a person is not asked about a call that is denied.
    const denials = decision.trace.filter(({ answer }) => answer === "deny");
    const said = denials.flatMap(({ findings }) => findings);
    return { verdict: "deny", text: textOf(tool, said), findings: decision.findings };
  }
  const definition = definitionHash(tool);
  const places = placesOf(facts.resources);
  const judgePlace = placeJudge(facts, rules, decision);
  const ready = { tool, definition, input, decision, facts, places, judgePlace };
  const needed = checkpoint && again !== "approved";
  // Answered from the inbox, in minutes or days: the call becomes a decision like every other that people are asked about.
  if (needed && context.checkpoint === "inbox") {
    return { verdict: "ask", ...ready, needsPerson: true, ...definedFields({ deliverable }) };
  }
  // Evaluated last, so that a person is not asked about a call that is refused anyway.
  if (needed) {
    const handler = context.checkpoint === "inbox" ? undefined : context.checkpoint;
    const reason = "The tool wants a person to let each call through.";
    const asked = { tool: tool.name, input, reason };
    const { timers, checkpointTimeoutMs: timeoutMs } = context;
    const waited = await runCheckpoint(asked, { needed, handler, timers, timeoutMs });
    if (!waited.go) {
      const { message } = waited;
      const finding = { severity: "soft-deny", policy: "checkpoint", message } as const;
      return { verdict: "deny", text: message, findings: [finding] };
    }
  }
  const { answer: verdict } = decision;
  return { verdict, ...ready, needsPerson: false, ...definedFields({ deliverable }) };
}

/**
 * Judges what a call finds below the places it named, by the same rules. A person who approved a folder was asked for
 * certain reasons; a file that asks for another one, such as a file of secrets, was not approved.
 */
function placeJudge(facts: CallFacts, rules: GateState, decision: GateDecision): JudgePlace {
  const approved = new Set(decision.findings.map(({ policy }) => policy));
  return (place) => {
    const resource = { kind: "file", path: place, resolved: place, access: "read" } as const;
    const { answer, findings } = decide({ ...facts, resources: [resource] }, rules);
    const isApproved = answer === "ask" && findings.every(({ policy }) => approved.has(policy));
    // The reviews of the call have seen what it is for.
    return isApproved || answer === "review" ? "allow" : answer;
  };
}

/** The input as the gate reads it, without the agent's confidence: to compare a call with one that was judged before. */
export function readRequest(
  { confidenceKey: key }: Pick<GateContext, "confidenceKey">,
  tool: Tool,
  given: CallRequest["input"],
): { input: JsonValue } | { text: string } {
  const { confidenceMin: min } = capabilityOf(tool);
  const read = checkConfidence(given, { min, ...(key === undefined ? {} : { key }) });
  return read.ok ? readInput(tool, takeDeliverable(tool, read.input).rest) : { text: read.message };
}

/** The reserved key of a counter-check, apart from the tool's own input. */
function takeDeliverable(
  tool: Tool,
  given: string | JsonValue,
): { readonly rest: string | JsonValue; readonly written?: JsonValue } {
  if (!capabilityOf(tool).reverseThinking) return { rest: given };
  let value: JsonValue;
  try {
    value = typeof given === "string" ? parseJson(given) : given;
  } catch {
    // It is read once more by those who say what is wrong with it.
    return { rest: given };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { rest: given };
  if (!Object.hasOwn(value, REVERSE_THINKING_KEY)) return { rest: given };
  const { [REVERSE_THINKING_KEY]: written = null, ...rest } = value;
  return { rest, written };
}

/** The agent's own counter-check, or that of the handler; without a readable one the call is refused. */
async function challenge(
  { reverseThinking, timers, hookTimeoutMs }: GateContext,
  call: {
    readonly tool: string;
    readonly input: JsonValue;
    readonly written?: JsonValue | undefined;
  },
  { sessionId, chain }: Caller,
  needed: boolean,
): Promise<ReverseThinkingDecision> {
  const { tool, input, written } = call;
  if (!needed) return { ...allow(), deliverable: undefined };
  const { handler, whenMissing = "refuse" } = reverseThinking ?? {};
  const terms = { needed, whenMissing };
  if (written !== undefined || handler === undefined) {
    return decideReverseThinking(tool, written, terms);
  }
  try {
    const request = { tool, input, sessionId, chain };
    const answer = await withDeadline((stop) => handler(request, stop), hookTimeoutMs, timers);
    return decideReverseThinking(tool, answer, terms);
  } catch (error) {
    return decideReverseThinking(tool, undefined, { ...terms, problem: errorText(error) });
  }
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
  const { sessionId } = caller;
  // A session of its own is bound by nothing but the policies of the gate.
  const isOwn = !isDelegated(sessionId) && !isRunId(sessionId);
  const bound: Bound = isOwn
    ? { policies: [], rootSession: sessionId }
    : await boundOf(caller, store, kind);
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

/**
 * What the hooks and the gate policies say once a call was executed: reported to the agent and recorded. Nothing is undone
 * for it.
 */
export async function saidAfter(
  context: GateContext,
  caller: Caller,
  facts: CallFacts,
  answer: CallAnswer,
): Promise<CallAnswer> {
  const { gatePolicies } = context;
  if (!("operationId" in answer)) return answer;
  const { tool, input } = facts;
  const { answer: outcome, text: output, operationId: id = "" } = answer;
  const result = { answer: outcome, text: output };
  const after = () => ({
    ...eventOf("after_tool", caller),
    tool,
    id,
    input,
    result,
  });
  const hooks = context.hooks.length === 0 ? allow() : await hooksAt(context, after());
  const isWrite = facts.resources.some((one) => "access" in one && one.access === "write");
  const points = isWrite ? (["post-tool", "post-write"] as const) : (["post-tool"] as const);
  const said: Finding[] = [...hooks.findings];
  for (const point of gatePolicies.length === 0 ? [] : points) {
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
  said: Pick<GateEvaluation, "point" | "allowed" | "findings" | "overridden" | "call">,
): Promise<void> {
  const traceId = newId();
  try {
    await store.gateLedger.record({ traceId, sessionId, actor: chain[0] ?? "agent", ...said });
  } catch (error) {
    onLedgerProblem({ traceId, error });
  }
}

/** The folders in which callers from outside the host program may open sessions. */
export interface SessionFolders {
  /** The folder with its links resolved. Throws not_allowed when it is neither a listed folder nor below one. */
  check(folder: string): Promise<string>;
}

export function sessionFoldersOf(listed: readonly string[]): SessionFolders {
  return {
    async check(folder) {
      const found = await resolveFolder(folder);
      for (const one of found === undefined ? [] : listed) {
        if (found !== undefined && isBelow(found, await resolveFolder(one))) return found;
      }
      throw new SallyportError("not_allowed", { workingDirectory: folder, hint: NOT_LISTED });
    },
  };
}

function isBelow(folder: string, above: string | undefined): boolean {
  const [inner, outer] = [segmentsOf(folder), segmentsOf(above ?? "")];
  return inner !== undefined && outer !== undefined && isWithin(inner, outer);
}

const NOT_LISTED =
  "Sessions open only in folders that the operator listed as `sessionFolders`. Leave `workingDirectory` out, name a listed folder or one below it, or ask the operator to list this one.";

/** Each path as given and as the system opens it, because calls are compared by resolved paths. */
export function resolvedPaths(paths: readonly string[]): readonly string[] {
  return [...new Set(paths.flatMap((one) => [path.normalize(one), realPath(one)]))];
}

/**
 * True when a file of the call is reached through a link below its working directory, or anywhere if it lies outside. Who
 * consented beforehand (by a standing rule, or by asking for an undo) consented to the path they read; a link can be turned
 * after that. Links above the working directory do not count: those are the operator's.
 */
export async function goesThroughLink(
  resources: readonly ResolvedResource[],
  workingDirectory: string,
): Promise<boolean> {
  const folder = await resolveFolder(workingDirectory);
  return resources.some((resource) => {
    if (resource.kind === "command") {
      return resource.linked?.some(({ leaves }) => leaves) === true;
    }
    if (resource.kind !== "file") return false;
    const plain = path.resolve(workingDirectory || path.sep, resource.path);
    if (resource.resolved === plain) return false;
    const below = path.relative(workingDirectory || path.sep, plain);
    const isBelow = below !== ".." && !below.startsWith(`..${path.sep}`) && !path.isAbsolute(below);
    if (folder === undefined || !isBelow) return true;
    return resource.resolved !== path.join(folder, below);
  });
}

/**
 * The rule that allows this call without a person; undefined when a person has to be asked. Folders are compared with their
 * links resolved, and no rule covers a file that is reached through a link: its author read the path, not where the link
 * leads by now.
 */
export async function ruleFor(
  context: GateContext,
  tool: Tool,
  facts: Pick<CallFacts, "input" | "resources">,
  caller: Caller,
): Promise<StandingRule | undefined> {
  const ruled = await ruledCall(context, tool, facts, caller);
  return ruled && ruleOf(context, ruled);
}

/** Undefined for a call that no rule covers. Reads folders, not the store: see `ruleOf`. */
export async function ruledCall(
  { people = [], clock }: GateContext,
  tool: Tool,
  { input, resources }: Pick<CallFacts, "input" | "resources">,
  caller: Caller,
): Promise<RuledCall | undefined> {
  if (await goesThroughLink(resources, caller.workingDirectory)) return undefined;
  const { owner = "" } = caller;
  const workingDirectory = await realFolder(caller.workingDirectory);
  const chain = owner === "" ? caller.chain : [...caller.chain, owner];
  const askers = chain.flatMap((name) => sameHand(name, people));
  return { ...ruledTool(tool), input, workingDirectory, askers, now: clock.now() };
}

/** The standing rule that covers the call. */
export async function ruleOf(
  { store: { standingRules } }: GateContext,
  call: RuledCall,
): Promise<StandingRule | undefined> {
  for (let after = 0; ; ) {
    const page = { after, limit: MAX_LIST };
    const rules = await standingRules.list({ tool: call.tool, status: "active", ...page });
    const found = rules.find((rule) => matchesRule(rule, call));
    const last = rules.at(-1);
    if (found !== undefined || rules.length < MAX_LIST || last === undefined) return found;
    after = last.ord;
  }
}

export async function realFolder(folder: string): Promise<string> {
  return (await resolveFolder(folder)) ?? folder;
}
