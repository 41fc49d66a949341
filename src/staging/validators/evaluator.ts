import type { Diff } from "../../model/decision.ts";
import type { ReviewOptions } from "../../model/validator.ts";
import { errorText } from "../../util/error-text.ts";
import { isNamedPart, isObject, need } from "../need.ts";
import { untilAborted } from "../until-aborted.ts";

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

/** Consumes events and returns nothing, so there is no way back from a listener to a verdict. Shape: callback. */
export interface ReplayListener {
  readonly name: string;
  onEvent(event: ReplayEvent, options: ReviewOptions): Promise<void> | void;
}

/** Told of every failure of a listener. Its own failures are ignored, since there is nobody left to tell. Shape: push. */
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
 * Shows each event to each listener, in order, one at a time. A listener that fails is logged and keeps nobody from the
 * rest: the others still see this event, and it sees the next one itself. Answers how many events were shown.
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
export function tell(log: ReplayLog, ...facts: Parameters<ReplayLog>): void {
  try {
    Promise.resolve(log(...facts)).catch(() => {});
  } catch {
    // See ReplayLog: a replay does not stop because a line could not be written.
  }
}

/** Copies an evaluation out of an untyped answer; a score that is not a finite number compares with no pass mark. */
export function readEvaluation(answer: unknown, name: string): Evaluation {
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
