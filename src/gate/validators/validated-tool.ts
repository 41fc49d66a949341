import type { Diff, Validator, Verdict } from "../../model/decision.ts";
import { isSallyportError, SallyportError } from "../../model/errors.ts";
import {
  admit,
  type BreakerOptions,
  type BreakerOutcome,
  type BreakerState,
  breakerOutcome,
  DEFAULT_THRESHOLD,
  initialBreaker,
  recordOutcome,
} from "../../policy/breaker.ts";
import type { Tool, ToolCall, ToolResult } from "../../tools/tool.ts";
import { makeUndo, type UndoRecord } from "../../tools/tool-call.ts";
import type { Clock } from "../../util/clock.ts";
import { errorText, oneLine } from "../../util/error-text.ts";
import { systemTimers, type Timers, withDeadline } from "../../util/timers.ts";
import {
  askValidator,
  blockVerdict,
  isBlockVerdict,
  isNamedPart,
  isObject,
  need,
} from "../review.ts";

export interface ValidatedToolOptions {
  readonly tool: Tool;
  readonly validator: Validator;
  /** What is reviewed: the validator sees this and nothing else of the call. Shape: callback. */
  readonly toDiff: (call: ToolCall, result: ToolResult) => Diff;
  /**
   * Receives every verdict, before the caller sees the result. The verdict decides, the sink only keeps it: a failing sink
   * never turns a block into a pass. It does turn a pass into an error, since what cannot be recorded must not go on.
   */
  readonly sink: (verdict: Verdict, where: { readonly tool: string }) => void | Promise<void>;
  /** Refuses calls, before the tool is reached, while too many verdicts in a row were blocks. */
  readonly breaker?: Breaker;
  /** How long the review, and then the sink, may take. 30 s when left out; over time means no. */
  readonly timeoutMs?: number;
  readonly timers?: Timers;
}

/**
 * A tool whose results are reviewed: register it in the place of the one it wraps. Approve and warn hand on the tool's own
 * result. Block replaces it by an error written for the model that reads it, and the gate undoes what the call did. A call
 * that failed by itself is not reviewed.
 */
export function validatedTool(options: ValidatedToolOptions): Tool {
  const {
    tool,
    validator,
    toDiff,
    sink,
    breaker,
    timeoutMs = 30_000,
    timers = systemTimers,
  } = options;
  need(isTool(tool), "validatedTool needs a tool, as defineTool makes it.");
  need(isNamedPart(validator, "review"), "validatedTool needs a validator.");
  need(typeof toDiff === "function", "validatedTool needs toDiff, which says what is reviewed.");
  need(typeof sink === "function", "validatedTool needs a sink for the verdicts.");
  need(Number.isFinite(timeoutMs) && timeoutMs > 0, "timeoutMs is a number above 0.");
  need(
    breaker === undefined || (isObject(breaker) && typeof breaker.admit === "function"),
    "The breaker of validatedTool is made by createBreaker.",
  );

  async function execute(call: ToolCall): Promise<ToolResult> {
    let ticket: number | undefined;
    try {
      ticket = breaker?.admit();
    } catch (error) {
      if (!isSallyportError(error, "circuit_open")) throw error;
      return circuitOpen(tool.name, error);
    }
    const settle = (outcome: Parameters<Breaker["record"]>[1]) => {
      if (ticket !== undefined) breaker?.record(ticket, outcome);
    };
    let result: ToolResult;
    try {
      result = await tool.execute(call);
    } catch (error) {
      settle("abandoned");
      throw error;
    }
    if (isObject(result) && result["isError"] === true) {
      settle("abandoned");
      return result;
    }
    const verdict = await review(call, result);
    settle(breakerOutcome(verdict));
    const lost = await keep(verdict);
    const text = isBlockVerdict(verdict) ? blockText(tool.name, verdict) : lost;
    return text === undefined ? result : withheld(tool, call, result, verdict, text);
  }

  // Everything else of the tool stays its own: its schema, safety, dry run, undo, probe and versions.
  return Object.assign(Object.create(Object.getPrototypeOf(tool)), tool, { execute }) as Tool;

  /** Never throws: whatever goes wrong in a review is a block in the validator's name. */
  async function review(call: ToolCall, result: ToolResult): Promise<Verdict> {
    try {
      need(isObject(result), `the tool "${tool.name}" gave no result to review`);
      const work = async (signal: AbortSignal) =>
        askValidator(validator, toDiff(call, result), { signal });
      return await withDeadline(work, timeoutMs, timers, call.context.signal);
    } catch (error) {
      const reason = `the review failed: ${errorText(error)}`;
      return blockVerdict({ validator: validator.name, policyVersion: "", reason });
    }
  }

  /** Hands the verdict to the sink; the answer is what to tell the model when that failed. */
  async function keep(verdict: Verdict): Promise<string | undefined> {
    try {
      await withDeadline(async () => sink(verdict, { tool: tool.name }), timeoutMs, timers);
      return undefined;
    } catch (error) {
      return (
        `The review of "${tool.name}" could not be recorded (${errorText(error)}), so its result is withheld. ` +
        "Do not repeat the call; tell the operator."
      );
    }
  }
}

