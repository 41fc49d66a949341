import { createAuditObserver } from "../audit/observer.ts";
import type { Runs } from "../delegation/runs.ts";
import { isDelegated } from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import { compilePolicy } from "../policy/policy.ts";
import { checkReviewRules } from "../policy/review-rules.ts";
import type { GrantStore } from "../store/grants.ts";
import type { TenantStore } from "../store/store.ts";
import type { ClaimRef } from "../store/tasks.ts";
import { checkClaim } from "../tasks/claim-next.ts";
import { createTaskList, type TaskList } from "../tasks/create-task-list.ts";
import { tiesFulfilled } from "../tasks/rules.ts";
import { createRegistry, type Registry } from "../tools/registry.ts";
import type { Tool } from "../tools/tool.ts";
import { systemClock } from "../util/clock.ts";
import { createIds } from "../util/ids.ts";
import { systemRandom } from "../util/random.ts";
import { systemTimers } from "../util/timers.ts";
import { attentionOf, type Reviewers, reviewersOf } from "./attention.ts";
import type { GateContext } from "./context.ts";
import { passBy } from "./crash-point.ts";
import { inboxOf } from "./decide.ts";
import { delegatingOf, type GateDelegations } from "./delegating.ts";
import { createExecutor } from "./execute.ts";
import { allowAlways } from "./guards.ts";
import type { Inbox } from "./inbox.ts";
import { bindingsOf, type JudgeParts } from "./judge.ts";
import { openQuota } from "./open-quota.ts";
import type { GateOptions } from "./options.ts";
import { resolvedPaths, sessionFoldersOf } from "./places.ts";
import { reviewOn } from "./propose.ts";
import { carryOnHeld, type Places, type Recovered, recover } from "./recover.ts";
import { consultGuard, createStaging, verdictOf } from "./review.ts";
import { openSession, type Session } from "./session.ts";
import { type StandingRules, standingRulesOf } from "./standing-rules.ts";
import { changedRules, goBack } from "./supersede.ts";
import { undoDispatcher } from "./undo.ts";
import type { Person } from "./who-may.ts";

/** The only place where the parts meet. */
export interface Gate
  extends Pick<TenantStore, "audit" | "decisions" | "operations" | "killSwitch"> {
  readonly tools: Registry;
  /** Everybody who may decide; undefined: whoever is not in the chain of those who asked. */
  readonly people: readonly Person[] | undefined;
  readonly sessions: {
    /** The folder is the host's to name: callers that are not trusted go through `folderFor` first. */
    open(session: OpenSession): Session;
    /**
     * The folder that a caller from outside asks for, with its links resolved; empty for none. Throws not_allowed unless it
     * is listed in `sessionFolders` or below a listed one.
     */
    folderFor(asked: string): Promise<string>;
  };
  /** Who was handed what: to attach, report, revoke and look up. Sessions hand over by themselves. */
  readonly delegations: GateDelegations;
  readonly runs: Runs;
  /** Findings that people have lifted. Throws not_allowed for those who would benefit. */
  readonly grants: GrantStore;
  /** Everything that waits for a person. */
  readonly interactions: Inbox;
  /** The shared list. A task tied to decisions or a delegation is completed only when those are. */
  readonly tasks: TaskList;
  /** How people decide, and the way back for those who let decoys through. */
  readonly reviewers: Reviewers;
  /** What people have allowed beforehand. */
  readonly standingRules: StandingRules;
  /**
   * Goes on with what a process left behind when it went away: open operations whose lease ran out, then approved decisions
   * that were not carried out to their end. Call it after a start and now and then; any number of processes may do so at once.
   * One call looks at 10,000 records of each kind at most and says so (`more`); the next one goes on from there.
   */
  recover(): Promise<Recovered>;
}

export interface OpenSession {
  /** Correlates everything below it; made when left out. */
  readonly id?: string;
  readonly agent: string;
  /** Who delegated to this agent, nearest first. */
  readonly delegatedBy?: readonly string[];
  /** The person on whose behalf it acts; they cannot approve what it asks for. */
  readonly owner?: string;
  /** The claim of a task it works under. Once the lease is over or the fence has moved, nothing of it runs any more. */
  readonly claim?: ClaimRef;
  readonly workingDirectory?: string;
}

