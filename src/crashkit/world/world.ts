import type { Effect, Kind } from "../evidence.ts";

export const KINDS = ["keyed", "probed", "plain"] as const satisfies readonly Kind[];

/** What happens right after an effect, once per key: the line is cut, or production itself dies before it answers. */
export type Fault = "none" | "cut" | "die";

/** A question to production, as the tools send it. */
export interface Sent {
  readonly ask: "do" | "probe" | "version";
  readonly kind: Kind;
  readonly key: string;
  readonly fence: number;
  /** The bytes of the tool's input. */
  readonly input: string;
  readonly fault: Fault;
}

/** The input of all tools: which step of which run, whether it takes that step back, and whether production refuses it. */
export interface Target {
  readonly run: string;
  readonly step: number;
  readonly undo: boolean;
  readonly refuse: boolean;
}

/** An effect with what it was about. */
export interface LedgerLine extends Target, Effect {}

/** A probed target was asked under this fence: what comes under an older one is late, also after it died in between. */
export interface FenceLine {
  readonly key: string;
  readonly seenFence: number;
}

/** Happened already, or nothing did: `text` says what. */
export interface WorldAnswer {
  readonly text: string;
  readonly refused: boolean;
  readonly happened: boolean;
}

export function isEffect(line: LedgerLine | FenceLine): line is LedgerLine {
  return "applied" in line;
}
