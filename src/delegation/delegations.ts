import type { Delegation, DelegationId } from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import type { Finding } from "../model/finding.ts";
import { type Evidence, unmetNeeds } from "../model/promise.ts";
import { isBlocking } from "../policy/answers.ts";
import type { GatePolicy } from "../policy/gate-policy.ts";
import type { By } from "../store/decisions.ts";
import type { DelegationStore } from "../store/delegations.ts";
import type { TenantStore } from "../store/store.ts";
import type { Clock } from "../util/clock.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { Random } from "../util/random.ts";
import type { Timers } from "../util/timers.ts";
import { cutOutput, delegate } from "./delegate.ts";
import { createGateRunner, grantAuthorisation } from "./gate-runner.ts";
import type { Delegated, DelegationOutcome, DelegationRequest, Parent } from "./plan.ts";
import { type Capsule, capsuleOf } from "./scope.ts";

/** Hand-overs to sub-agents: planned, gated, bounded, revocable, and answered for. */
export interface Delegations<Session> {
  /** Plans it, asks the gate and hands it over, or says why not. Throws only when the store or the gate fails. */
  delegate(
    parent: Parent,
    request: DelegationRequest,
    how?: { dryRun: boolean },
  ): Promise<Delegated>;
  /** For whoever was given the token, in any process. Throws not_allowed, illegal_transition. */
  attach(id: DelegationId, token: string): Promise<Attached<Session>>;
  /** What came out, checked against the promise. Throws not_allowed, illegal_transition. */
  report(id: DelegationId, output: string, token: string): Promise<DelegationOutcome>;
  /** It cannot be done. Throws illegal_transition when it has ended. */
  fail(id: DelegationId, reason: string, by: By): Promise<Delegation>;
  /** Stops it and everything below it: once this has answered, none of them starts anything. */
  revoke(id: DelegationId, reason: string, by: By): Promise<Delegation>;
  get(id: DelegationId): Promise<Delegation>;
  list(query: { rootSession?: string; parentSession?: string }): Promise<readonly Delegation[]>;
  /** Aborted within half a second after it, or anything it hangs on, has ended. */
  watch(id: DelegationId): Watch;
  /** Ends those whose time is over. Call it now and then, in any number of processes. */
  sweep(): Promise<readonly DelegationId[]>;
}

export interface Attached<Session> {
  readonly capsule: Capsule;
  readonly session: Session;
  readonly watch: Watch;
}

export interface DelegationParts<Session> {
  readonly store: Pick<TenantStore, "delegations" | "runs" | "grants" | "gateLedger">;
  readonly policies: readonly GatePolicy[];
  /** The folder that a parent without one of its own may hand on. Throws not_allowed. */
  readonly folderFor: (asked: string) => Promise<string>;
  /** Opens the session of a sub-agent; its calls end with the signal. */
  readonly open: (delegation: Delegation, signal: AbortSignal) => Session;
  readonly clock: Clock;
  readonly random: Random;
  readonly timers: Timers;
  readonly newId: () => string;
  /** Shape: push; a gate's evaluation could not be written down. What was decided stands. */
  readonly onProblem: (problem: { readonly traceId: string; readonly error: unknown }) => void;
}

const MOST_SWEPT = 100;

export function createDelegations<Session>(parts: DelegationParts<Session>): Delegations<Session> {
  const { store, timers } = parts;

  /** Whoever cannot show the token is not told what it is about either. */
  async function holderOf(id: DelegationId, token: string): Promise<Delegation> {
    const delegation = await store.delegations.get(id);
    if (typeof token === "string" && isTokenOf(token, delegation)) return delegation;
    const hint = "Use the token that came with the capsule.";
    throw new SallyportError("not_allowed", { id, hint });
  }

  const watch = (id: DelegationId) => watchDelegation(id, store.delegations, timers);

  return {
    delegate: (parent, request, how) => delegate(parent, request, parts, how?.dryRun === true),
    async attach(id, token) {
      const delegation = await holderOf(id, token);
      if (delegation.state !== "active") {
        const hint = "It has ended, and nothing can be done under it any more.";
        throw new SallyportError("illegal_transition", { id, from: delegation.state, hint });
      }
      const watched = watch(id);
      const session = parts.open(delegation, watched.signal);
      return { capsule: capsuleOf(delegation), session, watch: watched };
    },
    async report(id, output, token) {
      return closeWithReport(await holderOf(id, token), output, parts);
    },
    fail: (id, reason, by) => store.delegations.close(id, { state: "failed", reason }, by),
    revoke: (id, reason, by) => store.delegations.close(id, { state: "revoked", reason }, by),
    get: (id) => store.delegations.get(id),
    list: (query) => store.delegations.list(query),
    watch,
    async sweep() {
      const swept: DelegationId[] = [];
      for (const { id } of await store.delegations.overdue(MOST_SWEPT)) {
        const closing = { state: "failed", reason: "Its time is over." } as const;
        try {
          await store.delegations.close(id, closing, { actor: "sweeper" });
          swept.push(id);
        } catch (error) {
          // Somebody has ended it in the meantime.
          if (!(error instanceof SallyportError && error.code === "illegal_transition"))
            throw error;
        }
      }
      return swept;
    },
  };
}

