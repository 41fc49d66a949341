// The door: what is refused is refused here, before any call. The rest of the gate is loaded by its first use, so that
// `import "sallyport"` costs little.

import { createRequire } from "node:module";
import path from "node:path";
import { createAuditObserver } from "../audit/observer.ts";
import type { Guard, Validator } from "../model/decision.ts";
import { isDelegated } from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import type { CallAnswer } from "../model/operation.ts";
import { type DenialSnapshot, denialSnapshot, NO_DENIALS } from "../policy/answers.ts";
import { hookProblem } from "../policy/before-call.ts";
import { DEFAULT_THRESHOLD } from "../policy/breaker.ts";
import { compilePolicy, NO_RULES } from "../policy/policy.ts";
import { checkReviewRules } from "../policy/review-rules.ts";
import type { GrantStore } from "../store/grants.ts";
import type { TenantStore } from "../store/store.ts";
import type { ClaimRef, TaskStore } from "../store/tasks.ts";
import type { TaskList } from "../tasks/create-task-list.ts";
import { createRegistry, type Registry, TOOL_SEARCH } from "../tools/registry.ts";
import type { ResultPart, ResultRange } from "../tools/result-store.ts";
import type { Progress, Tool } from "../tools/tool.ts";
import { systemClock } from "../util/clock.ts";
import { createIds } from "../util/ids.ts";
import type { JsonObject } from "../util/json.ts";
import { systemRandom } from "../util/random.ts";
import { RunningWork } from "../util/running-work.ts";
import { checkAttention, type Reviewers } from "./attention.ts";
import type { Breakers, BreakerTerms } from "./breaker.ts";
import type { GateDelegations, GateRuns } from "./delegating.ts";
import type { GateHook } from "./hooks.ts";
import type { Inbox, Person } from "./inbox.ts";
import type { ToolOffer } from "./offering.ts";
import type { Counterfactual } from "./operation-log.ts";
import type { GateOptions } from "./options.ts";
import type { Permits } from "./permit.ts";
import type { ExecutedHere, Recovered } from "./recover.ts";
import type { Pause } from "./resume.ts";
import { allowAlways } from "./review.ts";
import type { Session } from "./session.ts";
import type { StandingRules } from "./standing-rules.ts";
import type { GateParts } from "./wire-gate.ts";

/** What an application creates; every way to call a tool goes through it. */
export interface Gate
  extends Pick<
    TenantStore,
    "audit" | "decisions" | "operations" | "killSwitch" | "pauses" | "calls"
  > {
  readonly tools: Registry;
  /** The calls that run in this process, to cancel and to follow. */
  readonly running: RunningWork<Progress>;
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
  readonly runs: Omit<GateRuns, "planAnswered">;
  /** Findings that people have lifted. Throws not_allowed for those who would benefit. */
  readonly grants: GrantStore;
  /** For external executors of approved decisions. */
  readonly permits: Permits;
  /** Everything that waits for a person. */
  readonly interactions: Inbox;
  /** The shared list. A task tied to decisions or a delegation is completed only when those are. */
  readonly tasks: Omit<TaskList, "store">;
  /** Tools that fail, and how a person lets one that was stopped be called again. */
  readonly breakers: Breakers;
  /** How people decide, and how to restore a person who approved decoys. */
  readonly reviewers: Reviewers;
  /** What people have allowed beforehand. */
  readonly standingRules: StandingRules;
  /** What an agent is offered, safer tools first: in its session, or in a new one. `all`: every tool, for people. */
  offered(of?: {
    readonly sessionId?: string;
    /** Where that session works, which descriptions may depend on. */
    readonly workingDirectory?: string;
    readonly all?: boolean;
  }): Promise<readonly ToolOffer[]>;
  /**
   * A part of what an operation put out: of the whole where the processor has stored it, otherwise of what is recorded. Throws
   * not_found, also when the whole is not here any more.
   */
  outputOf(operationId: string, range?: ResultRange): Promise<ResultPart>;
  /** The counter-checks that calls were made with, oldest first, to compare with what came of them. */
  counterfactuals(after?: number): Promise<readonly Counterfactual[]>;
  /** The calls that this gate has denied since it was created, by tool, by agent and by check. */
  denials(): DenialSnapshot;
  /**
   * Goes on with what a process left behind when it went away: open operations whose lease ran out, then approved decisions
   * that were not executed to their end. Call it after a start and periodically; any number of processes may do so concurrently.
   * One call reads at most 10,000 records of each kind and says so (`more`); the next one continues there.
   */
  recover(): Promise<Recovered>;
  /**
   * Continues a run that stopped at calls which waited for people. Once for each pause, whichever and however many processes
   * try: the one that continues holds a lease, and when it dies another one takes over. False while an answer is missing, when
   * it was continued before, and while another process is at it. What `proceed` throws comes out, and it may be tried again.
   * Shape: callback.
   */
  resume(
    pause: Pause,
    proceed: (answers: readonly CallAnswer[]) => Promise<void>,
  ): Promise<boolean>;
  /** Executes what was approved in processes that lack its tools, where they are here. Upkeep calls it after every commit. */
  executeAwaiting(): Promise<ExecutedHere>;
  /** Shape: push. See `Store.onCommit`. */
  onCommit(listener: () => void): () => void;
  /** Ends `onSettled` and closes the store that the gate opened by itself. A store that was passed in stays open: its owner closes it. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
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
  /**
   * Facts for guards and validators, like the tenant of a customer or the decisions that must be executed first (`upstream`).
   * Stored with every decision of the session; a call's own go over them. The gate itself reads none of them, and refuses the
   * names that it uses itself.
   */
  readonly metadata?: JsonObject;
}

