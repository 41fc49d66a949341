import type { CallAnswer, CallRequest } from "../model/call.ts";
import { SallyportError } from "../model/errors.ts";
import type { CommonState, PlanStep } from "../model/flow-state.ts";
import type { PendingTool, Question, QuestionAnswer } from "../model/interaction.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject } from "../util/json.ts";

/** One thing that was said or done in a run. Only appended to: the model reads the whole, the summary is made from it. */
export type WorkEntry =
  | { readonly kind: "said"; readonly text: string }
  | { readonly kind: "planned"; readonly steps: readonly string[] }
  | Act
  | {
      readonly kind: "result";
      readonly id: string;
      readonly answer: "done" | "failed" | "denied";
      readonly text: string;
    }
  | { readonly kind: "reply"; readonly id: string; readonly text: string }
  | { readonly kind: "step"; readonly step: number; readonly check: string }
  | { readonly kind: "correction"; readonly said: string; readonly text: string }
  | { readonly kind: "note"; readonly text: string };

/** Something the model chose to do. It is saved before it is done, so that a restart does it and does not choose again. */
export type Act =
  | { readonly kind: "call"; readonly id: string; readonly tool: PendingTool }
  | {
      readonly kind: "question";
      readonly id: string;
      readonly text: string;
      readonly choices: readonly string[];
    };

export interface Work {
  readonly entries: WorkEntry[];
  /** Unusable answers of the model in a row. */
  corrections: number;
  /** Why it ended before the model said so; empty otherwise. */
  problem: string;
}

export function newWork(): Work {
  return { entries: [], corrections: 0, problem: "" };
}

/** What was chosen and has no outcome yet. */
export function openAct({ entries }: Work): Act | undefined {
  const settled = new Set(
    entries.map((entry) => (entry.kind === "result" || entry.kind === "reply" ? entry.id : "")),
  );
  return entries.filter(isAct).findLast(({ id }) => !settled.has(id));
}

function isAct(entry: WorkEntry): entry is Act {
  return entry.kind === "call" || entry.kind === "question";
}

/**
 * The same for the same choice at the same place of the same run, in every process: that makes a repeated call the same call.
 * What was chosen is part of it, so that another choice can never be given the answer of this one.
 */
export function actId(
  { trace_id, current_step, rounds_used }: ActPlace,
  chosen: readonly string[],
): string {
  const what = sha256Hex(canonicalJson(chosen)).slice(0, 16);
  return `${trace_id}.${current_step}.${rounds_used}.${what}`;
}

interface ActPlace {
  readonly trace_id: string;
  readonly current_step: number;
  readonly rounds_used: number;
}

export function savedWork(work: Work): JsonObject {
  return structuredClone(work) as unknown as JsonObject;
}

/** Throws damaged_record for something else than `savedWork` made. */
export function workOf({ entries, corrections, problem }: JsonObject): Work {
  const isWhole =
    Array.isArray(entries) && typeof corrections === "number" && typeof problem === "string";
  if (isWhole) return { entries: entries as unknown as WorkEntry[], corrections, problem };
  const hint = "The stored state of this conversation cannot be read. Delete it to start anew.";
  throw new SallyportError("damaged_record", { what: "work", hint });
}

/** Counts the round first. False when it was one too many. */
export function countRound(common: CommonState): boolean {
  common.rounds_used += 1;
  return common.rounds_used <= common.round_limit;
}

export function isExhausted({ rounds_used, round_limit }: CommonState): boolean {
  return rounds_used >= round_limit;
}

/** For people: the first step is 1, and after the last one it stays there. */
export function progressOf({ current_step, plan_steps }: CommonState): {
  readonly step: number;
  readonly total: number;
} {
  const total = plan_steps.length;
  return { step: Math.min(current_step + 1, total), total };
}

export function finishPlan(common: CommonState, steps: readonly PlanStep[]): void {
  common.plan_steps = steps;
  common.current_step = 0;
  common.phase = "waiting_confirm";
}

export function confirmPlan(common: CommonState): void {
  common.phase = "executing";
}

export function rejectPlan(common: CommonState): void {
  common.plan_steps = [];
  common.current_step = 0;
  common.phase = "planning";
}

/**
 * What a flow needs of the gate: a port's session fits. Asked again with the same key or id it answers what became of the first
 * time, and makes no second call and no second question. Shape: callback; the flow waits for every answer.
 */
export interface FlowSession {
  readonly id: string;
  call(request: CallRequest): Promise<CallAnswer>;
  ask(question: Question): Promise<QuestionAnswer>;
  /** Undefined when there was no such call. */
  resultOf(key: string): Promise<CallAnswer | undefined>;
}
