import { isDeepStrictEqual } from "node:util";
import { SallyportError } from "../model/errors.ts";
import {
  TASK_FIELDS,
  type Task,
  type TaskFieldKind,
  type TaskId,
  taskFromJson,
  taskToJson,
  ZERO_TIME,
} from "../model/task.ts";
import { invariant } from "../util/error-text.ts";

/**
 * A file of tasks, as described in `docs/reference/tasks-markdown.md`: sections, each a task, and other text around them. It is
 * split into pieces that join to the same bytes; a swap prints one piece again and leaves all others unchanged.
 */
export interface TaskFile {
  readonly pieces: readonly Piece[];
  readonly tasks: ReadonlyMap<TaskId, Task>;
  /** Its line ending. */
  readonly end: string;
}

interface Piece {
  readonly text: string;
  /** Undefined for other text. */
  readonly section?: { readonly task: Task; readonly kept: Kept };
}

const NEW_FILE =
  "# Tasks\n\nKept by Sallyport. You may edit it: see docs/reference/tasks-markdown.md.\n";
const BYTE_ORDER_MARK = "\ufeff";

/** Throws damaged_record, with the line, for an invalid task section. */
export function parseTaskFile(text: string): TaskFile {
  const mark = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : "";
  const lines = linesOf(text.slice(mark.length));
  const pieces: Piece[] = [];
  const tasks = new Map<TaskId, Task>();
  let free = mark;
  const endFreeText = () => {
    if (free !== "") pieces.push({ text: free });
    free = "";
  };
  for (let at = 0; at < lines.length; ) {
    const end = endOfSection(lines, at);
    const own = lines.slice(at, end);
    if (isTask(own)) {
      endFreeText();
      const section = readSection(own.map(withoutEnd), at + 1);
      if (tasks.has(section.task.id)) throw twice(section.task.id, at + 1);
      tasks.set(section.task.id, section.task);
      pieces.push({ text: own.join(""), section });
    } else free += own.join("");
    at = end;
  }
  endFreeText();
  return { pieces, tasks, end: lines[0]?.endsWith("\r\n") ? "\r\n" : "\n" };
}

export function printTaskFile({ pieces }: TaskFile): string {
  return pieces.map(({ text }) => text).join("");
}

/** The file with this task in place of the one with the same id, or at the end. */
export function putTask(file: TaskFile, task: Task): TaskFile {
  const tasks = new Map(file.tasks).set(task.id, task);
  const at = file.pieces.findIndex(({ section }) => section?.task.id === task.id);
  const { text = "", section } = file.pieces[at] ?? {};
  const kept = section?.kept ?? NOTHING_KEPT;
  const printed = printSection(task, kept).join(file.end) + endsOf(text, file.end);
  checkPrinted(printed, task, kept);
  const piece = { text: printed, section: { task, kept } };
  if (at >= 0) return { ...file, tasks, pieces: file.pieces.with(at, piece) };
  const start = file.pieces.length === 0 ? [{ text: NEW_FILE }] : file.pieces;
  const gap = { text: gapAfter(start.at(-1)?.text ?? "", file.end) };
  return { ...file, tasks, pieces: [...start, gap, piece] };
}

/** Every line with its ending, LF or CRLF. */
function linesOf(text: string): readonly string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function withoutEnd(line: string): string {
  return line.replace(/\r?\n$/, "");
}

