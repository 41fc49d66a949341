import type { GatePolicy } from "../gate/gate-policy.ts";
import type { SessionId } from "../model/decision.ts";
import {
  boundTo,
  type Delegation,
  type DelegationId,
  isDelegated,
  type Role,
} from "../model/delegation.ts";
import { isSallyportError } from "../model/errors.ts";
import { foldName } from "../model/names.ts";
import type { Run } from "../model/run.ts";
import type { TenantStore } from "../store/store.ts";
import { phasePolicy } from "./phase-policy.ts";
import { currentArtefact } from "./scope.ts";
import { scopePolicy } from "./scope-policy.ts";

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
