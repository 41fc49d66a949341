import type { SessionId } from "../model/decision.ts";
import {
  type AgentRole,
  boundTo,
  type CompletionPromise,
  type Delegation,
  type DelegationId,
  isDelegated,
  isRunId,
  type Run,
  type Scope,
  type WritePermission,
} from "../model/delegation.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Finding } from "../model/finding.ts";
import { foldName } from "../model/names.ts";
import type { CallFacts, ResolvedResource } from "../policy/answers.ts";
import type { GatePolicy, PolicyContext } from "../policy/decide.ts";
import { isWithin, segmentsOf } from "../policy/patterns.ts";
import type { TenantStore } from "../store/store.ts";
import { resolveResources } from "../tools/tool-call.ts";
import { fromIso } from "../util/clock.ts";
import { shown } from "../util/error-text.ts";
import { type DelegationPlan, type PlanError, planError } from "./plan.ts";

/** Levels below a root, whatever a scope says. */
export const MOST_DEPTH = 8;
const DEFAULT_CALLS = 100;
const DEFAULT_TTL_MS = 30 * 60 * 1000;

/** Records a check that was made. */
export const VERIFY_RESULT = "verify.result";
/** Makes the check that the promise names and records it. */
export const VERIFY_COMMAND = "verify.command";

/** The only tools that add evidence to a run. */
export const VERIFY_TOOLS: readonly string[] = [VERIFY_RESULT, VERIFY_COMMAND];

/** What a parent asks for its child. An omitted field means as much as the parent may give, or less. */
export interface ScopeRequest {
  readonly planFiles?: readonly string[];
  readonly documents?: readonly string[];
  readonly artefact?: string;
  /** Required at the root; inherited below it when omitted. */
  readonly tools?: readonly string[];
  readonly calls?: number;
  readonly ttlMs?: number;
  /** How many levels the child may delegate further; default none. */
  readonly depth?: number;
}

/** What the parent has itself. Without a scope it is a root, bound by its run if there is one. */
export interface Bounds {
  readonly scope?: Scope | undefined;
  readonly run?: Pick<Run, "phase" | "planFiles" | "documents" | "artefacts"> | undefined;
}

interface Narrowed {
  readonly scope: Omit<Scope, "expiresAt">;
  /** Undefined: as long as the parent's. */
  readonly ttlMs: number | undefined;
  readonly errors: readonly PlanError[];
}

/**
 * The child's scope, derived from its parent's. Asking for more than the parent has is refused and never silently reduced: a
 * parent must be able to rely on a yes. Paths are compared as given: resolve them first.
 */
export function narrowScope(plan: DelegationPlan, asked: ScopeRequest, bounds: Bounds): Narrowed {
  const { scope: parent } = bounds;
  const errors: PlanError[] = [];
  const refuse = (message: string) => void errors.push(planError("hard-deny", "scope", message));

  const { writePermission } = plan;
  if (parent && writePermission !== "none" && writePermission !== parent.writePermission) {
    refuse(
      `You may write ${parent.writePermission} and cannot delegate ${writePermission}. Ask your delegator.`,
    );
  }
  const places = placesOf(plan, asked, bounds, refuse);

  const { tools = parent?.tools ?? [], depth = 0 } = asked;
  if (tools.length === 0) refuse("Say which tools the sub-agent may use, for instance files.read.");
  for (const tool of tools) {
    if (parent === undefined || coversTool(parent.tools, tool)) continue;
    refuse(`The tool ${tool} is not yours to delegate.`);
  }
  const most = parent === undefined ? MOST_DEPTH - 1 : parent.depth - 1;
  if (most < 0) refuse("You were not given the right to delegate further.");
  else if (!isCount(depth, 0) || depth > most) {
    refuse(`It can be allowed to delegate ${most} levels further at most, not ${depth}.`);
  }
  const { calls = Math.min(DEFAULT_CALLS, parent?.calls ?? DEFAULT_CALLS) } = asked;
  if (!isCount(calls, 1)) refuse("Give the sub-agent at least one call.");
  else if (parent !== undefined && calls > parent.calls) {
    refuse(`${calls} calls are more than the ${parent.calls} that are left to you.`);
  }
  const { ttlMs = parent === undefined ? DEFAULT_TTL_MS : undefined } = asked;
  if (ttlMs !== undefined && !isCount(ttlMs, 1)) refuse("Say in milliseconds how long it has.");
  const { planId, role } = plan;
  const scope = { planId, role, writePermission, ...places, tools, calls, depth };
  return { scope, ttlMs, errors };
}

