import type { JsonValue } from "../util/json.ts";
import type { Cell, Change, Step, Value, Values } from "./engine.ts";
import { OPERATIONS } from "./operation-rows.ts";
import { EPOCH, SWITCHES } from "./switch-rows.ts";

/** The beginning of an operation, or of another attempt at one. */
export function isEffect({ steps }: Change): boolean {
  return steps.some(
    (step) =>
      step.table.name === OPERATIONS.name &&
      (step.op === "insert" || (step.op === "update" && step.set["status"] === "started")),
  );
}

/**
 * What must not wait behind ordinary work and is never refused because a queue is full: the kill switch, because every
 * change it waits for may begin an effect, and the outcome of an operation, because the tool was called already.
 */
export function isUrgent({ steps }: Change): boolean {
  return steps.some(isSwitching) || steps.some(isSettling);
}

function isSwitching(step: Step): boolean {
  return (step.op === "insert" || step.op === "update") && step.table.name === SWITCHES.name;
}

function isSettling(step: Step): boolean {
  if (step.op !== "update" || step.table.name !== OPERATIONS.name) return false;
  const status = step.set["status"];
  return status !== undefined && status !== "started";
}

/** The epoch that a change begins, if it begins one. */
export function epochOf({ steps }: Change): string | undefined {
  for (const step of steps) {
    if (!isSwitching(step) || !("id" in step) || step.id !== EPOCH) continue;
    const state = (step.op === "insert" ? step.row : step.op === "update" ? step.set : {})["state"];
    if (typeof state === "string") return state;
  }
  return undefined;
}

/** About how many bytes a change is when it is sent: long texts and bytes count, the rest is an allowance. */
export function sizeOf({ steps, events }: Change): number {
  let size = 0;
  for (const step of steps) {
    size += STEP_BYTES;
    if (step.op === "insert") size += sizeOfValues(step.row);
    else if (step.op === "update" || step.op === "take") size += sizeOfValues(step.set);
  }
  for (const { data } of events) size += STEP_BYTES + sizeOfJson(data);
  return size;
}
const STEP_BYTES = 200;

function sizeOfValues(values: Values): number {
  let size = 0;
  for (const column in values) size += sizeOfValue(values[column] ?? null);
  return size;
}

function sizeOfValue(value: Value | Cell): number {
  return typeof value === "string" || value instanceof Uint8Array ? value.length : 0;
}

function sizeOfJson(value: JsonValue): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  let size = 0;
  for (const one of Object.values(value)) size += sizeOfJson(one);
  return size;
}
