import type { JsonValue } from "../util/json.ts";
import { TimeoutError, type Timers, withDeadline } from "../util/timers.ts";
import {
  type CheckpointAnswer,
  type CheckpointDecision,
  type CheckpointOutcome,
  decideCheckpoint,
} from "./checkpoint.ts";
import { shownError } from "./shown.ts";

export interface CheckpointRequest {
  readonly tool: string;
  readonly input: JsonValue;
  /** Why there is a checkpoint. */
  readonly reason: string;
}

/** The host's way to ask a person. Shape: callback; the call waits for it. No answer in time, or a throw, means no. */
export type CheckpointHandler = (
  request: CheckpointRequest,
  signal: AbortSignal,
) => CheckpointAnswer | Promise<CheckpointAnswer>;

export interface RunCheckpointOptions {
  /** The tool's `capability.checkpoint`. */
  readonly needed: boolean;
  readonly handler: CheckpointHandler | undefined;
  readonly timers: Timers;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Asks the host's handler and waits. Answers that outlive the connection are the business of confirm interactions. */
export async function runCheckpoint(
  request: CheckpointRequest,
  options: RunCheckpointOptions,
): Promise<CheckpointDecision> {
  return decideCheckpoint(request.tool, await outcomeOf(request, options));
}

async function outcomeOf(
  request: CheckpointRequest,
  { needed, handler, timers, timeoutMs, signal }: RunCheckpointOptions,
): Promise<CheckpointOutcome> {
  if (!needed) return { kind: "not-needed" };
  if (handler === undefined) return { kind: "no-handler" };
  try {
    const work = (stop: AbortSignal) => handler(request, stop);
    return { kind: "answered", answer: await withDeadline(work, timeoutMs, timers, signal) };
  } catch (error) {
    if (error instanceof TimeoutError) return { kind: "timed-out", ms: timeoutMs };
    return { kind: "failed", error: shownError(error) };
  }
}