function isTokenOf(token: string, { tokenHash }: Delegation): boolean {
  return token.isWellFormed() && sha256Hex(token) === tokenHash;
}

/** Tells whoever works for a delegation when it is over. */
interface Watch {
  /** Aborted when the delegation or anything it hangs on has ended or run out of time, or when nobody can tell. */
  readonly signal: AbortSignal;
  /** Stops watching; the signal stays as it is. */
  stop(): void;
}

const EVERY_MS = 250;
/** For so long a store may fail before the one who works is stopped: nothing can be started meanwhile. */
const PATIENCE = 8;

function watchDelegation(
  id: DelegationId,
  delegations: Pick<DelegationStore, "whyOver">,
  timers: Timers,
): Watch {
  const over = new AbortController();
  let cancel = () => {};
  let isStopped = false;
  let failures = 0;

  async function look(): Promise<void> {
    const why = await lookOnce();
    if (isStopped) return;
    if (why !== undefined) over.abort(new Error(why));
    else cancel = timers.after(EVERY_MS, () => void look());
  }

  async function lookOnce(): Promise<string | undefined> {
    try {
      const why = await delegations.whyOver(id);
      failures = 0;
      return why;
    } catch (error) {
      failures += 1;
      return failures < PATIENCE
        ? undefined
        : `The delegation cannot be looked up: ${errorText(error)}`;
    }
  }

  void look();
  return {
    signal: over.signal,
    stop() {
      isStopped = true;
      cancel();
    },
  };
}

/** Takes what a sub-agent reports: cut to its limit, held against its promise, looked at by the gate once more. */
async function closeWithReport(
  delegation: Delegation,
  given: string,
  parts: DelegationParts<unknown>,
): Promise<DelegationOutcome> {
  const { store, clock, newId, policies, onProblem } = parts;
  const output = cutOutput(given);
  const missing = missingOf(delegation, output, await evidenceOf(delegation, parts));
  const promiseMet = missing.length === 0;
  const { id, agents, runId, rootSession, scope } = delegation;
  const by = { actor: agents[0] ?? "agent" };
  const gate = createGateRunner({
    policies,
    ledger: store.gateLedger,
    newTraceId: newId,
    onProblem,
  });
  const context = {
    point: "post-delegation",
    role: scope.role,
    payload: { planId: scope.planId, task: delegation.task, promiseMet },
    ...(runId === "" ? {} : { run: runId }),
  } as const;
  const bare = await gate.run(context, { sessionId: rootSession, ...by });
  const grants = grantAuthorisation(await store.grants.listFor(rootSession), clock.now());
  const asked = await grants.evaluate(bare, context);
  const closed = asked.allowed
    ? await store.delegations.close(id, { state: "reported", output, promiseMet, missing }, by)
    : await store.delegations.close(id, { state: "failed", reason: reasonOf(asked.findings) }, by);
  return outcomeOf(closed, missing);
}

export function outcomeOf(
  delegation: Delegation,
  missing: readonly string[] = [],
): DelegationOutcome {
  const { id, traceId, promise, state, promiseMet = false, output, reason, scope } = delegation;
  return {
    delegationId: id,
    planId: scope.planId,
    traceId,
    promiseId: promise.id,
    state,
    promiseMet,
    missing,
    output,
    reason,
  };
}

async function evidenceOf(
  { runId }: Delegation,
  { store }: DelegationParts<unknown>,
): Promise<readonly Evidence[]> {
  return (await store.runs.peek(runId))?.evidence ?? [];
}

/** A promise that asks for no evidence is kept by a report that says something. */
function missingOf(
  { promise }: Delegation,
  output: string,
  evidence: readonly Evidence[],
): readonly string[] {
  const unmet = unmetNeeds(promise, evidence).map(({ name }) => name);
  return output.trim() === "" ? [...unmet, "a report"] : unmet;
}

function reasonOf(findings: readonly Finding[]): string {
  const said = findings.filter(isBlocking).map(({ message }) => message);
  return `The gate did not accept the result: ${said.join(" ")}`;
}