/** The end of the section of this line: the next heading of the first or second level. */
function endOfSection(lines: readonly string[], start: number): number {
  let at = start + 1;
  while (at < lines.length && !/^#{1,2}(?:\s|$)/.test(lines[at] ?? "")) at += 1;
  return at;
}

/**
 * A task is a section of the second level with a field `id`. Code fences and comments around it are ignored: an open fence
 * must not hide tasks.
 */
function isTask(lines: readonly string[]): boolean {
  return /^##(?:\s|$)/.test(lines[0] ?? "") && lines.some((line) => line.startsWith(ID_FIELD));
}

/** The line endings after the last line of a text. */
function endsOf(text: string, end: string): string {
  return text.slice(text.trimEnd().length).replaceAll(/[^\r\n]/g, "") || end;
}

function gapAfter(text: string, end: string): string {
  if (/\n\r?\n$/.test(text)) return "";
  return text.endsWith("\n") ? end : end + end;
}

/** Checked before it is written: the printed text parses to the same task and nothing else. */
function checkPrinted(printed: string, task: Task, kept: Kept): void {
  const lines = linesOf(printed);
  const isOne = isTask(lines) && endOfSection(lines, 0) === lines.length;
  invariant(isOne, `the text of task ${task.id} is not one section`);
  const read = readSection(lines.map(withoutEnd), 1);
  invariant(isDeepStrictEqual(read.task, task), `task ${task.id} would not be read back as it is`);
  const same = isDeepStrictEqual(linesKept(read.kept), linesKept(kept));
  invariant(same, `text beside task ${task.id} would change`);
}

function twice(id: TaskId, line: number): SallyportError {
  const hint = "Two sections have the same id. Give one of them another.";
  return new SallyportError("damaged_record", { id, line, hint });
}

/** Other content of a section: fields with other names, and text, each after the part it followed. */
interface Kept {
  readonly fields: readonly string[];
  readonly text: Readonly<Partial<Record<Place, readonly string[]>>>;
}

const NOTHING_KEPT: Kept = { fields: [], text: {} };

/** The parts of a section in their order: the list of fields, then the long texts under headings of their own. */
const BLOCKS = {
  description: "### Description",
  result: "### Result",
  fail_reason: "### Failure reason",
} as const;
type Block = keyof typeof BLOCKS;
type Place = "heading" | "fields" | Block;
const BLOCK_NAMES = Object.keys(BLOCKS) as readonly Block[];

const ID_FIELD = "- id:";
const FIELD = /^- ([a-z][a-z0-9_]*):(?:\s+(.*))?$/;
const KINDS = new Map<string, TaskFieldKind>(
  Object.values(TASK_FIELDS)
    .filter(({ json, kind }) => kind !== "prose" && json !== "subject")
    .map(({ json, kind }) => [json, kind]),
);

/**
 * The lines of a section, which begins with its heading and has a field `id`. The list of fields is the one with that field.
 * `line` is the number of the heading, for messages.
 */
function readSection(lines: readonly string[], line: number): { task: Task; kept: Kept } {
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

/** The part after the fields: the long texts go into `values`, the rest is returned by place. */
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
    if (Object.hasOwn(values, block)) throw damaged(block, line + at, "It is there twice.");
    const quote = quoteFrom(lines, at + 1);
    values[block] = textOfQuote(quote.lines);
    place = block;
    at = quote.end;
  }
  return text;
}

function printSection(task: Task, kept: Kept): readonly string[] {
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

/** All kept lines, in order, without blank ones: when a part is removed, two places become one. */
function linesKept({ fields, text }: Kept): readonly string[] {
  const places: readonly Place[] = ["heading", "fields", ...BLOCK_NAMES];
  const lines = places.flatMap((place) => text[place] ?? []);
  return [...fields, ...lines.filter((line) => line.trim() !== "")];
}

function printField(name: string, kind: TaskFieldKind, value: unknown): readonly string[] {
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
  if (Object.hasOwn(values, name)) throw damaged(name, line, "It is there twice.");
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

/** Without blank lines around the kept text, which the printer adds. */
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

/**
 * How texts are written in the Markdown file. The only escape is `\uXXXX`. It is used for what an editor, git or a screen
 * would change or hide: other line endings, control characters, white space at an end, bidirectional marks, lone surrogates,
 * and a backslash that would otherwise begin such an escape.
 */

const HIDDEN =
  /(?!\t)\p{Cc}|\p{Cs}|[\u2028\u2029\u202a-\u202e\u2066-\u2069]|\\(?=u[0-9a-fA-F]{4})/gu;
const ESCAPE = /\\u([0-9a-fA-F]{4})/g;

/** One line, for a heading or the value of a field. */
function lineOf(text: string): string {
  return text.replace(HIDDEN, escaped).replace(/^\s|\s$/gu, escaped);
}

/** Several lines as a quotation: no line of a text begins a line of the file. */
function quoteOf(text: string): readonly string[] {
  return text.split("\n").map((line) => {
    const safe = line.replace(HIDDEN, escaped).replace(/\s$/u, escaped);
    return safe === "" ? ">" : `> ${safe}`;
  });
}

function textOfLine(line: string): string {
  return unescaped(line.trim());
}

/** Lines that begin with `>`. */
function textOfQuote(lines: readonly string[]): string {
  return lines.map((line) => unescaped(line.replace(/^> ?/, ""))).join("\n");
}

function unescaped(text: string): string {
  return text.replace(ESCAPE, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
