import type { DecisionId, SessionId } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import type { AlsoChanged, Operation, OperationId, RecordedUndo } from "../model/operation.ts";
import type { DecisionMove } from "../store/decisions.ts";
import type { Along } from "../store/engine.ts";
import type {
  BroughtBack,
  Hold,
  OperationStore,
  Outcome,
  StartRefusal,
} from "../store/operations.ts";
import { definitionHash } from "../tools/definition.ts";
import type { ResultProcessor } from "../tools/result-processor.ts";
import { metadataOf } from "../tools/safety.ts";
import type { ProbeAnswer, Progress, Tool, ToolResult } from "../tools/tool.ts";
import { makeUndo } from "../tools/undo.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import type { JsonValue } from "../util/json.ts";
import { inTime, type Stop, systemTimers, type Timers } from "../util/timers.ts";
import { type AttemptOptions, attempt, callOf, targetLooks, underLease } from "./attempt.ts";
import { type AtPoint, passBy } from "./crash-point.ts";
import { createOutcomes, type Running } from "./settle.ts";

export interface ExecutorOptions {
  readonly tenant: string;
  readonly operations: OperationStore;
  readonly timers?: Timers;
  /** How long an attempt holds before another process may take over; renewed while the tool works. */
  readonly leaseMs?: number;
  readonly timeoutMs?: number;
  readonly processor?: ResultProcessor;
  readonly at?: AtPoint;
}

/** Carries out what was allowed, once. The only place that calls a tool. */
export interface Executor {
  /**
   * Intent, act, outcome. Throws only when the store fails before the intent is written, or leaves open whether it is; from
   * then on a failure of the store is answered as `unknown`, and recovery finds out what happened.
   */
  run(order: Order): Promise<Executed>;
  /**
   * Continues an operation that another process started and left. Keyed tools are called again with the same key, tools with
   * a probe are asked first; of the others nobody can know, and nothing is repeated.
   */
  resume(order: Order, operation: Operation): Promise<Executed>;
  /**
   * How to undo a call of which a person says that it happened, made by the tool from what they found. A text is why there is
   * no way. The version is the one that the target has now.
   */
  undoFrom(order: Order, operation: Operation, data: JsonValue): Promise<FoundUndo | string>;
  /** A person says that it did not happen and should be tried once more; `along` is that answer, written with the new attempt. */
  repeat(order: Order, operation: Operation, along: readonly Along[]): Promise<Executed>;
}

export interface FoundUndo {
  readonly undo: RecordedUndo;
  readonly stateVersion: string;
}

/** An operation that this process holds, and when it asked for the lease: the answer may have taken longer than the lease. */
interface Held {
  readonly operation: Operation;
  readonly askedAt: number;
}

/** What is known of earlier attempts at the same operation: `open` means that one of them may have happened. */
type Earlier = "open" | "none";

const MAX_REPEATS = 2;
/** A store that answers this late again and again is no store to begin an effect with. */
const MAX_CONFIRMS = 3;

const NOT_AGAIN = "it may not be called again now";
const TOO_LATE = "the store confirmed the intent too late, and the call may not start any more";

function isWanted({ signal }: Order): boolean {
  return signal?.aborted !== true;
}

/** Neither a key nor a probe helps: whether it happened only a person can find out. */
function isHelpless({ probe, idempotency }: Tool): boolean {
  return probe === undefined && idempotency !== "keyed";
}

