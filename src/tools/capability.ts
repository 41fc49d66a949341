/** What a tool can do for safety, and what it wants done before it runs. Shape: pulled, without side effects. */
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

/** What the tool declares, filled up with the zero capability. */
export function capabilityOf(tool: { readonly capability?: Partial<Capability> }): Capability {
  const declared = tool.capability;
  return declared === undefined ? NO_CAPABILITY : Object.freeze({ ...NO_CAPABILITY, ...declared });
}

/** What is wrong with a declared capability, as a sentence; undefined when nothing is. */
export function capabilityProblem(declared: Partial<Capability> | undefined): string | undefined {
  const all: Readonly<Record<keyof Capability, unknown>> = { ...NO_CAPABILITY, ...declared };
  const min = all.confidenceMin;
  // Written so that NaN is refused: compared the other way round it would switch the gate off.
  if (!(typeof min === "number" && min >= 0 && min <= 100)) {
    return "confidenceMin must be a number from 0 to 100.";
  }
  for (const flag of ["checkpoint", "reverseThinking"] as const) {
    if (typeof all[flag] !== "boolean") return `${flag} must be true or false.`;
  }
  if (all.undoMethod !== "tool" && all.undoMethod !== "manual" && all.undoMethod !== "") {
    return 'undoMethod must be "tool", "manual" or empty.';
  }
  if (typeof all.undoTool !== "string") return "undoTool must be the name of a tool or empty.";
  const isKinds =
    Array.isArray(all.affects) && all.affects.every((kind) => typeof kind === "string");
  return isKinds ? undefined : "affects must be a list of words.";
}
