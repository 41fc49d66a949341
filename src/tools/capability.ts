/** What a tool can do for safety, and what it wants done before it runs. */
export interface Capability {
  /** The agent's own estimate must be at least this, 0 to 100; 0 switches the gate off. */
  readonly confidenceMin: number;
  /** A person must let each call through. */
  readonly checkpoint: boolean;
  /** The agent must challenge itself first: hidden assumptions, failure scenarios, verdict. */
  readonly reverseThinking: boolean;
  /** For display only; rollback reads the undo record of the call. */
  readonly undoMethod: "tool" | "manual" | "";
  readonly undoTool: string;
  /** For display only: kinds of things it touches. */
  readonly affects: readonly string[];
}

export const NO_CAPABILITY: Capability = Object.freeze({
  confidenceMin: 0,
  checkpoint: false,
  reverseThinking: false,
  undoMethod: "",
  undoTool: "",
  affects: Object.freeze([]) as readonly string[],
});

export type SafetyLevel = 0 | 1 | 2;
