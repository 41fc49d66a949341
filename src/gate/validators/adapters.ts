import type { Diff, ReviewOptions, Validator, Verdict } from "../../model/decision.ts";
import { errorText, oneLine } from "../../util/error-text.ts";
import {
  askValidator,
  isBlockVerdict,
  isFilledText,
  isNamedPart,
  isObject,
  need,
  untilAborted,
} from "../review.ts";

/** The verdict's score, with the yes or no beside it as 1 or 0. A failing review is a failing evaluation. */
export function validatorAsEvaluator({ validator }: { readonly validator: Validator }): Evaluator {
  need(isNamedPart(validator, "review"), "validatorAsEvaluator needs a validator.");
  return {
    name: validator.name,
    async evaluate(candidate, options) {
      const verdict = await askValidator(validator, candidate, options);
      const approved = verdict.approved && !isBlockVerdict(verdict);
      return { score: verdict.score, breakdown: { approved: approved ? 1 : 0 } };
    },
  };
}

export interface EvaluatorAsValidatorOptions {
  readonly evaluator: Evaluator;
  /** At or above it approves, below it refuses. There is no default, because no number is right for every scale. */
  readonly passMark: number;
  readonly policyVersion: string;
  /** How bad a score below the mark is. Left out, it is `block`. */
  readonly severity?: "warn" | "block";
}

/** Lets an evaluator stand in either review tier. A failing evaluation is a failing review, so it means no. */
export function evaluatorAsValidator(options: EvaluatorAsValidatorOptions): Validator {
  const { evaluator, passMark, policyVersion, severity = "block" } = options;
  need(isNamedPart(evaluator, "evaluate"), "evaluatorAsValidator needs an evaluator.");
  const { name } = evaluator;
  need(Number.isFinite(passMark), `evaluatorAsValidator "${name}" needs a finite passMark.`);
  need(isFilledText(policyVersion), `evaluatorAsValidator "${name}" needs a policyVersion.`);
  need(
    severity === "warn" || severity === "block",
    `evaluatorAsValidator "${name}" knows the severities "warn" and "block".`,
  );
  return {
    name,
    async review(diff, { signal }) {
      const { score, breakdown } = await evaluate(evaluator, diff, { signal });
      const approved = score >= passMark;
      const reason = `score ${score} is ${approved ? "at or above" : "below"} the pass mark ${passMark}${list(breakdown)}`;
      return {
        approved,
        score,
        reason,
        severity: approved ? "" : severity,
        validator: name,
        policyVersion,
      };
    },
  };
}

export interface ValidatorListenerOptions {
  readonly validator: Validator;
  /** Receives what the validator says of each replayed diff; nothing else comes of it. Shape: callback, waited for. */
  readonly onVerdict: (verdict: Verdict, event: ReplayEvent) => void | Promise<void>;
  readonly log: ReplayLog;
}

/** Reviews past diffs again, for instance to see what a new policy would have said. */
export function validatorAsReplayListener(options: ValidatorListenerOptions): ReplayListener {
  const { validator, onVerdict, log } = options;
  need(isNamedPart(validator, "review"), "validatorAsReplayListener needs a validator.");
  need(typeof onVerdict === "function", "validatorAsReplayListener needs an onVerdict callback.");
  need(typeof log === "function", "validatorAsReplayListener needs a log callback.");
  return listener(validator.name, log, async (diff, event, { signal }) => {
    const verdict = await askValidator(validator, diff, { signal });
    await untilAborted(signal, () => onVerdict(verdict, event));
  });
}

export interface EvaluatorListenerOptions {
  readonly evaluator: Evaluator;
  /** Receives the score of each replayed diff; nothing else comes of it. Shape: callback, waited for. */
  readonly onEvaluation: (evaluation: Evaluation, event: ReplayEvent) => void | Promise<void>;
  readonly log: ReplayLog;
}

export function evaluatorAsReplayListener(options: EvaluatorListenerOptions): ReplayListener {
  const { evaluator, onEvaluation, log } = options;
  need(isNamedPart(evaluator, "evaluate"), "evaluatorAsReplayListener needs an evaluator.");
  need(typeof onEvaluation === "function", "evaluatorAsReplayListener needs onEvaluation.");
  need(typeof log === "function", "evaluatorAsReplayListener needs a log callback.");
  return listener(evaluator.name, log, async (diff, event, { signal }) => {
    const evaluation = await evaluate(evaluator, diff, { signal });
    await untilAborted(signal, () => onEvaluation(evaluation, event));
  });
}

