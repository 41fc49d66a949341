import type { Delegation, DelegationId, Role, Scope } from "../model/delegation.ts";
import type { CompletionPromise } from "../model/promise.ts";
import type { Run } from "../model/run.ts";
import { isWithin, segmentsOf } from "../policy/patterns.ts";
import { DEFAULT_CALLS, DEFAULT_TTL_MS, MOST_DEPTH } from "./delegate.ts";
import { type DelegationPlan, type PlanError, planError } from "./plan.ts";

/** What a parent asks for on behalf of its child. What is left out is as much as the parent may give, or less. */
export interface ScopeRequest {
  readonly planFiles?: readonly string[];
  readonly documents?: readonly string[];
  readonly artefact?: string;
  /** Has to be said at the root; below it is inherited when left out. */
  readonly tools?: readonly string[];
  readonly calls?: number;
  readonly ttlMs?: number;
  /** How many levels the child may delegate further. None when left out. */
  readonly depth?: number;
}

/** What the parent has itself. Without a scope it is a root; then the run, if there is one, is what binds it. */
export interface Bounds {
  readonly scope?: Scope;
  readonly run?: Pick<Run, "phase" | "planFiles" | "documents" | "artefacts">;
}

export interface Narrowed {
  readonly scope: Omit<Scope, "expiresAt">;
  /** Undefined: as long as the parent's. */
  readonly ttlMs: number | undefined;
  readonly errors: readonly PlanError[];
}

/**
 * The child's scope out of its parent's. Asking for more than the parent has is refused and never quietly cut down: a parent
 * that was told "yes" must be able to rely on it. Paths are compared as they are: resolve them first.
 */
export function narrowScope(plan: DelegationPlan, asked: ScopeRequest, bounds: Bounds): Narrowed {
  const { scope: parent } = bounds;
  const errors: PlanError[] = [];
  const refuse = (message: string) => void errors.push(planError("hard-deny", "scope", message));

  const { writePermission } = plan;
  if (parent && writePermission !== "none" && writePermission !== parent.writePermission) {
    refuse(
      `Whoever may write ${parent.writePermission} cannot hand on ${writePermission}. Ask whoever delegated to you.`,
    );
  }
  const places = placesOf(plan, asked, bounds, refuse);

  const { tools = parent?.tools ?? [], depth = 0 } = asked;
  if (tools.length === 0) refuse("Say which tools the sub-agent may use, for instance files.read.");
  for (const tool of tools) {
    if (parent === undefined || coversTool(parent.tools, tool)) continue;
    refuse(`The tool ${tool} is not yours to hand on.`);
  }
  const most = parent === undefined ? MOST_DEPTH - 1 : parent.depth - 1;
  if (most < 0) refuse("A sub-agent may not delegate further, unless it was told so.");
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

/** Only the places that the permission is about; a right that cannot be used is not handed on. */
function placesOf(
  { writePermission }: DelegationPlan,
  asked: ScopeRequest,
  { scope: parent, run }: Bounds,
  refuse: (message: string) => void,
): Places {
  const none: Places = { planFiles: [], documents: [], artefact: "" };
  if (writePermission === "plan-approved-files") {
    // Without a run nobody has approved any file.
    const approved = parent?.planFiles ?? run?.planFiles ?? [];
    const { planFiles = approved } = asked;
    for (const file of planFiles) {
      if (!approved.includes(file)) refuse(`${file} is not among the files of the approved plan.`);
    }
    return { ...none, planFiles };
  }
  if (writePermission === "documents-and-artefact") {
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

/** By whole names: `/docs` does not hold `/docs-old`. */
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

/** Everything a sub-agent is given: no word of the conversation that it comes from. Plain data, to be sent anywhere. */
export interface Capsule {
  /** Its session; empty in a dry run, where there is none. */
  readonly delegationId: DelegationId | "";
  readonly planId: string;
  readonly role: Role;
  readonly task: string;
  readonly context: string;
  readonly promise: CompletionPromise;
  readonly scope: Omit<Scope, "expiresAt"> & Partial<Pick<Scope, "expiresAt">>;
  readonly workingDirectory: string;
}

export function capsuleOf(delegation: Delegation): Capsule {
  const { id, scope, task, capsule, promise, workingDirectory } = delegation;
  const { planId, role } = scope;
  return {
    delegationId: id,
    planId,
    role,
    task,
    context: capsule,
    promise,
    scope,
    workingDirectory,
  };
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