function isTool(tool: Tool): boolean {
  return (
    isNamedPart(tool, "execute") &&
    typeof tool.parseInput === "function" &&
    typeof tool.description === "function"
  );
}

/**
 * The refused content is dropped, and what the call did is to be undone: by the record that the tool gave or makes, otherwise
 * by a person, for whom at least a note is left.
 */
async function withheld(
  tool: Tool,
  call: ToolCall,
  result: ToolResult,
  verdict: Verdict,
  text: string,
): Promise<ToolResult> {
  const made = isObject(result) ? await makeUndo(tool, call, result) : {};
  const undo = made.undo ?? byHand(made.lost ?? CALLED);
  return { text, isError: true, data: { verdict }, undo, takeBack: true };
}

function byHand(manualGuide: string): UndoRecord {
  return { tool: "", input: null, description: "", irreversible: true, manualGuide };
}

const CALLED =
  "The call was made before a review blocked its result. Look at what it did, and undo it by hand where that is needed.";

function blockText(tool: string, { validator, policyVersion, reason }: Verdict): string {
  const policy = policyVersion === "" ? "" : ` (policy ${policyVersion})`;
  return (
    `Blocked by validator "${validator}"${policy}: ${oneLine(reason, 1000)}. The result of "${tool}" is withheld and ` +
    "counts as not accepted. Do not repeat the same call: change what the reason names, or ask a person."
  );
}

function circuitOpen(tool: string, error: Error): ToolResult {
  const details = error instanceof SallyportError ? error.details : {};
  const retryAfterMs = Number(details["retryAfterMs"] ?? 0);
  const text =
    `circuit_open: the tool "${tool}" was not called, because too many calls in a row were blocked in review. ` +
    `Change the plan or ask a person; the next try is possible in ${Math.ceil(retryAfterMs / 1000)} s.`;
  return { text, isError: true, data: { code: "circuit_open", retryAfterMs } };
}

/** One circuit of this process, fed by verdicts. Several guarded tools may share it. */
export interface Breaker {
  /**
   * Lets a call through and gives it a ticket to report under. Throws circuit_open, with `retryAfterMs` in its details,
   * so that an agent plans anew instead of hammering.
   */
  admit(): number;
  record(ticket: number, outcome: BreakerOutcome): void;
  snapshot(): BreakerSnapshot;
}

export interface BreakerSnapshot {
  readonly phase: BreakerState["phase"];
  readonly samples: number;
  /** Failures in a row while closed, otherwise the threshold that they reached. */
  readonly failures: number;
  readonly threshold: number;
  readonly coolDownMs: number;
  /** 0 when the next call would be admitted. */
  readonly retryAfterMs: number;
}

export interface CreateBreakerOptions extends Partial<BreakerOptions> {
  readonly clock: Clock;
}

export const DEFAULT_COOL_DOWN_MS = 30_000;

/** Everything happens in one turn of the event loop, so of many callers at once exactly one becomes the probe. */
export function createBreaker(options: CreateBreakerOptions): Breaker {
  const { clock, threshold = DEFAULT_THRESHOLD, coolDownMs = DEFAULT_COOL_DOWN_MS } = options;
  need(isObject(clock) && typeof clock.now === "function", "createBreaker needs a clock.");
  need(
    Number.isSafeInteger(threshold) && threshold >= 1,
    "The threshold of a breaker is a whole number of failures, at least 1.",
  );
  need(
    Number.isFinite(coolDownMs) && coolDownMs > 0,
    "The cool-down of a breaker is a number of milliseconds above 0.",
  );
  const settings: BreakerOptions = { threshold, coolDownMs };
  let state = initialBreaker;

  return {
    admit() {
      const answer = admit(state, settings, clock.now());
      state = answer.state;
      if (answer.admitted) return answer.ticket;
      throw new SallyportError("circuit_open", {
        hint: "Change the plan or ask a person; the same call will be refused until then.",
        phase: state.phase,
        retryAfterMs: answer.retryAfterMs,
        threshold,
      });
    },
    record(ticket, outcome) {
      state = recordOutcome(state, settings, { ticket, outcome }, clock.now());
    },
    snapshot() {
      const next = admit(state, settings, clock.now());
      return {
        phase: state.phase,
        samples: state.samples,
        failures: state.phase === "closed" ? state.failures : threshold,
        threshold,
        coolDownMs,
        retryAfterMs: next.admitted ? 0 : next.retryAfterMs,
      };
    },
  };
}