type Places = Pick<Scope, "planFiles" | "documents" | "artefact">;

/** Only the places that the permission is about; a right that cannot be used is not passed on. */
function placesOf(
  { writePermission }: DelegationPlan,
  asked: ScopeRequest,
  { scope: parent, run }: Bounds,
  refuse: (message: string) => void,
): Places {
  const none: Places = { planFiles: [], documents: [], artefact: "" };
  if (writePermission === "plan-approved-files-only") {
    // Without a run no file was approved.
    const approved = parent?.planFiles ?? run?.planFiles ?? [];
    const { planFiles = approved } = asked;
    for (const file of planFiles) {
      if (!approved.includes(file)) refuse(`${file} is not among the files of the approved plan.`);
    }
    return { ...none, planFiles };
  }
  if (writePermission === "docs-and-current-phase-artifact") {
    const own = parent?.documents ?? (run === undefined ? undefined : folderOf(run.documents));
    const { documents = own ?? [] } = asked;
    for (const place of documents) {
      if (segmentsOf(place) === undefined) refuse(`${place} is not an absolute path.`);
      else if (own && !isInside(place, own)) refuse(`${place} is outside the documents.`);
    }
    const current = parent?.artefact ?? (run === undefined ? undefined : currentArtefact(run));
    const { artefact = current ?? "" } = asked;
    if (artefact !== "" && current !== undefined && artefact !== current) {
      refuse(`${artefact} is not the artefact of the current phase.`);
    }
    return { ...none, documents, artefact };
  }
  return none;
}

export function currentArtefact({ artefacts, phase }: Pick<Run, "artefacts" | "phase">): string {
  return artefacts[phase] ?? "";
}

function folderOf(folder: string): readonly string[] {
  return folder === "" ? [] : [folder];
}

/** Compares whole names: `/docs` does not contain `/docs-old`. */
export function isInside(path: string, places: readonly string[]): boolean {
  const segments = segmentsOf(path);
  if (segments === undefined) return false;
  return places.some((place) => {
    const folder = segmentsOf(place);
    return folder !== undefined && isWithin(segments, folder);
  });
}

/** `*` covers everything, `files.*` every tool and every narrower pattern of that family. */
export function coversTool(patterns: readonly string[], tool: string): boolean {
  return patterns.some((pattern) => {
    if (pattern === "*" || pattern === tool) return true;
    return pattern.endsWith(".*") && tool.startsWith(pattern.slice(0, -1));
  });
}

function isCount(value: number, least: number): boolean {
  return Number.isSafeInteger(value) && value >= least;
}

/** Everything a sub-agent is given, without the conversation that it comes from. Plain data, to be sent anywhere. */
export interface Capsule {
  /** Its session; empty in a dry run, where there is none. */
  readonly delegationId: DelegationId | "";
  readonly planId: string;
  readonly role: AgentRole;
  readonly task: string;
  readonly context: string;
  readonly promise: CompletionPromise;
  readonly scope: Omit<Scope, "expiresAt"> & Partial<Pick<Scope, "expiresAt">>;
  readonly workingDirectory: string;
}

export function capsuleOf(
  delegation: Pick<Delegation, "task" | "capsule" | "promise" | "workingDirectory"> &
    Pick<Capsule, "scope"> & { readonly id: Capsule["delegationId"] },
): Capsule {
  const { id: delegationId, scope, task, capsule: context, promise, workingDirectory } = delegation;
  const { planId, role } = scope;
  return { delegationId, planId, role, task, context, promise, scope, workingDirectory };
}

