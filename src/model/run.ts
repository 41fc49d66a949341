import { data, instant, integer, key, oneOf } from "./field.ts";
import type { Instant } from "./names.ts";
import type { CompletionPromise, Evidence } from "./promise.ts";
import { record } from "./record.ts";

/**
 * The phases of a run and where each may lead. Forward, one after the other; from verify back to execute, which is repair;
 * from execute back to plan, when the plan has to be revised. Nothing but a verification leads to ship.
 */
export const PHASE_MOVES = {
  discuss: ["spec"],
  spec: ["plan"],
  plan: ["execute"],
  execute: ["verify", "plan"],
  verify: ["ship", "execute"],
  ship: [],
} as const satisfies Record<string, readonly string[]>;
export type Phase = keyof typeof PHASE_MOVES;
export const PHASES = Object.keys(PHASE_MOVES) as readonly Phase[];

export function mayFollow(from: Phase, to: Phase): boolean {
  return (PHASE_MOVES[from] as readonly string[]).includes(to);
}

/** The parts of one round of the loop, in order. */
export const LOOP_STAGES = ["reason", "gate", "act", "observe", "update", "evaluate"] as const;
export type LoopStage = (typeof LOOP_STAGES)[number];

/** A run is also the session of its lead agent, so that everything done in it is found under one id. */
export type RunId = `run-${string}`;

export function isRunId(sessionId: string): sessionId is RunId {
  return sessionId.startsWith("run-");
}

export const RUN_STATUSES = ["open", "done", "stopped"] as const;

/** One feature, from talk to delivery. Made from its events alone, by `reduceRun`. */
export interface Run {
  readonly id: RunId;
  readonly feature: string;
  readonly lead: string;
  readonly phase: Phase;
  readonly status: (typeof RUN_STATUSES)[number];
  /** Absolute path of the artefact of each phase. */
  readonly artefacts: Readonly<Partial<Record<Phase, string>>>;
  /** Absolute path of the folder with the run's documents, and of the one with its evidence. */
  readonly documents: string;
  readonly evidenceFolder: string;
  /** What the approved plan lists: the only production files that may be written. */
  readonly planFiles: readonly string[];
  readonly promises: readonly CompletionPromise[];
  readonly evidence: readonly Evidence[];
  /** Rounds of the loop: how many there may be, how many there were, and where the current one is. */
  readonly budget: number;
  readonly rounds: number;
  readonly stage: LoopStage | "";
  /** Why it was stopped; empty while it goes on. */
  readonly reason: string;
  /** Events so far. */
  readonly version: number;
}

/** A run is stored as one text, and beside it what is asked for. */
export const RUNS = record(
  "runs",
  {
    id: key<RunId>(),
    phase: oneOf(PHASES),
    status: oneOf(RUN_STATUSES),
    version: integer(),
    run: data<Run>().as("state"),
    createdAt: instant(),
    updatedAt: instant(),
  },
  {
    indexes: [{ name: "by_status", on: ["status", "ord"] }],
    check({ run, id, version, phase }) {
      const fits = run.id === id && run.version === version && run.phase === phase;
      return fits ? undefined : "state";
    },
  },
);

/** Everything that can happen to a run. The trail holds these as `run.<kind>`, with `data` as it is here. */
export type RunEvent =
  | {
      readonly kind: "started";
      readonly feature: string;
      readonly lead: string;
      readonly documents: string;
      readonly evidenceFolder: string;
      readonly promise: CompletionPromise;
      readonly budget: number;
    }
  | { readonly kind: "promised"; readonly promise: CompletionPromise }
  /** A person has agreed to the list of files. */
  | { readonly kind: "plan_approved"; readonly files: readonly string[] }
  | { readonly kind: "artefact_named"; readonly phase: Phase; readonly path: string }
  | { readonly kind: "phase_changed"; readonly from: Phase; readonly to: Phase }
  | { readonly kind: "evidence_recorded"; readonly evidence: Evidence }
  | { readonly kind: "staged"; readonly stage: LoopStage; readonly round: number }
  | { readonly kind: "done" }
  | { readonly kind: "stopped"; readonly reason: string };

/** An event with its place and time, as the trail has it. */
export interface ToldRunEvent {
  readonly event: RunEvent;
  readonly at: Instant;
}