/** Wires tools, gate, reviews, executor and store together. Throws TypeError for a part that is missing. */
export function createGate(options: GateOptions): Gate {
  const { clock = systemClock, timers = systemTimers, random = systemRandom } = options;
  const { at = passBy, leaseMs = 30_000 } = options;
  const registry = registryOf(options.tools);
  const folders = sessionFoldersOf(options.sessionFolders ?? []);
  const reviewRules = options.review ?? [];
  const { approvalMs = 24 * 3_600_000 } = options;
  checkReviewRules(reviewRules, { deadlineMs: approvalMs });
  const observer = createAuditObserver({
    sinks: [],
    onProblem: () => {},
    ...options.audit,
    findTool: (name) => registry.get(name),
    clock,
  });
  const bare = options.store.tenant(options.tenant);
  // Everything below gets the observed operations, so that no way of carrying out can forget to tell.
  const store: TenantStore = { ...bare, operations: observer.around(bare.operations) };
  const reviewTimeoutMs = 60_000;
  const staging = createStaging({
    reviewTimeoutMs,
    store: store.decisions,
    tech: options.validators.tech,
    business: options.validators.business,
    guard: options.guard,
    clock,
    timers,
  });
  const { timeoutMs, processor } = options;
  const executor = createExecutor({
    tenant: options.tenant,
    operations: store.operations,
    timers,
    leaseMs,
    at,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(processor === undefined ? {} : { processor }),
  });
  const { hooks, checkpoint, confidenceKey, gatePolicies: policies = [] } = options;
  const { onLedgerProblem: onProblem = () => {}, onResumeProblem = () => {} } = options;
  const judging: JudgeParts = {
    registry,
    policy: compilePolicy(options.policy),
    bindings: bindingsOf(store, policies, { newId: () => ids.next(), onProblem }),
    fileRoots: options.fileRoots ?? [],
    protectedPaths: resolvedPaths(options.protectedPaths ?? []),
    checkClaim: (claim) => checkClaim(store.tasks, claim, clock),
    timers,
    now: () => clock.now(),
    ...(hooks === undefined ? {} : { hooks }),
    ...(checkpoint === undefined ? {} : { checkpoint }),
    ...(confidenceKey === undefined ? {} : { confidenceKey }),
  };
  const ids = createIds({ clock, random });
  const undoFor = (chain: readonly string[]) =>
    undoDispatcher({
      judging,
      executor,
      observer,
      refusals: store.refusals,
      tenant: options.tenant,
      chain,
    });
  const context: GateContext = {
    store,
    judging,
    staging,
    quota: openQuota({
      what: "open questions",
      hint: "Wait until people have answered some of them.",
      most: options.quotas?.openQuestions ?? 5_000,
      mostBytes: options.quotas?.openBytes ?? 32 * 1024 * 1024,
      isOpen: async (id) => (await store.interactions.peek(id))?.status === "open",
      now: () => clock.now(),
    }),
    executor,
    observer,
    validateBusiness: (diff) =>
      verdictOf(options.validators.business, diff, { reviewTimeoutMs, timers }),
    consult:
      options.guard === allowAlways
        ? undefined
        : consultGuard(options.guard, { reviewTimeoutMs, timers }),
    deciding: {
      judging,
      store,
      registry,
      executor,
      at,
      dispatchUndo: undoFor([]),
      changedRules: (decision, shown, first) => changedRules(decision, shown, first, context),
      goBack: (decision, difference) => goBack(decision, difference, context),
      reviewOn: (decision) => reviewOn(decision, context),
    },
    undoFor,
    reviewRules,
    people: options.people,
    policyVersion: options.policy.version,
    timers,
    delegations: () => delegations,
    attention: () => attention,
    onCommit: (listener) => options.store.onCommit(listener),
    approvalMs,
    at,
    newId: () => ids.next(),
    newNonce: () => Buffer.from(random.bytes(16)).toString("hex"),
  };

  const attention =
    options.attention === undefined ? undefined : attentionOf(options.attention, context, random);
  const places: Places = { operations: 0, approved: 0, unasked: 0 };
  const { delegations, runs, grants } = delegatingOf(context, {
    clock,
    random,
    policies,
    folders,
    onProblem,
  });

  return {
    audit: store.audit,
    decisions: {
      ...store.decisions,
      // What is staged here goes past the gate, so it is not the gate's own.
      stage: ({ origin: _, ...draft }, by, along) => store.decisions.stage(draft, by, along),
    },
    operations: store.operations,
    killSwitch: {
      ...store.killSwitch,
      async resume(reason, by) {
        await store.killSwitch.resume(reason, by);
        // Not waited for: whoever resumes is answered at once. What fails here is found by the next recovery.
        carryOnHeld(context.deciding).catch(onResumeProblem);
      },
    },
    tools: registry,
    people: options.people,
    sessions: {
      folderFor: async (asked) => (asked === "" ? "" : folders.check(asked)),
      open({ id = ids.next(), agent, delegatedBy = [], owner = "", claim, workingDirectory = "" }) {
        if (isDelegated(id)) {
          const hint = "This is the session of a sub-agent: attach to it with its token.";
          throw new SallyportError("not_allowed", { id, hint });
        }
        const caller = {
          tenant: options.tenant,
          sessionId: id,
          chain: [agent, ...delegatedBy],
          owner,
          workingDirectory,
          ...(claim === undefined ? {} : { claim }),
        };
        return openSession(caller, context);
      },
    },
    interactions: inboxOf(context),
    delegations,
    runs,
    grants,
    tasks: createTaskList({
      store: store.tasks,
      clock,
      ids,
      mayComplete: tiesFulfilled({
        decisions: store.decisions,
        isFulfilled: async (id) =>
          isDelegated(id) && (await store.delegations.get(id)).promiseMet === true,
      }),
    }),
    reviewers: reviewersOf(store.reviewers),
    standingRules: standingRulesOf({ store, registry, people: options.people }),
    recover: () => recover(context.deciding, leaseMs, places),
  };
}

function registryOf(tools: readonly Tool[] | Registry): Registry {
  if (!Array.isArray(tools)) return tools as Registry;
  const registry = createRegistry();
  for (const tool of tools) registry.register(tool);
  return registry;
}
