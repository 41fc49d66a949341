import type { SessionId } from "../model/decision.ts";
import {
  type CompletionPromise,
  type Delegation,
  type DelegationId,
  delegationId,
  isDelegated,
  type Run,
  type Scope,
  unmetNeeds,
} from "../model/delegation.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Finding } from "../model/finding.ts";
import { foldName } from "../model/names.ts";
import { isBlocking } from "../policy/answers.ts";
import type { GatePolicy } from "../policy/decide.ts";
import type { By } from "../store/decisions.ts";
import type { CreateRefusal, DelegationStore } from "../store/delegations.ts";
import type { GateLedger } from "../store/grants.ts";
import type { TenantStore } from "../store/store.ts";
import { resolveFolder } from "../tools/tool-call.ts";
import type { Clock } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import { cutText, errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { Random } from "../util/random.ts";
import type { Timers } from "../util/timers.ts";
import {
  createGateRunner,
  createPlan,
  type Delegated,
  type DelegationOutcome,
  type DelegationRequest,
  grantAuthorisation,
  type Parent,
  type PlanError,
  type PlanVerdict,
  planError,
  validatePlan,
} from "./plan.ts";
import { moveRun } from "./runs.ts";
import {
  type Capsule,
  capsuleOf,
  describeCapsule,
  isInside,
  narrowScope,
  resolvePlace,
  resolvePlaces,
  type ScopeRequest,
} from "./scope.ts";

/** Delegations to sub-agents: planned, gated, bounded, revocable. */
export interface Delegations<Session> {
  /** Plans it, asks the gate and delegates, or says why not. Throws only when the store or the gate fails. */
  delegate(
    parent: Parent,
    request: DelegationRequest,
    how?: { dryRun: boolean },
  ): Promise<Delegated>;
  /** For the bearer of the token, in any process. Throws not_allowed, illegal_transition. */
  attach(id: DelegationId, token: string): Promise<Attached<Session>>;
  /** Reports the output, which is checked against the promise. Throws not_allowed, illegal_transition. */
  report(id: DelegationId, output: string, token: string): Promise<DelegationOutcome>;
  /** Ends it as failed. Throws illegal_transition when it has ended. */
  fail(id: DelegationId, reason: string, by: By): Promise<Delegation>;
  /** Stops it and everything below it: after this returns, none of them starts anything. */
  revoke(id: DelegationId, reason: string, by: By): Promise<Delegation>;
  get(id: DelegationId): Promise<Delegation>;
  list(query: { rootSession?: string; parentSession?: string }): Promise<readonly Delegation[]>;
  /** Ends those that have expired. Call it periodically, in any number of processes. */
  sweep(): Promise<readonly DelegationId[]>;
}

interface Attached<Session> {
  readonly capsule: Capsule;
  readonly session: Session;
  readonly watch: Watch;
}

export interface DelegationParts<Session> {
  readonly store: Pick<TenantStore, "delegations" | "runs" | "grants" | "gateLedger">;
  readonly policies: readonly GatePolicy[];
  /** The folder that a parent without one of its own may delegate. Throws not_allowed. */
  readonly folderFor: (asked: string) => Promise<string>;
  /** Opens the session of a sub-agent; its calls end with the signal. */
  readonly open: (delegation: Delegation, signal: AbortSignal) => Session;
  /** Further problems of a delegation that is about to be made. Not asked in a dry run. Shape: callback. */
  readonly objections?: (
    parent: Parent,
    request: DelegationRequest,
  ) => Promise<readonly PlanError[]>;
  readonly clock: Clock;
  readonly random: Random;
  readonly timers: Timers;
  readonly newId: () => string;
  /** Shape: push; a gate's evaluation could not be recorded. The decision holds all the same. */
  readonly onProblem: (problem: { readonly traceId: string; readonly error: unknown }) => void;
}

const MOST_SWEPT = 100;

export function createDelegations<Session>(parts: DelegationParts<Session>): Delegations<Session> {
  const { store, timers } = parts;

  /** Without the token the caller learns nothing about the delegation. */
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
        const hint = "It has ended.";
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
    async sweep() {
      const swept: DelegationId[] = [];
      for (const { id } of await store.delegations.overdue(MOST_SWEPT)) {
        const closing = { state: "failed", reason: "It has expired." } as const;
        try {
          await store.delegations.close(id, closing, { actor: "sweeper" });
          swept.push(id);
        } catch (error) {
          // It has ended in the meantime.
          if (!isSallyportError(error, "illegal_transition")) throw error;
        }
      }
      return swept;
    },
  };
}

