import type { JsonValue } from "../util/json.ts";
import { TimeoutError, type Timers, withDeadline } from "../util/timers.ts";
import { shown, shownError } from "./answers.ts";

interface CheckpointRequest {
  readonly tool: string;
  readonly input: JsonValue;
  /** The reason for the checkpoint. */
  readonly reason: string;
}

/** Asks a person through the host. Shape: callback; the call waits for it. A time-out or a throw means no. */
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

/** Asks the host's handler and waits. Answers that outlive the connection are handled by confirm interactions. */
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

/** The answers of a checkpoint handler. */
export type CheckpointAnswer =
  | { readonly answer: "go" }
  | { readonly answer: "refuse"; readonly reason: string }
  | { readonly answer: "cancelled" };

/** The outcome of the question. */
type CheckpointOutcome =
  | { readonly kind: "not-needed" }
  | { readonly kind: "no-handler" }
  | { readonly kind: "answered"; readonly answer: unknown }
  | { readonly kind: "failed"; readonly error: string }
  | { readonly kind: "timed-out"; readonly ms: number };

type CheckpointDecision =
  | { readonly go: true }
  | { readonly go: false; readonly answer: "refuse" | "cancelled"; readonly message: string };

/**
 * Decides whether a tool that needs a checkpoint may run. Only an explicit go of the handler allows it: no handler, an
 * error, a time-out and an invalid answer all refuse. Only the tool's flag decides whether there is a checkpoint, never
 * the model's output.
 */
export function decideCheckpoint(tool: string, outcome: CheckpointOutcome): CheckpointDecision {
  switch (outcome.kind) {
    case "not-needed":
      return { go: true };
    case "no-handler":
      return refuse(tool, "it needs a person's go, and there is no person to ask");
    case "failed":
      return refuse(tool, `asking for a person's go failed (${outcome.error})`);
    case "timed-out":
      return refuse(tool, `no person approved within ${outcome.ms} ms`);
    case "answered":
      return readAnswer(tool, outcome.answer);
  }
}

function readAnswer(tool: string, value: unknown): CheckpointDecision {
  const { answer, reason } = (typeof value === "object" && value !== null ? value : {}) as {
    readonly answer?: unknown;
    readonly reason?: unknown;
  };
  if (answer === "go") return { go: true };
  if (answer === "refuse") {
    return refuse(
      tool,
      typeof reason === "string" && reason !== "" ? `refused: ${reason}` : "a person refused",
    );
  }
  if (answer === "cancelled") {
    const message = `The checkpoint of tool ${shown(tool)} was cancelled. Nothing was executed. Ask what to do instead of calling it again.`;
    return { go: false, answer: "cancelled", message };
  }
  return refuse(tool, "the checkpoint's answer was neither go, refuse nor cancelled");
}

function refuse(tool: string, why: string): CheckpointDecision {
  return {
    go: false,
    answer: "refuse",
    message: `Tool ${shown(tool)} was stopped at its checkpoint: ${why}. Nothing was executed. Choose another approach; repeating the call will not help.`,
  };
}
