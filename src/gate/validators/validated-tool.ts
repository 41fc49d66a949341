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

/** What of a tool the wrapper needs. A `signal` in the context, where there is one, also ends the review. Shape: callback. */
export interface ReviewableTool<Input, Context> {
  readonly name: string;
  execute(input: Input, context: Context): Promise<ReviewableToolResult>;
}

export interface ReviewableToolResult {
  readonly text: string;
  readonly isError?: boolean;
  readonly data?: unknown;
  readonly undo?: unknown;
}

export interface ValidatedToolOptions<Input, Context> {
  readonly tool: ReviewableTool<Input, Context>;
  readonly validator: Validator;
  /** What is reviewed: the validator sees this and nothing else of the call. Shape: callback. */
  readonly toDiff: (input: Input, result: ReviewableToolResult) => Diff;
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
 * Puts a validator around a tool. Approve and warn hand on the tool's own result, block replaces it by an error written
 * for the model that reads it. A call that failed by itself is not reviewed.
 */
export function validatedTool<Input, Context>(
  options: ValidatedToolOptions<Input, Context>,
): ReviewableTool<Input, Context> {
  const {
    tool,
    validator,
    toDiff,
    sink,
    breaker,
    timeoutMs = 30_000,
    timers = systemTimers,
  } = options;
  need(isNamedPart(tool, "execute"), "validatedTool needs a tool with a name and execute.");
  need(isNamedPart(validator, "review"), "validatedTool needs a validator.");
  need(typeof toDiff === "function", "validatedTool needs toDiff, which says what is reviewed.");
  need(typeof sink === "function", "validatedTool needs a sink for the verdicts.");
  need(Number.isFinite(timeoutMs) && timeoutMs > 0, "timeoutMs is a number above 0.");
  need(
    breaker === undefined || (isObject(breaker) && typeof breaker.admit === "function"),
    "The breaker of validatedTool is made by createBreaker.",
  );

  return {
    name: tool.name,
    async execute(input, context) {
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
      let result: ReviewableToolResult;
      try {
        result = await tool.execute(input, context);
      } catch (error) {
        settle("abandoned");
        throw error;
      }
      if (isObject(result) && result.isError === true) {
        settle("abandoned");
        return result;
      }
      const verdict = await review(input, result, signalOf(context));
      settle(breakerOutcome(verdict));
      const lost = await keep(verdict);
      if (isBlockVerdict(verdict)) return withheld(result, verdict, blockText(tool.name, verdict));
      if (lost !== undefined) return withheld(result, verdict, lost);
      return result;
    },
  };

  /** Never throws: whatever goes wrong in a review is a block in the validator's name. */
  async function review(
    input: Input,
    result: ReviewableToolResult,
    outer: AbortSignal | undefined,
  ): Promise<Verdict> {
    try {
      need(isObject(result), `the tool "${tool.name}" gave no result to review`);
      const work = async (signal: AbortSignal) =>
        askValidator(validator, toDiff(input, result), { signal });
      return await withDeadline(work, timeoutMs, timers, outer);
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

function signalOf(context: unknown): AbortSignal | undefined {
  const signal = isObject(context) ? context["signal"] : undefined;
  return signal instanceof AbortSignal ? signal : undefined;
}

/**
 * The refused content is dropped and the undo record kept: the call was made, and a rollback needs it. A tool that
 * gave none leaves at least a note for the person who reads the report.
 */
function withheld(
  result: ReviewableToolResult,
  verdict: Verdict,
  text: string,
): ReviewableToolResult {
  const given = isObject(result) ? result["undo"] : undefined;
  const undo = given ?? { irreversible: true, manualGuide: CALLED };
  return { text, isError: true, data: { verdict }, undo };
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

function circuitOpen(tool: string, error: Error): ReviewableToolResult {
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
