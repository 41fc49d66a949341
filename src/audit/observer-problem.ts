import type { ToolAuditEntry } from "./sink.ts";

/** Each thing that can keep an entry from a sink or make it poorer, with what it means. */
export const OBSERVER_PROBLEMS = {
  sink_failed:
    "A sink threw, so this entry is missing there. The call and the other sinks are not affected; the trail has it.",
  tool_unreadable:
    "The tool's metadata could not be read, so the operation of this entry is a guess from the tool's name.",
  undone_unread:
    "An operation was taken back but could not be read again, so no sink was told. The trail has it.",
  entry_failed: "No entry could be made of an event, so no sink was told. The trail has it.",
} as const satisfies Record<string, string>;

export type ObserverProblemCode = keyof typeof OBSERVER_PROBLEMS;

export interface ObserverProblem {
  readonly code: ObserverProblemCode;
  readonly message: string;
  /** The sink that threw. */
  readonly sink?: string;
  /** What it missed, never with a stored path. */
  readonly entry?: ToolAuditEntry;
  /** The tool or the operation it is about, where there is no entry. */
  readonly subject?: string;
  readonly cause: unknown;
}

/** Shape: push, synchronously. What it throws is dropped, since there is nobody left to tell. */
export type ObserverProblemListener = (problem: ObserverProblem) => void;

export type TellProblem = (problem: Omit<ObserverProblem, "message">) => void;

export function problemTeller(onProblem: ObserverProblemListener): TellProblem {
  return (problem) => {
    try {
      const answer: unknown = onProblem({ ...problem, message: OBSERVER_PROBLEMS[problem.code] });
      if (typeof answer === "object" && answer !== null) Promise.resolve(answer).catch(() => {});
    } catch {
      // Whoever listens must not be able to change a call.
    }
  };
}
