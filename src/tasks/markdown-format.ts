import { isDeepStrictEqual } from "node:util";
import { SallyportError } from "../model/errors.ts";
import type { Task, TaskId } from "../model/task.ts";
import { invariant } from "../util/invariant.ts";
import {
  ID_FIELD,
  type Kept,
  linesKept,
  NOTHING_KEPT,
  printSection,
  readSection,
} from "./markdown-section.ts";

/**
 * A file of tasks, as `docs/reference/tasks-markdown.md` describes it: sections, each a task, and around them whatever
 * people write. It is cut into pieces that joined again are the file, byte for byte; a swap prints one piece anew and
 * leaves all others alone.
 */
export interface TaskFile {
  readonly pieces: readonly Piece[];
  readonly tasks: ReadonlyMap<TaskId, Task>;
  /** How its lines end. */
  readonly end: string;
}

interface Piece {
  readonly text: string;
  /** Undefined for text that is no task. */
  readonly section?: { readonly task: Task; readonly kept: Kept };
}

const NEW_FILE =
  "# Tasks\n\nKept by Sallyport. You may edit it: see docs/reference/tasks-markdown.md.\n";
const BYTE_ORDER_MARK = "\ufeff";

/** Throws damaged_record, with the line, for a section that is a task and does not make sense. */
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

/** The file with this task instead of the one of the same id, or with it at the end. */
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

/** Every line with its end, which is a line feed with or without a carriage return before it. */
function linesOf(text: string): readonly string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function withoutEnd(line: string): string {
  return line.replace(/\r?\n$/, "");
}

/** Where the section ends that this line begins or is in: at the next heading of the first or second level. */
function endOfSection(lines: readonly string[], start: number): number {
  let at = start + 1;
  while (at < lines.length && !/^#{1,2}(?:\s|$)/.test(lines[at] ?? "")) at += 1;
  return at;
}

/**
 * A task is a section of the second level with a field `id` in it. Nothing around it matters, neither fences nor
 * comments: an open fence must not make tasks vanish.
 */
function isTask(lines: readonly string[]): boolean {
  return /^##(?:\s|$)/.test(lines[0] ?? "") && lines.some((line) => line.startsWith(ID_FIELD));
}

/** The line ends after the last line of a text, which people may have made one or many. */
function endsOf(text: string, end: string): string {
  return text.slice(text.trimEnd().length).replaceAll(/[^\r\n]/g, "") || end;
}

function gapAfter(text: string, end: string): string {
  if (/\n\r?\n$/.test(text)) return "";
  return text.endsWith("\n") ? end : end + end;
}

/** Checked before it is written: what we print is read back as the same task and nothing beside it. */
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
