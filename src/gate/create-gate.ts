// The wiring: the one context that every step of a call receives, and the facade over them.

import { createAuditObserver } from "../audit/observer.ts";
import type { Runs } from "../delegation/runs.ts";
import { isDelegated } from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import { compilePolicy } from "../policy/policy.ts";
import { checkReviewRules } from "../policy/review-rules.ts";
import type { GrantStore } from "../store/grants.ts";
import type { TenantStore } from "../store/store.ts";
import type { ClaimRef } from "../store/tasks.ts";
import { createTaskList, type TaskList } from "../tasks/create-task-list.ts";
import { tiesFulfilled } from "../tasks/rules.ts";
import { createRegistry, type Registry } from "../tools/registry.ts";
import type { Tool } from "../tools/tool.ts";
import { systemClock } from "../util/clock.ts";
import { createIds } from "../util/ids.ts";
import { systemRandom } from "../util/random.ts";
import { systemTimers } from "../util/timers.ts";
import { checkAttention, type Reviewers, reviewersOf } from "./attention.ts";
import type { GateContext } from "./context.ts";
import { inboxOf } from "./decide.ts";
import { delegatingOf, type GateDelegations } from "./delegating.ts";
import type { Inbox } from "./inbox.ts";
import { openQuota } from "./open-quota.ts";
import type { GateOptions } from "./options.ts";
import { resolvedPaths, sessionFoldersOf } from "./places.ts";
import { carryOnHeld, type Places, type Recovered, recover } from "./recover.ts";
import { openSession, type Session } from "./session.ts";
import { type StandingRules, standingRulesOf } from "./standing-rules.ts";
import type { Person } from "./who-may.ts";

/** What an application creates; every way to call a tool goes through it. */
export interface Gate
  extends Pick<TenantStore, "audit" | "decisions" | "operations" | "killSwitch"> {
  readonly tools: Registry;
  /** Everyone who may decide; undefined: anyone who is not among the requesters. */
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
  /** Delegations: attach, report, revoke, look up. A session delegates by itself. */
  readonly delegations: GateDelegations;
  readonly runs: Runs;
  /** Findings that people have lifted. Throws not_allowed for those who would benefit. */
  readonly grants: GrantStore;
  /** Everything that waits for a person. */
  readonly interactions: Inbox;
  /** The shared list. A task tied to decisions or a delegation is completed only when those are. */
  readonly tasks: TaskList;
  /** How people decide, and how to restore a person who approved decoys. */
  readonly reviewers: Reviewers;
  /** What people have allowed beforehand. */
  readonly standingRules: StandingRules;
  /**
   * Goes on with what a process left behind when it went away: open operations whose lease ran out, then approved decisions
   * that were not executed to their end. Call it after a start and periodically; any number of processes may do so concurrently.
   * One call reads at most 10,000 records of each kind and says so (`more`); the next one continues there.
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

/** Wires tools, policy, reviews and store together. Throws TypeError for a part that is missing. */
export function createGate(options: GateOptions): Gate {
  checkParts(options);
  const { clock = systemClock, timers = systemTimers, random = systemRandom } = options;
  const { onResumeProblem = () => {} } = options;
  const registry = registryOf(options.tools);
  const observer = createAuditObserver({
    sinks: [],
    onProblem: () => {},
    ...options.audit,
    findTool: (name) => registry.get(name),
    clock,
  });
  const bare = options.store.tenant(options.tenant);
  const store: TenantStore = { ...bare, operations: observer.around(bare.operations) };
  const ids = createIds({ clock, random });
  const { approvalMs = 24 * 3_600_000, review: reviewRules = [] } = options;
  checkReviewRules(reviewRules, { deadlineMs: approvalMs });
  checkAttention(options.attention);
  const context: GateContext = {
    store,
    registry,
    observer,
    policy: compilePolicy(options.policy),
    gatePolicies: options.gatePolicies ?? [],
    fileRoots: options.fileRoots ?? [],
    protectedPaths: resolvedPaths(options.protectedPaths ?? []),
    hooks: options.hooks ?? [],
    checkpoint: options.checkpoint,
    confidenceKey: options.confidenceKey,
    validators: options.validators,
    guard: options.guard,
    reviewTimeoutMs: 60_000,
    reviewRules,
    people: options.people,
    approvalMs,
    attention: options.attention,
    quota: openQuota({
      what: "open questions",
      hint: "Wait until people have answered some of them.",
      most: options.quotas?.openQuestions ?? 5_000,
      mostBytes: options.quotas?.openBytes ?? 32 * 1024 * 1024,
      isOpen: async (id) => (await store.interactions.peek(id))?.status === "open",
      now: () => clock.now(),
    }),
    folders: sessionFoldersOf(options.sessionFolders ?? []),
    leaseMs: options.leaseMs ?? 30_000,
    timeoutMs: options.timeoutMs ?? 120_000,
    processor: options.processor,
    at: options.at ?? (() => {}),
    clock,
    timers,
    random,
    newId: () => ids.next(),
    newNonce: () => Buffer.from(random.bytes(16)).toString("hex"),
    onCommit: (listener) => options.store.onCommit(listener),
    onLedgerProblem: options.onLedgerProblem ?? (() => {}),
    get delegations() {
      return delegations;
    },
  };
  const { delegations, runs, grants } = delegatingOf(context);
  const places: Places = { operations: 0, approved: 0, unasked: 0 };

  return {
    audit: store.audit,
    decisions: {
      ...store.decisions,
      // Decisions staged here bypass the gate, so they never carry its mark.
      stage: ({ origin: _, ...draft }, by, along) => store.decisions.stage(draft, by, along),
    },
    operations: store.operations,
    killSwitch: {
      ...store.killSwitch,
      async resume(reason, by) {
        await store.killSwitch.resume(reason, by);
        // Not awaited: the operator is answered immediately. The next recovery finds what fails here.
        carryOnHeld(context).catch(onResumeProblem);
      },
    },
    tools: registry,
    people: options.people,
    sessions: {
      folderFor: async (asked) => (asked === "" ? "" : context.folders.check(asked)),
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
        return openSession(context, caller);
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
    standingRules: standingRulesOf(context),
    recover: () => recover(context, places),
  };
}

function registryOf(tools: readonly Tool[] | Registry): Registry {
  if (!Array.isArray(tools)) return tools as Registry;
  const registry = createRegistry();
  for (const tool of tools) registry.register(tool);
  return registry;
}

function checkParts({ validators, guard }: GateOptions): void {
  const parts = { tech: validators?.tech, business: validators?.business, guard };
  for (const [part, given] of Object.entries(parts)) {
    if (given) continue;
    throw new TypeError(`sallyport: createGate needs a ${part}; nothing is assumed in its place`);
  }
}