function isTokenOf(token: string, { tokenHash }: Delegation): boolean {
  return token.isWellFormed() && sha256Hex(token) === tokenHash;
}

/** Signals the end of a delegation to its worker. */
interface Watch {
  /** Aborted when the delegation or one above it has ended or expired, or when the store cannot be read. */
  readonly signal: AbortSignal;
  /** Stops watching; the signal stays as it is. */
  stop(): void;
}

const EVERY_MS = 250;
/** So many failed reads in a row stop the worker. Nothing can be started meanwhile. */
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
      if (failures < PATIENCE) return undefined;
      return `The delegation cannot be looked up: ${errorText(error)}`;
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

/** Closes a delegation with its report: cut to the limit, checked against the promise, judged by the gate. */
async function closeWithReport(
  delegation: Delegation,
  given: string,
  parts: DelegationParts<unknown>,
): Promise<DelegationOutcome> {
  const { store } = parts;
  const output = cutOutput(given);
  const { id, agents, runId, rootSession, scope, promise, task } = delegation;
  const evidence = (await store.runs.peek(runId))?.evidence ?? [];
  const unmet = unmetNeeds(promise, evidence).map(({ name }) => name);
  // A promise that asks for no evidence is met by a report that is not blank.
  const missing = output.trim() === "" ? [...unmet, "a report"] : unmet;
  const promiseMet = missing.length === 0;
  const by = { actor: agents[0] ?? "agent" };
  const { gate, authorisation } = await gateOf(parts, rootSession, store.gateLedger);
  const context = definedFields({
    point: "post-delegation" as const,
    role: scope.role,
    payload: { planId: scope.planId, task, promiseMet },
    run: runId || undefined,
  });
  const bare = await gate.run(context, { sessionId: rootSession, ...by });
  const asked = await authorisation.evaluate(bare, context);
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

/** The gate and the grants of a session. */
async function gateOf(
  { policies, store, clock, newId, onProblem }: DelegationParts<unknown>,
  session: SessionId,
  ledger: GateLedger | undefined,
) {
  return {
    gate: createGateRunner({ policies, ledger, newTraceId: newId, onProblem }),
    authorisation: grantAuthorisation(await store.grants.listFor(session), clock.now()),
  };
}

function reasonOf(findings: readonly Finding[]): string {
  const said = findings.filter(isBlocking).map(({ message }) => message);
  return `The gate did not accept the result: ${said.join(" ")}`;
}

/** Tasks of one request. */
export const MOST_TASKS = 8;
/** Concurrent sub-agents of one parent; the store enforces it across processes. */
export const MOST_AT_ONCE = 4;
/** Links of a chain in which each gets the findings of the one before. */
export const MOST_LINKS = 8;
/** Characters of a report. */
export const LONGEST_OUTPUT = 30_000;

const CUT = "\n[cut: it was longer than 30,000 characters]";

/** Never longer than the limit, and marked where it was cut. */
export function cutOutput(output: string): string {
  if (output.length <= LONGEST_OUTPUT) return output;
  return `${cutText(output, LONGEST_OUTPUT - CUT.length)}${CUT}`;
}

/** Plan, checks, gate, then the row; or a refusal with all problems. */
export async function delegate(
  given: Parent,
  request: DelegationRequest,
  parts: DelegationParts<unknown>,
  isDryRun: boolean,
): Promise<Delegated> {
  const { store, clock, random, newId } = parts;
  const chain = isDelegated(given.sessionId)
    ? await store.delegations.chainOf(given.sessionId)
    : [];
  const parent = chain.at(-1);
  // Below the root the record names the delegators, not the caller.
  const above = parent?.agents ?? given.agents;
  const rootSession = parent?.rootSession ?? given.sessionId;
  const run = await store.runs.peek(rootSession);
  const folder = await childFolder(request, parent ?? given, parts);
  const { workingDirectory } = folder;
  const promise = promiseOf(request, run);
  const { role, task, capsule, writePermission } = request;
  const plan = createPlan(
    { role, task, capsule, promiseId: promise.id, traceId: newId(), writePermission },
    { clock, random },
  );
  const places = await resolvedPlaces(request, workingDirectory);
  const bounds = { scope: parent && scopeOf(parent, chain), run };
  const narrowed = narrowScope(plan, { ...request, ...places }, bounds);
  const actor = above[0] ?? "agent";
  const found = await validatePlan(plan, {
    ...(await gateOf(parts, rootSession, isDryRun ? undefined : store.gateLedger)),
    workingDirectory,
    caller: { sessionId: rootSession, actor },
    run,
  });
  const extra = [
    ...(run === undefined ? [] : checkRun(run, above, chain.length === 0)),
    ...folder.errors,
    ...promise.errors,
    ...narrowed.errors,
    ...namesWrong(request.agent, above),
    ...(isDryRun ? [] : ((await parts.objections?.(given, request)) ?? [])),
  ];
  const verdict: PlanVerdict = {
    ...found,
    errors: [...found.errors, ...extra],
    allowed: found.allowed && extra.length === 0,
  };

  const facts = { task, capsule, promise: promise.promise, workingDirectory };
  const { scope, ttlMs } = narrowed;
  if (isDryRun) {
    const dry = capsuleOf({ id: "", ...facts, scope });
    return { answer: "dry_run", capsule: dry, text: describeCapsule(dry), verdict };
  }

  async function refuse(why: PlanVerdict): Promise<Delegated> {
    const findings = [...why.errors, ...(why.gate?.findings ?? [])];
    const data = {
      agent: request.agent.toWellFormed(),
      role,
      trace: plan.traceId,
      findings: findings.map(({ severity, policy }) => ({ severity, policy })),
    };
    const { planId } = plan;
    await store.delegations.refuse({ planId, sessionId: rootSession, actor, data });
    const said = findings.filter(isBlocking).map(({ message }) => message);
    return { answer: "denied", text: `Not delegated. ${said.join(" ")}`, verdict: why };
  }

  if (!verdict.allowed) return refuse(verdict);
  if (promise.isNew && run !== undefined) {
    const event = { kind: "promised", promise: promise.promise } as const;
    const isGiven = ({ promises }: Run) => promises.some(({ id }) => id === promise.id);
    await moveRun(store.runs, run.id, (now) => (isGiven(now) ? undefined : event), {
      actor: above[0] ?? run.lead,
    });
  }
  const token = Buffer.from(random.bytes(32)).toString("base64url");
  const answer = await store.delegations.create({
    id: delegationId(newId()),
    parent,
    parentSession: given.sessionId,
    rootSession,
    agents: [request.agent, ...above],
    owner: parent?.owner ?? given.owner ?? "",
    runId: run?.id ?? "",
    traceId: plan.traceId,
    ...facts,
    scope,
    ...definedFields({ ttlMs }),
    atOnce: MOST_AT_ONCE,
    tokenHash: sha256Hex(token),
    actor,
  });
  if (!answer.created) {
    const error = planError("hard-deny", "store", REFUSALS[answer.reason]);
    return refuse({ ...verdict, allowed: false, errors: [...verdict.errors, error] });
  }
  const { delegation } = answer;
  return { answer: "delegated", delegation, capsule: capsuleOf(delegation), token, verdict };
}

const REFUSALS: Readonly<Record<CreateRefusal, string>> = {
  stopped: "An operator has stopped everything. Ask again after work was resumed.",
  parent_exceeded:
    "Your own delegation has ended, or has not that many calls or that much time left. Ask for less, or stop.",
  too_many: `${MOST_AT_ONCE} sub-agents work for you already. Wait until one of them has ended.`,
};

/** A run that has ended delegates nothing, and only its lead delegates in it. */
function checkRun(run: Run, above: readonly string[], isRoot: boolean): readonly PlanError[] {
  if (run.status !== "open") {
    return [planError("hard-deny", "run", "The run has ended. Start another one.")];
  }
  if (!isRoot || foldName(above[0] ?? "") === foldName(run.lead)) return [];
  return [
    planError("hard-deny", "run", `The run is led by ${run.lead}. Only they delegate in it.`),
  ];
}

/** The parent's scope with the calls that are left: siblings share the budget from above. */
function scopeOf({ scope }: Delegation, chain: readonly Delegation[]): Scope {
  return { ...scope, calls: Math.min(...chain.map((one) => one.scope.calls)) };
}

/** Rejects cycles: an agent must not be its own delegator. */
function namesWrong(agent: string, above: readonly string[]): readonly PlanError[] {
  if (typeof agent !== "string" || agent.trim() === "") {
    return [planError("hard-deny", "agent", "Say which agent it is for.")];
  }
  // Names are compared without regard to case and spelling.
  if (!above.map(foldName).includes(foldName(agent))) return [];
  const message = `${agent} is above itself in this chain. Choose another agent.`;
  return [planError("hard-deny", "cycle", message)];
}

/** Rights only shrink downwards: the child works in its parent's folder or below it, symbolic links resolved. */
async function childFolder(
  { workingDirectory: asked }: DelegationRequest,
  { workingDirectory: above }: Pick<Parent, "workingDirectory">,
  { folderFor }: DelegationParts<unknown>,
): Promise<{ readonly workingDirectory: string; readonly errors: readonly PlanError[] }> {
  if (asked === undefined || asked === above) return { workingDirectory: above, errors: [] };
  const refused = (message: string) => ({
    workingDirectory: above,
    errors: [planError("hard-deny", "folder", message)],
  });
  if (above === "") {
    try {
      return { workingDirectory: await folderFor(asked), errors: [] };
    } catch (error) {
      if (!isSallyportError(error, "not_allowed")) throw error;
      return refused(
        `You have no working folder, and ${asked} is not among the folders that the operator listed as sessionFolders. Leave workingDirectory out.`,
      );
    }
  }
  const found = await resolveFolder(asked);
  const outer = await resolveFolder(above);
  if (found !== undefined && outer !== undefined && isInside(found, [outer])) {
    return { workingDirectory: found, errors: [] };
  }
  return refused(
    `The folder ${asked} is not inside yours, ${above}. Leave workingDirectory out, or name a folder below it.`,
  );
}

async function resolvedPlaces(
  { planFiles, documents, artefact }: ScopeRequest,
  workingDirectory: string,
): Promise<ScopeRequest> {
  return {
    ...(planFiles && { planFiles: await resolvePlaces(planFiles, workingDirectory) }),
    ...(documents && { documents: await resolvePlaces(documents, workingDirectory) }),
    ...(artefact && { artefact: await resolvePlace(artefact, workingDirectory) }),
  };
}

interface FoundPromise {
  readonly id: string;
  readonly promise: CompletionPromise;
  /** It must be added to the run, so that evidence can be recorded for it. */
  readonly isNew: boolean;
  readonly errors: readonly PlanError[];
}

function promiseOf({ promise }: DelegationRequest, run: Run | undefined): FoundPromise {
  const id = typeof promise === "string" ? promise : promise.id;
  const known = run?.promises.find((one) => one.id === id);
  if (typeof promise !== "string") {
    const isSame = known === undefined || JSON.stringify(known) === JSON.stringify(promise);
    const message = `The run has given another promise ${id}. Choose another id.`;
    const errors = isSame ? [] : [planError("hard-deny", "promise", message)];
    return { id, promise, isNew: known === undefined, errors };
  }
  if (known !== undefined) return { id, promise: known, isNew: false, errors: [] };
  // An empty id is found by the check of the plan itself.
  const message = `There is no promise ${id}. Say what must be true in the end.`;
  const errors = id === "" ? [] : [planError("hard-deny", "promise", message)];
  return { id, promise: { id, statement: "", evidence: [] }, isNew: false, errors };
}
