import { createDelegations, type Delegations } from "../delegation/delegations.ts";
import { createGateRunner, grantAuthorisation } from "../delegation/gate-runner.ts";
import { createRuns, type Runs } from "../delegation/runs.ts";
import type { GatePolicy } from "../gate/gate-policy.ts";
import { whyNot } from "../interactions/who-may.ts";
import { type DelegationId, isDelegated } from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import { rollback } from "../operations/rollback.ts";
import type { RollbackReport } from "../operations/rollback-report.ts";
import type { GrantStore } from "../store/grants.ts";
import type { Clock } from "../util/clock.ts";
import type { Random } from "../util/random.ts";
import { childSession } from "./child-session.ts";
import type { SallyportOptions } from "./options.ts";
import type { Rooms } from "./rooms.ts";
import type { Session } from "./session.ts";
import type { SessionFolders } from "./session-folders.ts";

/** With what needs the operations of those who worked. */
export interface PortDelegations extends Delegations<Session> {
  /** Takes back what was done under a delegation and everything below it, the newest delegation first. */
  rollback(id: DelegationId, by: string): Promise<readonly TakenBack[]>;
}

export interface TakenBack {
  readonly delegationId: DelegationId;
  readonly report: RollbackReport;
}

export interface DelegatingParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly policies: readonly GatePolicy[];
  readonly folders: SessionFolders;
  readonly onProblem: NonNullable<SallyportOptions["onLedgerProblem"]>;
}

/** Delegations, runs and grants, as the port offers them. */
export function delegatingOf(
  rooms: Rooms,
  { clock, random, policies, folders, onProblem }: DelegatingParts,
): { delegations: PortDelegations; runs: Runs; grants: GrantStore } {
  const { store, timers, newId } = rooms;
  const delegations = createDelegations<Session>({
    store,
    policies,
    folderFor: (asked) => folders.check(asked),
    open: (delegation, signal) => childSession(delegation, signal, rooms),
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
  const takesBack = (id: DelegationId, by: string) => takeBack(id, by, rooms);
  return {
    delegations: { ...delegations, rollback: takesBack },
    runs,
    grants: personsGrants(rooms),
  };
}

async function takeBack(
  id: DelegationId,
  by: string,
  { store, undoFor }: Rooms,
): Promise<readonly TakenBack[]> {
  const { rootSession } = await store.delegations.get(id);
  const all = await store.delegations.list({ rootSession });
  const taken: TakenBack[] = [];
  for (const { id: delegationId, chain, agents } of all.toReversed()) {
    if (!chain.includes(id)) continue;
    const scope = { sessionId: delegationId };
    const { operations } = store;
    const report = await rollback({ operations, scope, dispatch: undoFor(agents), by });
    taken.push({ delegationId, report });
  }
  return taken;
}

/** A grant is a person's decision: not of whoever it is for, nor of anybody who delegated to them. */
function personsGrants({ store, people }: Rooms): GrantStore {
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
