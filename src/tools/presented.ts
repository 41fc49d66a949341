import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { FIELD_FORMATS, type Presented, type PresentedField, type Tool } from "./tool.ts";

const MOST_TITLE = 200;
const MOST_FIELDS = 20;
const MOST_LABEL = 60;
const MOST_VALUE = 500;
const MOST_UNIT = 20;

/**
 * What the tool says about a call, as plain JSON, checked; undefined when it says nothing. It is part of what is shown and
 * hashed. A `present` that throws or returns something else is named as the problem, and the call is shown without it.
 */
export function presentedBy(tool: Tool, input: JsonValue): JsonObject | undefined {
  if (tool.present === undefined) return undefined;
  try {
    return checked(tool.present(input));
  } catch (error) {
    return { problem: `present() of this tool failed: ${errorText(error)}`.toWellFormed() };
  }
}

function checked(given: Presented): JsonObject {
  const { title, fields = [], amount } = given;
  const line = text("title", title, MOST_TITLE);
  if (/[\r\n]/.test(line) || line.trim() === "") throw new TypeError("title must be one line");
  if (!Array.isArray(fields) || fields.length > MOST_FIELDS) {
    throw new TypeError(`fields must be a list of at most ${MOST_FIELDS}`);
  }
  const presented: JsonObject = {
    title: line,
    ...(fields.length === 0 ? {} : { fields: fields.map(fieldOf) }),
    ...(amount === undefined ? {} : { amount: amountOf(amount) }),
  };
  // Throws for what JSON cannot hold, such as an infinite amount.
  canonicalJson(presented);
  return presented;
}

function fieldOf({ label, value, before, format }: PresentedField): JsonObject {
  if (format !== undefined && !FIELD_FORMATS.includes(format)) {
    throw new TypeError(`format must be one of ${FIELD_FORMATS.join(", ")}`);
  }
  return {
    label: text("label", label, MOST_LABEL),
    value: text("value", value, MOST_VALUE),
    ...(before === undefined ? {} : { before: text("before", before, MOST_VALUE) }),
    ...(format === undefined ? {} : { format }),
  };
}

function amountOf({ value, unit }: NonNullable<Presented["amount"]>): JsonObject {
  if (typeof value !== "number" || !Number.isFinite(value)) {
    throw new TypeError("amount.value must be a finite number");
  }
  return { value, unit: text("amount.unit", unit, MOST_UNIT) };
}

/** Too long is a mistake of the tool and not shortened: the end of a sentence may be what matters. */
function text(what: string, given: unknown, most: number): string {
  if (typeof given !== "string") throw new TypeError(`${what} must be a text`);
  if (given.length > most) throw new TypeError(`${what} is longer than ${most} characters`);
  return given.toWellFormed();
}