/** The capsule as a text for a model. */
export function describeCapsule({ role, task, context, promise, scope }: Capsule): string {
  const list = (title: string, items: readonly string[]) =>
    items.length === 0 ? [] : [`${title}: ${items.join(", ")}`];
  const needs = promise.evidence.map(({ name, command }) =>
    command === undefined ? name : `${name} (${command})`,
  );
  return [
    `Role: ${role}`,
    `Task: ${task}`,
    `Done when: ${promise.statement}`,
    ...list("Evidence needed", needs),
    `You may write: ${scope.writePermission}`,
    ...list("Files", scope.planFiles),
    ...list("Documents", scope.documents),
    ...list("Artefact", scope.artefact === "" ? [] : [scope.artefact]),
    ...list("Tools", scope.tools),
    `Calls left: ${scope.calls}`,
    "",
    context,
  ].join("\n");
}

/** The caller, as far as it matters for what binds it. */
export interface BoundCaller {
  readonly sessionId: SessionId;
  /** The agent, then its delegators; for a rollback, who asks for it. */
  readonly chain: readonly string[];
}

/** What binds a session because of its id. */
export interface Bound {
  readonly policies: readonly GatePolicy[];
  /** The root of its delegations: findings lifted for that session are lifted for those below it. */
  readonly rootSession: SessionId;
  readonly run?: Run | undefined;
  readonly role?: AgentRole;
}

type Stores = Pick<TenantStore, "delegations" | "runs">;

/**
 * The scopes of a session and of its delegators, and the run they work in, as gate policies. They are looked up by the id
 * alone, so they are the same on every path: direct, staged, approved later, resumed, recovered. A caller that undoes the
 * work of a sub-agent is bound by its own scopes.
 */
export async function boundOf(
  caller: BoundCaller,
  store: Stores,
  kind: "call" | "undo",
): Promise<Bound> {
  const { sessionId, chain } = caller;
  if (isDelegated(sessionId)) return delegatedBound(sessionId, chain[0] ?? "", store, kind);
  const run = isRunId(sessionId) ? await store.runs.peek(sessionId) : undefined;
  if (run === undefined) return { policies: [], rootSession: sessionId };
  const policies = kind === "undo" ? [] : [...foreign(run, chain), phasePolicy(run)];
  return { policies, rootSession: sessionId, run };
}

async function delegatedBound(
  sessionId: DelegationId,
  by: string,
  store: Stores,
  kind: "call" | "undo",
): Promise<Bound> {
  const chain = await store.delegations.chainOf(sessionId).catch(noneIfMissing);
  const own = chain.at(-1);
  if (own === undefined) {
    return { policies: [denial("There is no such delegation.")], rootSession: sessionId };
  }
  const run = await store.runs.peek(own.runId);
  const facts = { rootSession: own.rootSession, role: own.scope.role, run };
  const ids = kind === "undo" ? boundTo(own, by) : own.chain;
  const binding = chain.filter(({ id }) => ids.includes(id));
  if (binding.length === 0) return { policies: [], ...facts };
  const artefact = run === undefined ? undefined : currentArtefact(run);
  const policies = [
    ...binding.filter(({ state }) => state !== "active").map(over),
    ...binding.map(({ scope }) => scopePolicy(scope, { artefact })),
    ...(run === undefined ? [] : [phasePolicy(run)]),
  ];
  return { policies, ...facts };
}

/** The id has the form of a delegation, and there is none. Other errors are the store's. */
function noneIfMissing(error: unknown): readonly Delegation[] {
  if (isSallyportError(error, "not_found")) return [];
  throw error;
}

/** A run is the session of its lead: no other agent may use its id. */
function foreign({ lead }: Run, [agent]: readonly string[]): readonly GatePolicy[] {
  if (agent === undefined || foldName(agent) === foldName(lead)) return [];
  return [denial(`This run is led by ${lead}.`)];
}

function over({ id, state, reason }: Delegation): GatePolicy {
  const why = reason === "" ? "" : ` (${reason})`;
  return denial(`The delegation ${id} was ${state}${why}, and everything below it with it.`);
}

function denial(why: string): GatePolicy {
  const policy = "delegation.over";
  const message = `${why} Nothing was executed. Stop working on this.`;
  return { name: policy, points: [], check: () => [{ severity: "hard-deny", policy, message }] };
}

