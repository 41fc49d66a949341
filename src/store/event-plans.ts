import type { EventDraft } from "../model/audit-entry.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import type { Cell, EventPlan, Left, Row, Step } from "./engine.ts";

/** The events of a change, made from what its steps left behind. Throws when a plan speaks of what is not there. */
export function draftsOf(plans: readonly EventPlan[], rows: readonly Row[]): EventDraft[] {
  return plans.flatMap((plan) =>
    plan.each === true ? rows.map((row) => draftOf(plan, [row])) : [draftOf(plan, rows)],
  );
}

function draftOf(plan: EventPlan, rows: readonly Row[]): EventDraft {
  const { type, subject, session, actor, data, facts } = plan;
  return {
    type,
    subject: textOf(subject, rows),
    session: textOf(session, rows),
    actor,
    data: facts === undefined ? data : withFacts(data, facts, rows),
  };
}

function withFacts(
  data: JsonObject,
  facts: Readonly<Record<string, Left>>,
  rows: readonly Row[],
): JsonObject {
  const filled: JsonObject = { ...data };
  for (const [name, left] of Object.entries(facts)) filled[name] = factOf(left, rows);
  return filled;
}

function textOf(text: string | Left, rows: readonly Row[]): string {
  if (typeof text === "string") return text;
  const cell = cellOf(text, rows);
  if (typeof cell !== "string") throw new TypeError(`the column ${text.left} holds no text`);
  return cell;
}

function factOf(left: Left, rows: readonly Row[]): JsonValue {
  const cell = cellOf(left, rows);
  if (cell instanceof Uint8Array) throw new TypeError(`the column ${left.left} holds bytes`);
  return cell;
}

function cellOf({ left, step = 0 }: Left, rows: readonly Row[]): Cell {
  const cell = rows[step]?.[left];
  if (cell === undefined) throw new TypeError(`step ${step} leaves no column ${left} behind`);
  return cell;
}

/**
 * Facts go into the trail as they stand in the row, past redaction: so they may be numbers and the names we give to
 * records and states, never a text that came from outside.
 */
export function isOpenFact({ left, step = 0 }: Left, steps: readonly Step[]): boolean {
  return steps[step]?.table.columns[left] === "int" || OPEN_TEXT.test(left);
}

const OPEN_TEXT = /^(id|[a-z_]+_id|state|status|kind|[a-z_]*hash)$/;
