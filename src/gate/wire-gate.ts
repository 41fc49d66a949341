// The wiring: the one context that every step of a call receives, the facade over the steps, and the default store.

import path from "node:path";
import { createRedactor } from "../audit/redact.ts";
import { isDelegated } from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import { countAnswer, denialSnapshot, NO_DENIALS } from "../policy/answers.ts";
import { CommitListeners, type Engine } from "../store/engine.ts";
import { claimHold } from "../store/engine-tasks.ts";
import { createStore, type Store, type TenantStore } from "../store/store.ts";
import { createTaskList } from "../tasks/create-task-list.ts";
import { tiesFulfilled } from "../tasks/rules.ts";
import { systemClock } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import { makePrivate, makePrivateFolder, openToOthers } from "../util/files.ts";
import { createIds, type Ids } from "../util/ids.ts";
import { systemRandom } from "../util/random.ts";
import { systemTimers } from "../util/timers.ts";
import { reviewersOf } from "./attention.ts";
import { breakersOf, withBreakers } from "./breaker.ts";
import type { GateContext } from "./context.ts";
import type { Gate } from "./create-gate.ts";
import { inboxOf } from "./decide.ts";
import { delegatingOf } from "./delegating.ts";
import { type HookProblem, hooksOf, notifying } from "./hooks.ts";
import { resolvedPaths, sessionFoldersOf } from "./judge.ts";
import { type Offering, offeringOf } from "./offering.ts";
import { counterfactualsOf, outputOf } from "./operation-log.ts";
import type { GateOptions } from "./options.ts";
import { permitsOf, reportWithout } from "./permit.ts";
import { openQuota, watchOpenCalls } from "./propose.ts";
import { carryOnHeld, executeAwaiting, type Places, recover } from "./recover.ts";
import { resumeRun } from "./resume.ts";
import { openSession } from "./session.ts";
import { standingRulesOf } from "./standing-rules.ts";

/** The options of a gate as `createGate` has checked them. */
export interface GateParts
  extends Pick<
    GateContext,
    | "registry"
    | "observer"
    | "policy"
    | "validators"
    | "guard"
    | "approvalMs"
    | "breaker"
    | "running"
    | "clock"
    | "random"
  > {
  readonly tenant: string;
  readonly limits: Pick<
    GateContext,
    | "leaseMs"
    | "timeoutMs"
    | "reviewTimeoutMs"
    | "hookTimeoutMs"
    | "checkpointTimeoutMs"
    | "maxAtOnce"
  >;
  readonly ids: Ids;
  /** Of the default store. */
  readonly folder: string;
}

