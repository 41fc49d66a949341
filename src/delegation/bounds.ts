import type { GatePolicy } from "../gate/gate-policy.ts";
import type { SessionId } from "../model/decision.ts";
import { boundTo, type Delegation, isDelegated } from "../model/delegation.ts";
import { isSallyportError } from "../model/errors.ts";
import { isRunId, type Run } from "../model/run.ts";
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

/**
 * The gate policies that bind a session because of who it is: its own scope, that of everybody above it, and the run they
 * work in. The id alone tells whether there are any, so it is the same on every path: direct, staged, approved later,
 * resumed, recovered. Somebody from outside who takes back what a sub-agent did is not bound by what it may do.
 */
export async function policiesFor(
  caller: BoundCaller,
  store: Pick<TenantStore, "delegations" | "runs">,
  kind: "call" | "undo",
): Promise<readonly GatePolicy[]> {
  const { sessionId } = caller;
  if (isDelegated(sessionId)) return delegatedPolicies(sessionId, caller, store, kind);
  if (isRunId(sessionId) && kind === "call") {
    const run = await runOf(sessionId, store);
    return run === undefined ? [] : [phasePolicy(run)];
  }
  return [];
}

async function delegatedPolicies(
  sessionId: Delegation["id"],
  { chain: names }: BoundCaller,
  store: Pick<TenantStore, "delegations" | "runs">,
  kind: "call" | "undo",
): Promise<readonly GatePolicy[]> {
  let chain: readonly Delegation[];
  try {
    chain = await store.delegations.chainOf(sessionId);
  } catch (error) {
    // Its name says that somebody has delegated to it, and nobody has.
    if (isSallyportError(error, "not_found")) return [denial("There is no such delegation.")];
    throw error;
  }
  const own = chain.at(-1);
  if (kind === "undo" && own !== undefined) {
    const binding = boundTo(own, names[0] ?? "");
    chain = chain.filter(({ id }) => binding.includes(id));
    if (chain.length === 0) return [];
  }
  const run = own === undefined ? undefined : await runOf(own.runId, store);
  const artefact = run === undefined ? undefined : currentArtefact(run);
  return [
    ...chain.filter(({ state }) => state !== "active").map(over),
    ...chain.map(({ scope }) => scopePolicy(scope, { artefact })),
    ...(run === undefined ? [] : [phasePolicy(run)]),
  ];
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

async function runOf(id: string, { runs }: Pick<TenantStore, "runs">): Promise<Run | undefined> {
  if (!isRunId(id)) return undefined;
  try {
    return await runs.get(id);
  } catch (error) {
    // A session may bear any name; one that looks like a run and is none is bound by nothing of ours.
    if (isSallyportError(error, "not_found")) return undefined;
    throw error;
  }
}
