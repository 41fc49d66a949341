import { createDelegations, type Delegations } from "../delegation/delegations.ts";
import { createGateRunner, grantAuthorisation } from "../delegation/gate-runner.ts";
import { createRuns, type Runs } from "../delegation/runs.ts";
import { type Delegation, type DelegationId, isDelegated } from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import type { GrantStore } from "../store/grants.ts";
import type { GateContext } from "./context.ts";
import { rollback } from "./rollback.ts";
import type { RollbackReport } from "./rollback-report.ts";
import { openSession, type Session } from "./session.ts";
import { undoDispatcher } from "./undo.ts";
import { whyNot } from "./who-may.ts";

/** With what needs the operations of those who worked. */
export interface GateDelegations extends Delegations<Session> {
  /** Takes back what was done under a delegation and everything below it, the newest delegation first. */
  rollback(id: DelegationId, by: string): Promise<readonly TakenBack[]>;
}

export interface TakenBack {
  readonly delegationId: DelegationId;
  readonly report: RollbackReport;
}

/** Delegations, runs and grants, as the gate offers them. */
export function delegatingOf(context: GateContext): {
  delegations: GateDelegations;
  runs: Runs;
  grants: GrantStore;
} {
  const { store, timers, clock, random, folders, newId } = context;
  const { gatePolicies: policies, onLedgerProblem: onProblem } = context;
  const delegations = createDelegations<Session>({
    store,
    policies,
    folderFor: (asked) => folders.check(asked),
    open: (delegation, signal) => childSession(context, delegation, signal),
    clock,
    random,
    timers,
    newId,
    onProblem,
  });
  const runs = createRuns({
    runs: store.runs,
    audit: store.audit,
    gate: createGateRunner({ policies, ledger: store.gateLedger, newTraceId: newId, onProblem }),
    authorisation: async (id) => grantAuthorisation(await store.grants.listFor(id), clock.now()),
    newId,
  });
  const takesBack = (id: DelegationId, by: string) => takeBack(context, id, by);
  return {
    delegations: { ...delegations, rollback: takesBack },
    runs,
    grants: personsGrants(context),
  };
}

async function takeBack(
  context: GateContext,
  id: DelegationId,
  by: string,
): Promise<readonly TakenBack[]> {
  const { store } = context;
  const { rootSession } = await store.delegations.get(id);
  const all = await store.delegations.list({ rootSession });
  const taken: TakenBack[] = [];
  for (const { id: delegationId, chain, agents } of all.toReversed()) {
    if (!chain.includes(id)) continue;
    const scope = { sessionId: delegationId };
    const { operations } = store;
    const dispatch = undoDispatcher(context, agents);
    const report = await rollback({ operations, scope, dispatch, by });
    taken.push({ delegationId, report });
  }
  return taken;
}

/** A grant is a person's decision: not of the agent it is for, nor of anyone who delegated to it. */
function personsGrants({ store, people }: GateContext): GrantStore {
  async function askers(sessionId: string): Promise<readonly string[]> {
    if (isDelegated(sessionId)) {
      const { agents, owner } = await store.delegations.get(sessionId);
      return [...agents, owner];
    }
    const run = await store.runs.peek(sessionId);
    const session = await store.sessions.peek(sessionId);
    return [run?.lead ?? "", session?.agent ?? "", session?.owner ?? ""];
  }
  return {
    ...store.grants,
    async give(grant) {
      const chain = (await askers(grant.sessionId)).filter((name) => name !== "");
      const hint = whyNot(grant.by, { chain, assignedTo: "" }, people);
      if (hint !== undefined) throw new SallyportError("not_allowed", { by: grant.by, hint });
      return store.grants.give(grant);
    },
  };
}

/**
 * The session of a sub-agent. Everything in it is bound by its delegation, which the gate and the store find by its id. Here
 * is only what they cannot see: in whose name it speaks, and that no one is asked on behalf of one that has ended.
 */
function childSession(
  context: GateContext,
  { id, agents, owner, workingDirectory }: Delegation,
  signal: AbortSignal,
): Session {
  const { tenant, delegations } = context.store;
  const caller = { tenant, sessionId: id, chain: agents, owner, workingDirectory, signal };
  const session = openSession(context, caller);

  async function checkAlive(): Promise<void> {
    const why = await delegations.whyOver(id);
    if (why === undefined) return;
    const hint = `${why} Stop working on this.`;
    throw new SallyportError("illegal_transition", { id, hint });
  }

  return {
    ...session,
    async ask(question) {
      await checkAlive();
      return session.ask(question);
    },
    async reply(interaction, text) {
      await checkAlive();
      return session.reply(interaction, text);
    },
    // Whatever name it gives, a sub-agent rolls back in its own.
    rollback: (_by, part) => session.rollback(agents[0] ?? "agent", part),
  };
}