export function createExecutor(options: ExecutorOptions): Executor {
  const { tenant, operations, timers = systemTimers, processor, at = passBy } = options;
  const { leaseMs = 30_000, timeoutMs = 120_000 } = options;
  const attempting: AttemptOptions = { tenant, operations, timers, leaseMs, timeoutMs, at };
  const looks = targetLooks(attempting);
  const { settle, unknown } = createOutcomes({ attempting, operations, looks, processor });

  async function run(order: Order): Promise<Executed> {
    if (definitionHash(order.tool) !== order.definitionHash) {
      return { status: "refused", reason: "definition_changed" };
    }
    const askedAt = timers.elapsedMs();
    at("S5.before");
    const begun = await operations.start({
      id: order.operationId,
      sessionId: order.sessionId,
      messageId: order.messageId,
      callId: order.callId,
      turn: order.turn,
      tool: order.tool.name,
      definitionHash: order.definitionHash,
      input: canonicalJson(order.input),
      workingDirectory: order.workingDirectory,
      ...(order.chain === undefined ? {} : { chain: order.chain }),
      step: order.step,
      effect: metadataOf(order.tool).effect,
      undoOf: order.undoOf ?? "",
      approval: order.approval,
      leaseMs,
      actor: order.actor,
      ...(order.holds === undefined ? {} : { holds: order.holds }),
      ...(order.allowedBy === undefined ? {} : { allowedBy: order.allowedBy }),
    });
    at("S5.after");
    if (!begun.started) {
      const { reason, operation } = begun;
      return { status: "refused", reason, ...(operation === undefined ? {} : { operation }) };
    }
    const { operation } = begun;
    return pastIntent(operation, async () => {
      const { moved, ...seen } = await looks.before(order, operation);
      const running = { ...order, ...seen };
      return moved === undefined
        ? act(running, { operation, askedAt })
        : settle(running, operation, { text: moved, isError: true });
    });
  }

  /**
   * The intent is written, so the effect may happen or have happened: an error of the store says nothing about that, and it
   * must not reach the caller as one that is safe to repeat.
   */
  async function pastIntent(
    operation: Operation,
    work: () => Promise<Executed>,
  ): Promise<Executed> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof SallyportError)) throw error;
      const why = `its outcome could not be recorded: ${errorText(error)}`;
      return { status: "unknown", operation: { ...operation, error: why } };
    }
  }

  async function act(
    order: Running,
    given: Held,
    repeats = 0,
    earlier: Earlier = "none",
  ): Promise<Executed> {
    const held = await stillHeld(order, given);
    if (held === undefined) {
      return earlier === "open"
        ? unknown(order, given.operation, TOO_LATE)
        : settle(order, given.operation, { text: `Not executed: ${TOO_LATE}.`, isError: true });
    }
    const { operation } = held;
    const attempted = await attempt(order, operation, attempting);
    if (attempted.ended) return settle(order, operation, attempted.result);
    if (!attempted.isOurs) {
      return { status: "overtaken", operation: await operations.get(operation.id) };
    }
    return findOut(order, operation, attempted.reason, repeats);
  }

  /**
   * Right before the tool is called: when the answer of the store took more than half the lease, another process may have
   * taken over or everything may have been stopped since, so the right to call is asked for again. Undefined when it is gone.
   */
  async function stillHeld(order: Order, held: Held): Promise<Held | undefined> {
    const { actor, holds = [] } = order;
    const along = holds.filter(({ step }) => step.op === "require");
    let { operation, askedAt } = held;
    for (let tries = 0; timers.elapsedMs() - askedAt > leaseMs / 2; tries += 1) {
      if (tries === MAX_CONFIRMS) return undefined;
      askedAt = timers.elapsedMs();
      const { id, fence } = operation;
      const again = { leaseMs, actor, along };
      // Where only the lease ran out, and nobody took over, a new attempt begins under a new fence.
      const confirmed =
        (await operations.confirm(id, fence, again)) ??
        (await operations.tryAgain(id, fence, again));
      if (confirmed === undefined) return undefined;
      operation = confirmed;
    }
    return { operation, askedAt };
  }

  /**
   * The outcome of its last attempt is open. What can neither be asked about nor safely repeated is left to a person. For
   * the rest a new attempt begins, so that the target, which is handed its fence, can refuse what is late of the old one.
   */
  async function findOut(
    order: Running,
    operation: Operation,
    reason: string,
    repeats: number,
  ): Promise<Executed> {
    if (isHelpless(order.tool) || repeats >= MAX_REPEATS) return unknown(order, operation, reason);
    const begun = await tryAgain(order, operation);
    if (begun === undefined) return unknown(order, operation, `${reason}; ${NOT_AGAIN}`);
    return askOrCall(order, begun, reason, repeats);
  }

  /** In an attempt that has called nothing yet. */
  async function askOrCall(
    order: Running,
    held: Held,
    reason: string,
    repeats: number,
  ): Promise<Executed> {
    const { tool } = order;
    const { operation } = held;
    const probe = tool.probe?.bind(tool);
    if (probe === undefined) {
      if (isWanted(order)) return act(order, held, repeats + 1, "open");
      return unknown(order, operation, reason);
    }
    let answer: ProbeAnswer;
    try {
      // Not bound to the caller's signal: who gave up waiting still wants to know what became of it.
      answer = await underLease(operation, attempting, ({ signal }) =>
        probe(callOf(order, operation, signal, attempting)),
      );
    } catch (error) {
      return unknown(order, operation, `${reason}; the probe failed: ${errorText(error)}`);
    }
    if (answer.happened === true) return settle(order, operation, answer.result);
    if (answer.happened !== false) {
      return unknown(order, operation, `${reason}; the probe says: ${answer.reason}`);
    }
    // The probe may have taken its time: another process may have taken over, or an operator stopped everything.
    const begun = isWanted(order) ? await tryAgain(order, operation) : undefined;
    if (begun !== undefined) return act(order, begun, repeats + 1);
    const why = isWanted(order) ? NOT_AGAIN : "nobody waits for it any more";
    return settle(order, operation, { text: `Not executed: ${reason}; ${why}.`, isError: true });
  }

  /** To call a tool once more is a new effect: only the holder of the operation may, and not while everything is stopped. */
  async function tryAgain(order: Order, { id, fence }: Operation): Promise<Held | undefined> {
    const { actor, holds = [] } = order;
    const askedAt = timers.elapsedMs();
    at("S5.before");
    const operation = await operations.tryAgain(id, fence, { leaseMs, actor, along: holds });
    at("S5.after");
    return operation && { operation, askedAt };
  }

  return {
    run,
    async resume(order, abandoned) {
      // A new attempt begins with a write of its own, as the first one did.
      const askedAt = timers.elapsedMs();
      at("S5.before");
      const operation = await operations.takeOver(abandoned.id, leaseMs, order.actor, order.holds);
      at("S5.after");
      if (operation === undefined) {
        return { status: "overtaken", operation: await operations.get(abandoned.id) };
      }
      return pastIntent(operation, async () => {
        if (definitionHash(order.tool) !== abandoned.definitionHash) {
          return unknown(order, operation, "the tool was changed while its outcome was open");
        }
        const running = { ...order, versionBefore: "" };
        const why = "the process that started it went away";
        if (isHelpless(order.tool)) return unknown(order, operation, why);
        return askOrCall(running, { operation, askedAt }, why, 0);
      });
    },
    async undoFrom(order, operation, data) {
      const { tool } = order;
      if (definitionHash(tool) !== order.definitionHash) return "The tool was changed since.";
      const result = { text: "", isError: false, data };
      const make = ({ signal }: Stop) =>
        makeUndo(tool, callOf(order, operation, signal, attempting), result);
      // No lease is held: nobody takes over a call that waits for a person.
      const { undo, lost } = await inTime(make, timeoutMs, timers);
      if (undo === undefined) return lost ?? `"${tool.name}" has no undo.`;
      const { stateVersion } = await looks.after({ ...order, versionBefore: "" }, operation);
      return { undo, stateVersion };
    },
    async repeat(order, { id }, along) {
      if (definitionHash(order.tool) !== order.definitionHash) {
        return { status: "refused", reason: "definition_changed" };
      }
      const { actor } = order;
      const askedAt = timers.elapsedMs();
      at("S5.before");
      const operation = await operations.reopen(id, { leaseMs, actor, along });
      at("S5.after");
      if (operation === undefined) {
        return { status: "overtaken", operation: await operations.get(id) };
      }
      const running = { ...order, versionBefore: "" };
      return pastIntent(operation, () => act(running, { operation, askedAt }));
    },
  };
}