/**
 * Binds every agent of a run, including its lead: production is written only in the phase execute and only where the plan
 * says; documents and the artefact of the phase may be written at any time; evidence is recorded only through its tools.
 * What a command or a request changes is unknown: that is a soft denial, which a person may lift.
 */
export function phasePolicy(run: Run): GatePolicy {
  return {
    name: "run.phase",
    points: ["pre-tool"],
    check({ payload }) {
      const facts = payload as CallFacts;
      if (VERIFY_TOOLS.includes(facts.tool)) return closed(run);
      return writtenTargets(facts).flatMap((target) => [
        ...closed(run),
        ...judged(run, target, facts),
      ]);
    },
  };
}

function closed({ status }: Run): readonly Finding[] {
  if (status !== "stopped") return [];
  return [finding("hard-deny", "The run was stopped.", "Start another one.")];
}

function judged(run: Run, target: Target, { tool }: CallFacts): readonly Finding[] {
  const { phase, documents, planFiles, evidenceFolder } = run;
  const what = `${shown(tool)} would write ${shown(nameOf(target))}`;
  if (target.kind === "unknown") {
    const why = `${what}, and it is unknown whether that is part of the plan.`;
    return [finding("soft-deny", why, "Use a tool that names what it writes, or ask for a grant.")];
  }
  if (target.kind === "file") {
    if (evidenceFolder !== "" && isInside(target.path, [evidenceFolder])) {
      return [
        finding("hard-deny", `${what}, which holds evidence.`, "Use the verify-result tool."),
      ];
    }
    const isDocument = documents !== "" && isInside(target.path, [documents]);
    if (isDocument || target.path === currentArtefact(run)) return [];
  }
  if (phase !== "execute") {
    const why = `${what}, but the run is in the phase ${phase}, and production is written only in execute.`;
    return [finding("hard-deny", why, "Bring the run there first.")];
  }
  if (planFiles.includes(nameOf(target))) return [];
  return [finding("hard-deny", `${what}, which the plan does not list.`, "Revise the plan first.")];
}

function finding(severity: Finding["severity"], why: string, instead: string): Finding {
  return { severity, policy: "run.phase", message: `${why} Nothing was executed. ${instead}` };
}

/** What is true now and not part of the scope. */
interface ScopeNow {
  /** The artefact of the phase the run is in; undefined without a run. */
  readonly artefact: string | undefined;
}

type MayWrite = (target: Target, tool: string, scope: Scope, now: ScopeNow) => boolean;

/** One rule per permission; none allows a target without a name. */
const MAY_WRITE: Readonly<Record<WritePermission, MayWrite>> = {
  none: () => false,
  "docs-and-current-phase-artifact": (target, _tool, { documents, artefact }, now) => {
    if (target.kind !== "file") return false;
    if (isInside(target.path, documents)) return true;
    // The run may have moved on: the artefact of another phase is not the current one.
    const isCurrent = now.artefact === undefined || now.artefact === artefact;
    return artefact !== "" && target.path === artefact && isCurrent;
  },
  "plan-approved-files-only": (target, _tool, { planFiles }) =>
    target.kind !== "unknown" && planFiles.includes(nameOf(target)),
  "evidence-through-kd_verify_result": (_target, tool) => VERIFY_TOOLS.includes(tool),
};

/** What the agent can do instead. */
const INSTEAD: Readonly<Record<WritePermission, string>> = {
  none: "You may not write: report what you have found.",
  "docs-and-current-phase-artifact": "Write only documents and the artefact of the current phase.",
  "plan-approved-files-only":
    "Write only files that the plan lists, or report what else is needed.",
  "evidence-through-kd_verify_result":
    "Record evidence with the verify-result tool, and write nothing else.",
};

/**
 * Limits a sub-agent to its scope, call by call. All its findings are hard denials, which no grant lifts: more needs a new
 * plan. Pure, and the same for every path of a call.
 */