/**
 * Wires tools, policy, reviews and store together. Throws store_unavailable when no store is passed and the driver of the
 * default one is not installed, and invalid_input for parts that contradict each other.
 *
 *     const gate = createGate({ tools: [refund] });
 *     const session = gate.sessions.open({ agent: "billing" });
 *     const answer = await session.call({ tool: "billing.refund", input: { invoiceId: "2041", cents: 900 } });
 */
export function createGate(options: GateOptions = {}): Gate {
  const parts = checkedParts(options);
  const { tenant, ids, registry } = parts;
  let wired: Gate | undefined;
  let wiring: Promise<Gate> | undefined;

  /** Wires the gate at its first use. A load that failed is tried again by the next use. */
  async function use(): Promise<Gate> {
    wiring ??= import("./wire-gate.ts").then(
      ({ wireGate }) => {
        const gate = wireGate(options, parts);
        wired = gate;
        return gate;
      },
      (error: unknown) => {
        wiring = undefined;
        throw error;
      },
    );
    return wiring;
  }

  const part = <Name extends AsyncPart>(name: Name, own?: Partial<Gate[Name]>) =>
    onUse<Gate[Name]>(async () => (await use())[name], own);
  /** A listener that is added before the gate is wired hears what comes after. */
  const listening = (listen: (gate: Gate) => () => void) => {
    let isOver = false;
    let stop = () => {
      isOver = true;
    };
    void use().then((gate) => {
      if (!isOver) stop = listen(gate);
    });
    return () => stop();
  };
  const close = async () => (await use()).close();

  return {
    audit: part("audit", { tenant }),
    decisions: part("decisions"),
    operations: part("operations"),
    killSwitch: part("killSwitch"),
    pauses: part("pauses"),
    calls: part("calls"),
    running: parts.running,
    tools: registry,
    people: options.people,
    sessions: {
      folderFor: async (asked) => (await use()).sessions.folderFor(asked),
      open({ id = ids.next(), ...asked }) {
        if (isDelegated(id)) {
          const hint = "This is the session of a sub-agent: attach to it with its token.";
          throw new SallyportError("not_allowed", { id, hint });
        }
        if (wired !== undefined) return wired.sessions.open({ id, ...asked });
        return sessionOnUse(id, async () => (await use()).sessions.open({ id, ...asked }));
      },
    },
    permits: part("permits"),
    interactions: part("interactions"),
    delegations: part("delegations"),
    runs: part("runs"),
    grants: part("grants"),
    tasks: part("tasks", {
      onCompleted: (observer) => listening((gate) => gate.tasks.onCompleted(observer)),
    }),
    breakers: part("breakers"),
    reviewers: part("reviewers"),
    standingRules: part("standingRules"),
    denials: () => wired?.denials() ?? denialSnapshot(NO_DENIALS),
    offered: async (of) => (await use()).offered(of),
    outputOf: async (id, range) => (await use()).outputOf(id, range),
    counterfactuals: async (after) => (await use()).counterfactuals(after),
    recover: async () => (await use()).recover(),
    executeAwaiting: async () => (await use()).executeAwaiting(),
    resume: async (pause, proceed) => (await use()).resume(pause, proceed),
    onCommit: (listener) =>
      options.store?.onCommit(listener) ?? listening((gate) => gate.onCommit(listener)),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The parts of a gate whose methods all wait for something, so that they can wait for the gate to be wired as well. */
type AsyncPart =
  | "breakers"
  | keyof Pick<
      TenantStore,
      "audit" | "decisions" | "operations" | "killSwitch" | "pauses" | "calls"
    >
  | "delegations"
  | "grants"
  | "interactions"
  | "permits"
  | "reviewers"
  | "runs"
  | "standingRules"
  | "tasks";

/** The methods of a part that is made by its first use. What can be answered before that is in `own`. */
function onUse<Part extends object>(made: () => Promise<Part>, own: Partial<Part> = {}): Part {
  return new Proxy({ ...own } as Part, {
    get(methods: Part & Methods, name) {
      // Awaiting the part itself must not take it for a promise.
      if (name === "then" || name in methods) return methods[name];
      const method = async (...asked: unknown[]) => {
        const part = (await made()) as Methods;
        if (typeof part[name] !== "function")
          throw new TypeError(`${String(name)} is not a function`);
        return part[name](...asked);
      };
      Object.assign(methods, { [name]: method });
      return method;
    },
  });
}

type Methods = Readonly<Record<string | symbol, ((...asked: unknown[]) => unknown) | undefined>>;

function sessionOnUse(id: string, open: () => Promise<Session>): Session {
  let opening: Promise<Session> | undefined;
  const session = () => {
    opening ??= open();
    return opening;
  };
  return onUse<Session>(session, {
    id,
    async *callAll(requests, options) {
      yield* (await session()).callAll(requests, options);
    },
  });
}

/** What the options are made into when they are checked, for `wireGate`. Throws invalid_input for the first that is wrong. */
function checkedParts(options: GateOptions): GateParts {
  const { tenant = DEFAULT_TENANT, guard = allowAlways, clock = systemClock } = options;
  const { tech = noValidator, business = noValidator } = options.validators ?? {};
  const { approvalMs = 24 * 3_600_000, random = systemRandom } = options;
  if (options.store === undefined) checkDriver();
  checkName("tenant", tenant);
  checkValidators({ tech, business });
  checkGuard(guard);
  checkHooks(options.hooks ?? []);
  checkTaskStore(options.tasks);
  const limits = limitsOf(options);
  checkReviewRules(options.review ?? [], { deadlineMs: approvalMs });
  checkAttention(options.attention);
  checkAbsolute("sessionFolders", options.sessionFolders ?? []);
  checkAbsolute("protectedPaths", options.protectedPaths ?? []);
  const registry = registryOf(options.tools ?? []);
  if (options.deferredTools !== undefined && registry.get(TOOL_SEARCH) !== undefined) {
    const hint = `The registry has a tool "${TOOL_SEARCH}" already. Give each gate with deferredTools a registry of its own.`;
    throw new SallyportError("invalid_input", { what: "deferredTools", hint });
  }
  const observer = createAuditObserver({
    sinks: [],
    onProblem: () => {},
    ...options.audit,
    findTool: (name) => registry.get(name),
    clock,
  });
  return {
    folder: path.resolve(FOLDER),
    tenant,
    guard,
    validators: { tech, business },
    approvalMs,
    breaker: breakerOf(options.breaker),
    running: new RunningWork<Progress>(),
    limits,
    policy: compilePolicy(options.policy ?? NO_RULES),
    registry,
    observer,
    clock,
    random,
    ids: createIds({ clock, random }),
  };
}

function registryOf(tools: readonly Tool[] | Registry): Registry {
  if (!Array.isArray(tools)) return tools as Registry;
  const registry = createRegistry();
  for (const tool of tools) registry.register(tool);
  return registry;
}

/** What is given must work: a part of another shape would only fail when the first call is reviewed. */
function checkValidators(validators: Readonly<Record<string, Validator>>): void {
  for (const [tier, { name, review }] of Object.entries(validators)) {
    if (typeof name === "string" && name !== "" && typeof review === "function") continue;
    throw wrongPart(`validators.${tier}`, "A validator has a name and a review function.");
  }
}

function checkGuard({ allows }: Guard): void {
  if (typeof allows !== "function") throw wrongPart("guard", "A guard has an allows function.");
}

function wrongPart(what: string, hint: string): SallyportError {
  return new SallyportError("invalid_input", {
    what,
    hint: `${hint} Leave it out to go without one.`,
  });
}

function checkAbsolute(what: string, listed: readonly string[]): void {
  const wrong = listed.find((one) => typeof one !== "string" || !path.isAbsolute(one));
  if (wrong === undefined) return;
  const hint = `${what} takes absolute paths, not ${JSON.stringify(wrong)}.`;
  throw new SallyportError("invalid_input", { what, hint });
}

function checkTaskStore(tasks: TaskStore | undefined): void {
  const parts = ["get", "compareAndSwap", "list", "close"] as const;
  const missing = tasks && parts.find((part) => typeof tasks[part] !== "function");
  if (missing === undefined) return;
  const hint = `A task store has the function ${missing}; markdownTaskStore of sallyport/tasks/markdown makes one.`;
  throw new SallyportError("invalid_input", { what: "tasks", hint });
}

/** A hook that could not be asked would protect nothing while looking as if it did. */
function checkHooks(hooks: readonly GateHook[]): void {
  for (const hook of hooks) {
    const hint = hookProblem(hook);
    if (hint !== undefined) throw new SallyportError("invalid_input", { what: "hooks", hint });
  }
}

function breakerOf(terms: BreakerTerms | undefined): Required<BreakerTerms> | undefined {
  if (terms === undefined) return undefined;
  const { threshold = DEFAULT_THRESHOLD } = terms;
  if (Number.isSafeInteger(threshold) && threshold >= 1) return { threshold };
  const hint = `breaker.threshold is a whole number of failures, at least 1; it is ${DEFAULT_THRESHOLD} when left out.`;
  throw new SallyportError("invalid_input", { what: "breaker", hint });
}

const LIMITS = {
  leaseMs: 30_000,
  timeoutMs: 120_000,
  reviewTimeoutMs: 60_000,
  hookTimeoutMs: 60_000,
  checkpointTimeoutMs: 60_000,
  maxAtOnce: 10,
} as const satisfies Partial<Record<keyof GateOptions, number>>;

/** Time limits and sizes. Throws invalid_input for one that is not a positive number. */
function limitsOf(options: GateOptions): Readonly<Record<keyof typeof LIMITS, number>> {
  const limits: Record<keyof typeof LIMITS, number> = { ...LIMITS };
  for (const name of Object.keys(LIMITS) as (keyof typeof LIMITS)[]) {
    const value = options[name] ?? LIMITS[name];
    if (!(Number.isFinite(value) && value > 0)) {
      const hint = `${name} is a number above 0; it is ${LIMITS[name]} when left out.`;
      throw new SallyportError("invalid_input", { what: name, hint });
    }
    limits[name] = value;
  }
  return limits;
}

// What a gate uses where its options say nothing. Each default is the careful one: no validator leaves the decision to a person,
// no rule asks, and no store is a file that survives the process.

/** Also what `sallyport serve` opens in the same folder. */
const DEFAULT_TENANT = "default";
const FOLDER = ".sallyport";

/** Says in the record that no machine has looked, and leaves the decision to a person. */
const noValidator: Validator = {
  name: "none",
  review: () => ({
    approved: true,
    score: 0,
    reason: "no validator configured",
    severity: "",
    validator: "none",
    policyVersion: "",
  }),
};

/** The driver of the default store is an optional peer. Throws store_unavailable here, before any call, when it is missing. */
function checkDriver(): void {
  try {
    createRequire(import.meta.url).resolve("better-sqlite3");
  } catch (cause) {
    const hint =
      "Without a store the gate uses a SQLite file: run `npm install better-sqlite3`, or pass a store to createGate.";
    throw new SallyportError("store_unavailable", { what: "better-sqlite3", hint }, cause);
  }
}