/** Logs an error instead of throwing it into the replay, which may belong to other code. */
function listener(
  name: string,
  log: ReplayLog,
  consume: (diff: Diff, event: ReplayEvent, options: ReviewOptions) => Promise<void>,
): ReplayListener {
  return {
    name,
    async onEvent(event, options) {
      if (event.diff === undefined) return;
      try {
        await consume(event.diff, event, options);
      } catch (error) {
        tell(log, error, { listener: name, event });
      }
    },
  };
}

async function evaluate(
  evaluator: Evaluator,
  diff: Diff,
  { signal }: ReviewOptions,
): Promise<Evaluation> {
  const answer = await untilAborted(signal, () => evaluator.evaluate(diff, { signal }));
  return readEvaluation(answer, evaluator.name);
}

function list(breakdown: Evaluation["breakdown"]): string {
  if (breakdown === undefined) return "";
  const parts = Object.entries(breakdown).map(([criterion, value]) => `${criterion} ${value}`);
  return parts.length === 0 ? "" : ` (${oneLine(parts.join(", "), 500)})`;
}

/** Scores a candidate, after the fact and for learning. Shape: callback. It cannot stop anything by itself. */
export interface Evaluator {
  readonly name: string;
  evaluate(candidate: Diff, options: ReviewOptions): Promise<Evaluation> | Evaluation;
}

export interface Evaluation {
  readonly score: number;
  /** What the score is made of, by criterion. */
  readonly breakdown?: Readonly<Record<string, number>>;
}

/** Something that happened earlier. Events without a diff are of no interest to reviewers and are passed over by them. */
export interface ReplayEvent {
  readonly type: string;
  readonly diff?: Diff;
  readonly data?: unknown;
}

/** Consumes events and returns nothing, so a listener cannot influence a verdict. Shape: callback. */
export interface ReplayListener {
  readonly name: string;
  onEvent(event: ReplayEvent, options: ReviewOptions): Promise<void> | void;
}

/** Receives every failure of a listener. Its own failures are ignored. Shape: push. */
export type ReplayLog = (
  error: unknown,
  where: { readonly listener: string; readonly event: ReplayEvent },
) => void;

export interface ReplayOptions {
  readonly log: ReplayLog;
  /** Ends the replay: it throws the signal's reason, as it does when the events themselves cannot be read. */
  readonly signal?: AbortSignal;
}

/**
 * Passes each event to each listener, in order, one at a time. A failure of a listener is logged and stops nothing else: the
 * other listeners still get this event, and it gets the next one. Returns the number of events.
 */
export async function replay(
  events: Iterable<ReplayEvent> | AsyncIterable<ReplayEvent>,
  listeners: readonly ReplayListener[],
  { log, signal = new AbortController().signal }: ReplayOptions,
): Promise<{ readonly events: number }> {
  need(typeof log === "function", "replay needs a log callback for the failures of listeners.");
  for (const listener of listeners) {
    need(isNamedPart(listener, "onEvent"), "Each replay listener needs a name and onEvent.");
  }
  let count = 0;
  for await (const event of events) {
    signal.throwIfAborted();
    count += 1;
    for (const listener of listeners) {
      try {
        await untilAborted(signal, () => listener.onEvent(event, { signal }));
      } catch (error) {
        signal.throwIfAborted();
        tell(log, error, { listener: listener.name, event });
      }
    }
  }
  return { events: count };
}

/** Logs without ever failing, whether the callback throws or returns a promise that is rejected. */
function tell(log: ReplayLog, ...facts: Parameters<ReplayLog>): void {
  try {
    Promise.resolve(log(...facts)).catch(() => {});
  } catch {
    // See ReplayLog: a replay does not stop because a line could not be written.
  }
}

/** Copies an evaluation out of an untyped answer; a score that is not a finite number compares with no pass mark. */
function readEvaluation(answer: unknown, name: string): Evaluation {
  need(isObject(answer), `Evaluator "${name}" did not answer with an evaluation.`);
  const { score, breakdown } = answer;
  need(
    typeof score === "number" && Number.isFinite(score),
    `Evaluator "${name}" gave a score that is not a finite number: ${errorText(score)}.`,
  );
  if (breakdown === undefined) return { score };
  need(isObject(breakdown), `Evaluator "${name}" gave a breakdown that is not an object.`);
  return { score, breakdown: breakdown as Readonly<Record<string, number>> };
}
