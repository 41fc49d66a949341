import { SallyportError } from "../model/errors.ts";
import { type FieldKind, TASK_FIELDS, type Task, ZERO_TIME } from "../model/task.ts";
import { taskFromJson, taskToJson } from "../model/task-codec.ts";
import { lineOf, quoteOf, textOfLine, textOfQuote } from "./markdown-text.ts";

/** What stands in a section and is not ours: fields with other names, and text, each after the part it followed. */
export interface Kept {
  readonly fields: readonly string[];
  readonly text: Readonly<Partial<Record<Place, readonly string[]>>>;
}

export const NOTHING_KEPT: Kept = { fields: [], text: {} };

/** The parts of a section in their order: the list of fields, then the long texts under headings of their own. */
const BLOCKS = {
  description: "### Description",
  result: "### Result",
  failure_reason: "### Failure reason",
} as const;
type Block = keyof typeof BLOCKS;
type Place = "heading" | "fields" | Block;
const BLOCK_NAMES = Object.keys(BLOCKS) as readonly Block[];

export const ID_FIELD = "- id:";
const FIELD = /^- ([a-z][a-z0-9_]*):(?:\s+(.*))?$/;
const KINDS = new Map<string, FieldKind>(
  Object.values(TASK_FIELDS)
    .filter(({ json, kind }) => kind !== "prose" && json !== "subject")
    .map(({ json, kind }) => [json, kind]),
);

/**
 * The lines of a section, which begins with its heading and has a field `id`. The list of fields is the one in which
 * that field stands. `line` is the number of the heading, for messages.
 */
export function readSection(lines: readonly string[], line: number): { task: Task; kept: Kept } {
  const values: Record<string, unknown> = { subject: textOfLine((lines[0] ?? "").slice(2)) };
  const other: string[] = [];
  let first = lines.findIndex((one) => one.startsWith(ID_FIELD));
  while (first > 1 && FIELD.test(lines[first - 1] ?? "")) first -= 1;
  let at = first;
  for (let field = FIELD.exec(lines[at] ?? ""); field !== null; ) {
    const [whole, name = "", value = ""] = field;
    if (KINDS.has(name)) readField(values, name, textOfLine(value), line + at);
    else other.push(whole);
    at += 1;
    field = FIELD.exec(lines[at] ?? "");
  }
  const text = readBlocks(lines, at, { values, line });
  const kept = trimmed({ heading: lines.slice(1, first), ...text });
  return { task: taskAt(values, line), kept: { fields: other, text: kept } };
}

/** What comes after the fields: the long texts go into `values`, the rest is given back by its place. */
function readBlocks(
  lines: readonly string[],
  start: number,
  { values, line }: { values: Record<string, unknown>; line: number },
): Partial<Record<Place, string[]>> {
  const text: Partial<Record<Place, string[]>> = {};
  let place: Place = "fields";
  for (let at = start; at < lines.length; ) {
    const block = BLOCK_NAMES.find((name) => BLOCKS[name] === lines[at]?.trimEnd());
    if (block === undefined) {
      const rest = text[place] ?? [];
      text[place] = rest;
      rest.push(lines[at] ?? "");
      at += 1;
      continue;
    }
    if (Object.hasOwn(values, block)) throw damaged(block, line + at, "It stands there twice.");
    const quote = quoteFrom(lines, at + 1);
    values[block] = textOfQuote(quote.lines);
    place = block;
    at = quote.end;
  }
  return text;
}

export function printSection(task: Task, kept: Kept): readonly string[] {
  const json = taskToJson(task);
  if (json["created_at"] === ZERO_TIME) delete json["created_at"];
  const fields = [...KINDS].flatMap(([name, kind]) => printField(name, kind, json[name]));
  const parts = [
    [`## ${lineOf(task.subject)}`.trimEnd()],
    kept.text.heading ?? [],
    [...fields, ...kept.fields],
    kept.text.fields ?? [],
    ...BLOCK_NAMES.flatMap((name) => [
      json[name] === undefined || json[name] === "" ? [] : [BLOCKS[name]],
      json[name] === undefined || json[name] === "" ? [] : quoteOf(String(json[name])),
      kept.text[name] ?? [],
    ]),
  ];
  return parts
    .filter((part) => part.length > 0)
    .flatMap((part, index) => (index === 0 ? part : ["", ...part]));
}

/** Everything that is kept, in order. Blank lines are left out, because where a part goes two places become one. */
export function linesKept({ fields, text }: Kept): readonly string[] {
  const places: readonly Place[] = ["heading", "fields", ...BLOCK_NAMES];
  const lines = places.flatMap((place) => text[place] ?? []);
  return [...fields, ...lines.filter((line) => line.trim() !== "")];
}

function printField(name: string, kind: FieldKind, value: unknown): readonly string[] {
  if (value === undefined) return [];
  const values = kind === "lines" || kind === "notes" ? (value as readonly unknown[]) : [value];
  return values.map(
    (one) => `- ${name}: ${lineOf(kind === "notes" ? JSON.stringify(one) : String(one))}`,
  );
}

function readField(
  values: Record<string, unknown>,
  name: string,
  value: string,
  line: number,
): void {
  const kind = KINDS.get(name);
  if (kind === "lines" || kind === "notes") {
    const one = kind === "notes" ? parsed(name, value, line) : value;
    values[name] = [...((values[name] as unknown[] | undefined) ?? []), one];
    return;
  }
  if (Object.hasOwn(values, name)) throw damaged(name, line, "It stands there twice.");
  if (kind === "count" || kind === "integer") {
    if (!/^-?\d{1,16}$/.test(value)) throw damaged(name, line, "Write a whole number.");
    values[name] = Number(value);
  } else values[name] = value;
}

/** The quotation after a heading, and where it ends. */
function quoteFrom(
  lines: readonly string[],
  start: number,
): { lines: readonly string[]; end: number } {
  let from = start;
  while (lines[from]?.trim() === "") from += 1;
  let end = from;
  while (lines[end]?.startsWith(">")) end += 1;
  return { lines: lines.slice(from, end), end: end === from ? start : end };
}

/** Blank lines around what is kept are ours to set. */
function trimmed(text: Partial<Record<Place, readonly string[]>>): Kept["text"] {
  const kept: Partial<Record<Place, readonly string[]>> = {};
  for (const [place, lines] of Object.entries(text) as [Place, readonly string[]][]) {
    const first = lines.findIndex((line) => line.trim() !== "");
    if (first < 0) continue;
    kept[place] = lines.slice(first, lines.findLastIndex((line) => line.trim() !== "") + 1);
  }
  return kept;
}

function taskAt(values: Record<string, unknown>, line: number): Task {
  try {
    return taskFromJson(values);
  } catch (error) {
    throw damaged("task", line, "Correct the field that the cause names.", error);
  }
}

function parsed(name: string, value: string, line: number): unknown {
  try {
    return JSON.parse(value);
  } catch (error) {
    throw damaged(name, line, "Write it as JSON on one line.", error);
  }
}

function damaged(what: string, line: number, hint: string, cause?: unknown): SallyportError {
  return new SallyportError("damaged_record", { what, line, hint }, cause);
}