/** Wires the steps of a call and the parts of the gate around them. Everything in the options has been checked. */
export function wireGate(options: GateOptions, parts: GateParts): Gate {
  const { tenant, ids, folder, limits, ...checked } = parts;
  const { registry, observer, clock, random } = checked;
  const { store: opened = defaultStore(folder) } = options;
  const { timers = systemTimers, onResumeProblem = () => {} } = options;
  const bare = opened.tenant(tenant);
  const { breaker } = parts;
  const operations = { ...bare.operations, ...observer.around(bare.operations) };
  const seen: TenantStore = { ...bare, operations };
  const observed = withBreakers(seen, breaker);
  const { hooks: given = [] } = options;
  const hooks = given.length === 0 ? [] : hooksOf(given);
  let offering: Offering | undefined;
  const store = hooks.length === 0 ? observed : notifying(observed, () => context);
  const context: GateContext = {
    ...checked,
    ...limits,
    tenant,
    store,
    tasks: options.tasks ?? store.tasks,
    claimHolds: (claim) =>
      claim === undefined || options.tasks !== undefined ? [] : [claimHold(claim)],
    gatePolicies: options.gatePolicies ?? [],
    fileRoots: options.fileRoots ?? [],
    protectedPaths: resolvedPaths(options.protectedPaths ?? []),
    hooks,
    started: new Set(),
    onHookProblem: options.onHookProblem ?? warnOfHook,
    checkpoint: options.checkpoint,
    reverseThinking: options.reverseThinking,
    defersTools: options.deferredTools !== undefined,
    get offering() {
      offering ??= offeringOf(registry, options, store);
      return offering;
    },
    confidenceKey: options.confidenceKey,
    reviewRules: options.review ?? [],
    people: options.people,
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
    processor: options.processor,
    at: options.at ?? (() => {}),
    timers,
    newId: () => ids.next(),
    newNonce: () => Buffer.from(random.bytes(16)).toString("hex"),
    onCommit: (listener) => opened.onCommit(listener),
    onLedgerProblem: options.onLedgerProblem ?? (() => {}),
    openCalls: watchOpenCalls({
      onPending: options.onPending,
      onSettled: options.onSettled,
      timers,
      onCommit: (listener) => opened.onCommit(listener),
    }),
    countAnswer(call, judged) {
      const findings = judged.verdict === "deny" ? judged.findings : [];
      const answer = { answer: judged.verdict, findings };
      denials = countAnswer(denials, { ...call, answer, now: clock.now() });
    },
    get delegations() {
      return delegations;
    },
  };
  // Before the first list of tools, because the search is one of them.
  if (context.defersTools) void context.offering;
  const { delegations, runs, grants } = delegatingOf(context);
  // A store that was passed in belongs to the caller.
  const close = async () => {
    context.openCalls.close();
    if (options.store === undefined) await opened.close();
  };
  const inbox = inboxOf(context);
  let denials = NO_DENIALS;
  const places: Places = { operations: 0, approved: 0, unasked: 0, awaiting: 0 };

  return {
    audit: store.audit,
    decisions: {
      ...store.decisions,
      markExecuted: async (id, proof, by = CALLER) =>
        (await reportWithout(context, id, { outcome: "executed", proof }, by)) ??
        (await store.decisions.markExecuted(id, proof, by)),
      markFailed: async (id, reason, by = CALLER) =>
        (await reportWithout(context, id, { outcome: "failed", reason }, by)) ??
        (await store.decisions.markFailed(id, reason, by)),
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
    calls: store.calls,
    running: context.running,
    pauses: {
      ...store.pauses,
      async resume(scope, reason, by) {
        await store.pauses.resume(scope, reason, by);
        carryOnHeld(context).catch(onResumeProblem);
      },
    },
    tools: registry,
    people: options.people,
    sessions: {
      folderFor: async (asked) => (asked === "" ? "" : context.folders.check(asked)),
      open(session) {
        const { id = ids.next(), agent, delegatedBy = [], owner = "", claim } = session;
        const { workingDirectory = "", metadata } = session;
        const caller = {
          tenant,
          sessionId: id,
          chain: [agent, ...delegatedBy],
          owner,
          workingDirectory,
          ...definedFields({ claim, metadata }),
        };
        return openSession(context, caller);
      },
    },
    permits: permitsOf(context),
    interactions: {
      ...inbox,
      async answer(id, given) {
        const answered = await inbox.answer(id, given);
        await runs.planAnswered(answered);
        return answered;
      },
    },
    delegations,
    runs,
    grants,
    tasks: createTaskList({
      store: context.tasks,
      clock,
      ids,
      mayComplete: tiesFulfilled({
        decisions: store.decisions,
        isFulfilled: async (id) =>
          isDelegated(id) && (await store.delegations.get(id)).promiseMet === true,
      }),
    }),
    reviewers: reviewersOf(store.reviewers),
    breakers: breakersOf(store, options.people),
    standingRules: standingRulesOf(context),
    denials: () => denialSnapshot(denials),
    offered: async ({ sessionId = "", workingDirectory = "", all = false } = {}) =>
      all ? context.offering.all() : context.offering.offered(sessionId, workingDirectory),
    outputOf: (id, range = {}) => outputOf(context, id, range),
    counterfactuals: (after = 0) => counterfactualsOf(store.audit, after),
    recover: () => recover(context, places),
    executeAwaiting: () => executeAwaiting(context, places),
    resume: (pause, proceed) => resumeRun(context, pause, proceed),
    onCommit: context.onCommit,
    close,
    [Symbol.asyncDispose]: close,
  };
}

function warnOfHook({ point, message }: HookProblem): void {
  process.emitWarning(`At ${point}: ${message}`, "SallyportHookWarning");
}

const CALLER = { actor: "caller" };

const FILE = "sallyport.db";

/** One SQLite file in this folder, opened by the first call. */
function defaultStore(folder: string): Store {
  const engine = openedOnUse(async () => {
    const { sqliteEngine } = await import("../store/sqlite/index.ts");
    makeFolder(folder);
    const file = path.join(folder, FILE);
    return sqliteEngine({ file, random: systemRandom, timers: systemTimers, patienceMs: 10_000 });
  });
  return createStore(engine, { redact: createRedactor({}) });
}

/** Only its owner may look into it. A folder of that name that others can read is tightened: it holds what agents asked for. */
function makeFolder(folder: string): void {
  try {
    makePrivateFolder(folder);
    for (const one of openToOthers(folder)) makePrivate(one);
  } catch (cause) {
    const hint = `The folder ${folder} cannot be used: check that it is a folder and that you may write to it.`;
    throw new SallyportError("store_unavailable", { what: folder, hint }, cause);
  }
}

/** An engine that is opened by its first use, so that `createGate` need not wait. A failed open is tried again by the next use. */
function openedOnUse(open: () => Promise<Engine>): Engine {
  const ids = createIds({ clock: systemClock, random: systemRandom });
  const listeners = new CommitListeners();
  let opening: Promise<Engine> | undefined;
  let isClosed = false;

  async function opened(): Promise<Engine> {
    try {
      const engine = await open();
      engine.onCommit(() => listeners.tell());
      return engine;
    } catch (error) {
      opening = undefined;
      throw error;
    }
  }

  async function use(): Promise<Engine> {
    if (isClosed) throw new SallyportError("store_closed");
    opening ??= opened();
    return opening;
  }

  return {
    name: "sqlite",
    capabilities: { durable: true, manyProcesses: true },
    newId: () => ids.next(),
    commit: async (...asked) => (await use()).commit(...asked),
    get: async (...asked) => (await use()).get(...asked),
    find: async (...asked) => (await use()).find(...asked),
    entries: async (...asked) => (await use()).entries(...asked),
    head: async (tenant) => (await use()).head(tenant),
    heads: async () => (await use()).heads(),
    now: async () => (await use()).now(),
    backdate: async (...asked) => (await use()).backdate(...asked),
    onCommit: (listener) => listeners.add(listener),
    async close() {
      isClosed = true;
      await (await opening)?.close();
    },
  };
}
