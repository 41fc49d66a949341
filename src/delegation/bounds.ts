import type { SessionId } from "../model/decision.ts";
import {
  boundTo,
  type Delegation,
  type DelegationId,
  isDelegated,
  type Role,
  type Scope,
  type WritePermission,
} from "../model/delegation.ts";
import { isSallyportError } from "../model/errors.ts";
import type { Finding } from "../model/finding.ts";
import { foldName } from "../model/names.ts";
import type { Run } from "../model/run.ts";
import { type CallFacts, type ResolvedResource, shown } from "../policy/answers.ts";
import type { GatePolicy, PolicyContext } from "../policy/gate-policy.ts";
import type { TenantStore } from "../store/store.ts";
import { fromIso } from "../util/clock.ts";
import { coversTool, currentArtefact, isInside } from "./scope.ts";
import { VERIFY_TOOLS } from "./verify.ts";

/** Who asks for a call, as far as it matters for what binds it. */
export interface BoundCaller {
  readonly sessionId: SessionId;
  /** The agent, then whoever delegated to it; who asks for a rollback. */
  readonly chain: readonly string[];
}

/** What binds a session because of who it is. */
export interface Bound {
  readonly policies: readonly GatePolicy[];
  /** Where it all hangs: what people have lifted for that session is lifted for those below it. */
  readonly rootSession: SessionId;
  readonly run?: Run;
  readonly role?: Role;
}

type Stores = Pick<TenantStore, "delegations" | "runs">;

/**
 * The scope of a session, that of everybody above it, and the run they work in, as gate policies. The id alone tells whether
 * there are any, so it is the same on every path: direct, staged, approved later, resumed, recovered. Somebody who takes back
 * what a sub-agent did is bound by what binds themselves.
 */
export async function boundOf(
  caller: BoundCaller,
  store: Stores,
  kind: "call" | "undo",
): Promise<Bound> {
  const { sessionId, chain } = caller;
  if (isDelegated(sessionId)) return delegatedBound(sessionId, chain[0] ?? "", store, kind);
  const run = await store.runs.peek(sessionId);
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
  const chain = await store.delegations.chainOf(sessionId).catch(nobody);
  const own = chain.at(-1);
  if (own === undefined) {
    return { policies: [denial("There is no such delegation.")], rootSession: sessionId };
  }
  const run = await store.runs.peek(own.runId);
  const facts = {
    rootSession: own.rootSession,
    role: own.scope.role,
    ...(run === undefined ? {} : { run }),
  };
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

/** A name that says that somebody has delegated to it, and nobody has. A store that fails is something else. */
function nobody(error: unknown): readonly Delegation[] {
  if (isSallyportError(error, "not_found")) return [];
  throw error;
}

/** A run is the session of its lead: nobody else gets in by its name. */
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
 * Binds everybody in a run, its lead included: production is written only in the phase execute and only where the plan says;
 * documents and the artefact of the phase may be written at any time; evidence comes only through its tools. Of a command or
 * an address nobody can say what it changes: that is a soft denial, which a person may lift.
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
    const why = `${what}, and nobody can say whether that is part of the plan.`;
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

/** What is true at this moment and not of the scope. */
export interface ScopeNow {
  /** The artefact of the phase the run is in; undefined without a run. */
  readonly artefact: string | undefined;
}

type MayWrite = (target: Target, tool: string, scope: Scope, now: ScopeNow) => boolean;

/** One line per permission; a target that nobody can name is in none of them. */
const MAY_WRITE: Readonly<Record<WritePermission, MayWrite>> = {
  none: () => false,
  "documents-and-artefact": (target, _tool, { documents, artefact }, now) => {
    if (target.kind !== "file") return false;
    if (isInside(target.path, documents)) return true;
    // The run has gone on since: the artefact of another phase is not the current one.
    const isCurrent = now.artefact === undefined || now.artefact === artefact;
    return artefact !== "" && target.path === artefact && isCurrent;
  },
  "plan-approved-files": (target, _tool, { planFiles }) =>
    target.kind !== "unknown" && planFiles.includes(nameOf(target)),
  "evidence-through-tool": (_target, tool) => VERIFY_TOOLS.includes(tool),
};

/** What to do instead, for whoever reads the refusal. */
const INSTEAD: Readonly<Record<WritePermission, string>> = {
  none: "You may not write at all: report what you have found.",
  "documents-and-artefact": "Write only documents and the artefact of the current phase.",
  "plan-approved-files": "Write only files that the plan lists, or report what else is needed.",
  "evidence-through-tool": "Leave evidence with the verify-result tool, and write nothing else.",
};

/**
 * Holds a sub-agent to its scope, call by call. All its findings are hard denials, so no grant lifts them: whoever wants more
 * makes a new plan. Pure; the same for every way in which a call can come.
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

/** Something that a call may change. What nobody can name is there too: it is the reason for most refusals. */
type Target =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "other"; readonly id: string }
  | { readonly kind: "unknown"; readonly what: string };

/** Built-in tools that go to an address and can only read there; of any other nobody knows. */
const FETCHES: readonly string[] = ["http.fetch"];

/**
 * What a call may write, from the resources that it resolves to. Tools of the class `readonly` were vouched for by the
 * operator; any other that names no resource may write anything. What a tool says of itself as a flag is not looked at.
 */
function writtenTargets({ tool, permissionClass, resources }: CallFacts): readonly Target[] {
  if (resources.length === 0) {
    return permissionClass === "readonly"
      ? []
      : [{ kind: "unknown", what: "something that it does not name" }];
  }
  return resources.flatMap((resource) => writtenBy(resource, tool));
}

function writtenBy(resource: ResolvedResource, tool: string): readonly Target[] {
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
      return FETCHES.includes(tool) ? [] : [{ kind: "unknown", what: "another system" }];
  }
}

function nameOf(target: Target): string {
  if (target.kind === "file") return target.path;
  return target.kind === "other" ? target.id : target.what;
}