/** One call that the gate allowed or a decision approved, ready to be carried out. */
export interface Order {
  readonly operationId: OperationId;
  readonly tool: Tool;
  /** The tool's definition when it was allowed. */
  readonly definitionHash: string;
  /** Parsed, and the very value whose canonical form was shown and hashed. */
  readonly input: JsonValue;
  readonly sessionId: SessionId;
  readonly messageId: string;
  readonly callId: string;
  readonly turn: number;
  readonly step: number;
  readonly workingDirectory: string;
  /** Where the gate found what the call touches; see `ToolContext.places`. */
  readonly places: readonly string[];
  /** The decision it uses up and the hash that was approved. */
  readonly approval?: { readonly decisionId: DecisionId; readonly hash: string };
  /** Versions of the target under which it may run; looked at once more after the intent, right before the tool is called. */
  readonly expectedVersions?: readonly string[];
  /**
   * Looks at other targets that the call may change, right before it, and gives what is to be asked right after: which
   * earlier operations it has changed the targets of. Not knowing it is no reason to fail.
   */
  readonly watch?: () => Promise<WatchedCall>;
  /** The operation that it takes back. */
  readonly undoOf?: OperationId;
  /** Asked after it took something back: what else is now as it was. Not knowing it is no reason to fail. */
  readonly broughtBack?: () => Promise<readonly BroughtBack[]>;
  /** The move of the decision that this outcome brings about; it is written in the same transaction. */
  readonly closes?: (outcome: Outcome) => DecisionMove | undefined;
  /**
   * Who asked for it, from the agent upwards: none of them may answer the question when its outcome is lost. An undo has the
   * one who asked for the rollback in front, who may.
   */
  readonly chain?: readonly string[];
  /** What else must hold in the transaction that writes the intent. */
  readonly holds?: readonly Hold[];
  /** What allowed it without a person, for the trail: a standing rule. */
  readonly allowedBy?: string;
  readonly actor: string;
  readonly signal?: AbortSignal;
  readonly progress?: (report: Progress) => void;
}

/** Asked right after the call: which targets of earlier operations are not as they were right before it. */
export type WatchedCall = () => Promise<readonly AlsoChanged[]>;

/** What came of an order. Nothing here is thrown but failures of the store. */
export type Executed =
  | { readonly status: "done"; readonly operation: Operation; readonly result: ToolResult }
  | { readonly status: "failed"; readonly operation: Operation; readonly result: ToolResult }
  | { readonly status: "unknown"; readonly operation: Operation }
  /** Nothing was done. `used_up` comes with the operation that did it. */
  | {
      readonly status: "refused";
      readonly reason: StartRefusal | "definition_changed";
      readonly operation?: Operation;
    }
  /** Somebody else took it over while we worked; this is what they have made of it so far. */
  | { readonly status: "overtaken"; readonly operation: Operation };