export function scopePolicy(scope: Scope, now: ScopeNow): GatePolicy {
  return {
    name: "delegation.scope",
    points: ["pre-tool"],
    check({ payload }: PolicyContext): readonly Finding[] {
      const facts = payload as CallFacts;
      const refusals = [
        ...overdue(scope, facts),
        ...foreignTool(scope, facts),
        ...foreignWrites(scope, facts, now),
      ];
      return refusals.map((message) => ({
        severity: "hard-deny",
        policy: "delegation.scope",
        message: `${message} Nothing was executed.`,
      }));
    },
  };
}

function overdue({ expiresAt }: Scope, { now }: CallFacts): readonly string[] {
  return now <= fromIso(expiresAt) ? [] : ["The time of this delegation is over."];
}

function foreignTool({ tools }: Scope, { tool }: CallFacts): readonly string[] {
  if (coversTool(tools, tool)) return [];
  return [`The tool ${shown(tool)} is not among those of this delegation.`];
}

function foreignWrites(scope: Scope, facts: CallFacts, now: ScopeNow): readonly string[] {
  const { role, writePermission } = scope;
  return writtenTargets(facts)
    .filter((target) => !MAY_WRITE[writePermission](target, facts.tool, scope, now))
    .map(
      (target) =>
        `The role ${role} has the write permission ${writePermission}, and ${shown(facts.tool)} would write ${shown(nameOf(target))}. ${INSTEAD[writePermission]}`,
    );
}

/** Something that a call may change. `unknown` is the reason for most refusals. */
type Target =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "other"; readonly id: string }
  | { readonly kind: "unknown"; readonly what: string };

/**
 * What a call may write, from its resolved resources. The operator vouches for tools of the class `readonly`; any other tool
 * that names no resource may write anything. A tool's own `readOnly` flag is not considered.
 */
function writtenTargets({ permissionClass, effect, resources }: CallFacts): readonly Target[] {
  if (resources.length === 0) {
    return permissionClass === "readonly"
      ? []
      : [{ kind: "unknown", what: "something that it does not name" }];
  }
  // Of a request it is unknown what it changes, unless its tool fetches and does nothing else.
  const onlyFetches = permissionClass === "webfetch" && effect === "read";
  return resources.flatMap((resource) => writtenBy(resource, onlyFetches));
}

function writtenBy(resource: ResolvedResource, onlyFetches: boolean): readonly Target[] {
  switch (resource.kind) {
    case "file":
      return resource.access === "write" ? [{ kind: "file", path: resource.resolved }] : [];
    case "unresolved":
      return resource.access === "write" ? [{ kind: "unknown", what: resource.path }] : [];
    case "other":
      return resource.access === "write" ? [{ kind: "other", id: resource.id }] : [];
    case "command":
      return [{ kind: "unknown", what: "whatever a command changes" }];
    case "url":
      return onlyFetches ? [] : [{ kind: "unknown", what: "another system" }];
  }
}

function nameOf(target: Target): string {
  if (target.kind === "file") return target.path;
  return target.kind === "other" ? target.id : target.what;
}

/** Other resources have a prefix with a colon, such as `sql:shop/orders`; a drive has only one letter. */
const OTHER = /^[a-z][a-z0-9+.-]+:/i;

/**
 * Places of a scope, resolved as calls will be: absolute, symbolic links followed. A link that is changed afterwards therefore
 * leads out of the scope and does not move the scope. Throws invalid_input for a place that cannot be resolved.
 */
export async function resolvePlaces(
  places: readonly string[],
  workingDirectory: string,
): Promise<readonly string[]> {
  return Promise.all(places.map((place) => resolvePlace(place, workingDirectory)));
}

export async function resolvePlace(place: string, workingDirectory: string): Promise<string> {
  if (place === "" || OTHER.test(place)) return place;
  const file = { kind: "file", path: place, access: "write" } as const;
  const [found] = await resolveResources([file], workingDirectory);
  if (found?.kind === "file") return found.resolved;
  const reason = found?.kind === "unresolved" ? found.reason : "it is no path";
  const hint = `This place cannot be resolved: ${reason}. Use an absolute path.`;
  throw new SallyportError("invalid_input", { what: "place", hint });
}
