import { z } from "zod";
import type { AnswerOf, Client } from "../client/index.ts";
import { decisionInFull } from "../http/routes/decisions.ts";
import { interaction, pageOf, preview as wirePreview } from "../http/wire.ts";
import { SallyportError } from "../model/errors.ts";
import { type Preview, previewHash } from "../model/interaction.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { systemClock } from "../util/clock.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonValue } from "../util/json.ts";
import { piecesOf } from "../util/visible-text.ts";

/** Prints one answer: JSON for scripts, text for people. */
export function print(
  value: unknown,
  { json }: { readonly json?: boolean },
  inWords: unknown = value,
): void {
  process.stdout.write(`${json === true ? safeJson(value) : render(inWords)}\n`);
}

/** JSON in which control and invisible characters are escaped. */
export function safeJson(value: unknown): string {
  return (JSON.stringify(value) ?? "null").replace(
    /[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu,
    (sign) =>
      Array.from(
        { length: sign.length },
        (_, at) => `\\u${sign.charCodeAt(at).toString(16).padStart(4, "0")}`,
      ).join(""),
  );
}

/** A progress line, on standard error so that it never mixes with the answer. */
export function progress(text: string): void {
  process.stderr.write(process.stderr.isTTY ? `\r${text.padEnd(70)}` : `${text}\n`);
}

export function progressEnd(): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${" ".repeat(70)}\r`);
}

/** Exit codes for scripts. `docs/reference/cli.md` lists the same rows. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  refused: 3,
  unreachable: 4,
  unanchored: 5,
  tampered: 6,
} as const;

export const EXIT_WORDS: Readonly<Record<keyof typeof EXIT, string>> = {
  done: "Success.",
  failed: "Failed: an internal error, an unusable store, or a failed check of `doctor`.",
  usage: "Wrong usage: an unknown command or flag.",
  refused: "Refused by the server or the command.",
  unreachable: "No server or store answers.",
  unanchored:
    "`audit verify`: the chain is intact, but no recent anchor covers its end, so missing entries there cannot be detected.",
  tampered:
    "`audit verify`, `store check`: entries or records were changed, deleted or rolled back.",
};

const WIDEST = 60;

/** Text for people: a list as columns, a record as lines, a plain text as it is. */
export function render(value: unknown): string {
  if (typeof value === "string") return visible(value);
  if (typeof value !== "object" || value === null) return printable(value);
  const items = itemsOf(value);
  if (items === undefined) return renderRecord(value as Record<string, unknown>);
  if (items.length === 0) return "Nothing here.";
  if (!items.every(isRecord)) return items.map((item) => printable(item)).join("\n");
  return table(items);
}

function itemsOf(value: object): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value;
  const { items } = value as { items?: unknown };
  return Array.isArray(items) ? items : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Columns of the first record with a short value in any record; `get` shows the rest. */
function table(items: readonly Record<string, unknown>[]): string {
  const names = Object.keys(items[0] ?? {}).filter((name) =>
    items.some((item) => isShort(item[name])),
  );
  const rows = [
    names.map(printable),
    ...items.map((item) => names.map((name) => cut(printable(item[name])))),
  ];
  const widths = names.map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** The end of an id, because the beginning is the time and alike for neighbours. */
export function shortId(id: string): string {
  return id.slice(-8);
}

/** Columns of the inbox and the cells of each. With the gaps between them they fit 100 columns. */
const INBOX = { "#": 3, id: 8, tool: 18, summary: 29, agent: 16, age: 5, due: 7 } as const;

/**
 * What waits for a person, one line each: what would happen, who asks, since when and until when. `isWhole`: from the first
 * question and without filters, so that `approve` finds the same one under its number.
 */
export function inboxTable(
  answer: unknown,
  { isWhole, now = systemClock.now() }: { readonly isWhole: boolean; readonly now?: number },
): string {
  const { items, next } = parsed(pageOf(interaction), answer);
  if (items.length === 0) return "Nothing waits for a person.";
  const rows = items.map((item, index) => ({
    "#": isWhole ? String(index + 1) : "",
    id: shortId(item.id),
    tool: item.pendingTool?.tool_name ?? item.type,
    summary: item.pendingTool?.summary || item.displayText,
    agent: item.chain[0] ?? "",
    age: inWords(now - Date.parse(item.createdAt)),
    due: item.deadline === "" ? "" : dueIn(Date.parse(item.deadline) - now),
  }));
  const names = Object.keys(INBOX) as (keyof typeof INBOX)[];
  const line = (cells: Readonly<Record<keyof typeof INBOX, string>>) =>
    names
      .map((name) => fitted(printable(cells[name]), INBOX[name]))
      .join("  ")
      .trimEnd();
  const head = Object.fromEntries(names.map((name) => [name, name]));
  const more = next === null ? [] : [`There are more: --cursor ${printable(next)}`];
  return [line(head as (typeof rows)[number]), ...rows.map(line), ...more].join("\n");
}

function dueIn(ms: number): string {
  return ms <= 0 ? "overdue" : inWords(ms);
}

function inWords(ms: number): string {
  const minutes = Math.max(0, Math.floor(ms / 60_000));
  if (minutes < 60) return `${minutes}m`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)}h`;
  return `${Math.floor(minutes / (24 * 60))}d`;
}

/** Exactly this many cells: cut with a mark, or filled. Signs beyond ASCII may be two cells wide. */
function fitted(text: string, cells: number): string {
  const sizeOf = (sign: string) => (sign <= "\x7f" ? 1 : 2);
  const signs = [...text];
  const size = signs.reduce((sum, sign) => sum + sizeOf(sign), 0);
  if (size <= cells) return text + " ".repeat(cells - size);
  let kept = "";
  let used = 0;
  for (const sign of signs) {
    if (used + sizeOf(sign) > cells - 2) break;
    kept += sign;
    used += sizeOf(sign);
  }
  return `${kept}…${" ".repeat(cells - used - 2)}`;
}

function isShort(value: unknown): boolean {
  return value !== "" && value !== null && value !== undefined && typeof value !== "object";
}

function renderRecord(record: Record<string, unknown>): string {
  // Names may be untrusted too, so they are escaped like values.
  const lines = Object.entries(record)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [printable(name), quoted(value)] as const);
  const width = Math.max(0, ...lines.map(([name]) => name.length));
  return lines.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n");
}

function cut(text: string): string {
  return text.length <= WIDEST ? text : `${text.slice(0, WIDEST - 1)}…`;
}

/** Untrusted text on one line: it cannot move the cursor, hide, reorder or imitate characters (T13, T15). */
export function printable(value: unknown): string {
  return marked(textOf(value), "\\n");
}

/** Prefix of every line of untrusted text after its first, which the text itself cannot avoid. */
const CONTINUED = "  | ";

/**
 * Untrusted text with its own line breaks. The terminal's wrapping must not start a line with untrusted text
 * either, so long lines are broken here when the width is known.
 */
function quoted(value: unknown, width = process.stdout.columns ?? 0): string {
  const lines = marked(textOf(value), "\n").split("\n");
  return lines.flatMap((line) => wrapped(line, width)).join(`\n${CONTINUED}`);
}

/** JSON text: each string is marked separately, so that one string cannot change how another is judged. */
function quotedJson(json: string, width = process.stdout.columns ?? 0): string {
  // In valid JSON quotes are paired, so one pass is enough.
  const parts = isJson(json) ? json.split(/("(?:[^"\\]|\\.)*")/) : [json];
  return wrapped(parts.map((part) => marked(part, "\\n")).join(""), width).join(`\n${CONTINUED}`);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Sallyport's own text, which may quote untrusted text: line breaks stay. */
export function visible(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function marked(text: string, newline: string): string {
  return piecesOf(text)
    .map((piece) => {
      if (piece.kind === "text") return piece.raw;
      if (piece.kind === "newline") return newline;
      if (piece.kind === "gap") return `[${piece.label}]`;
      if (piece.kind === "code") return codeOf(piece.raw);
      return piece.label.startsWith("U+")
        ? piece.raw + codeOf(piece.raw)
        : `${piece.raw}[${piece.label}]`;
    })
    .join("");
}

function codeOf(sign: string): string {
  return `\\u{${(sign.codePointAt(0) ?? 0).toString(16)}}`;
}

/** Space for the label before the first line and the prefix before the others. */
const MARGIN = 24;

function wrapped(line: string, width: number): readonly string[] {
  const most = width - MARGIN;
  if (most < MARGIN || line.length <= most / 2) return [line];
  const lines: string[] = [];
  let current = "";
  let cells = 0;
  for (const sign of line) {
    // Letters beyond ASCII may be two cells wide.
    const size = sign <= "\x7f" ? 1 : 2;
    if (cells + size > most) {
      lines.push(current);
      current = "";
      cells = 0;
    }
    current += sign;
    cells += size;
  }
  return [...lines, current];
}

export type Item = AnswerOf<"interactions.get">;
type Decision = AnswerOf<"decisions.get">;
type WirePreview = NonNullable<AnswerOf<"interactions.shown">["preview"]>;

export interface Described {
  readonly text: string;
  /** Why this cannot be approved here; empty when what is printed is what would run. */
  readonly whyNot: string;
}

/** Limit for a server whose pages never end. */
const MOST_PAGES = 100;

/** Everything that waits for a person, page by page. Throws internal_error when the answer is not an inbox. */
export async function readInbox(client: Client): Promise<readonly Item[]> {
  const all: Item[] = [];
  let at: { readonly cursor?: string } = {};
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const query = { limit: 100, ...at };
    const { items, next } = parsed(pageOf(interaction), await client.interactions.list(query));
    all.push(...items);
    if (next === null || next === at.cursor) break;
    at = { cursor: next };
  }
  return all;
}

/** The full question: lists truncate long fields. Throws internal_error like `readInbox`. */
export async function readItem(client: Client, id: string): Promise<Item> {
  return parsed(interaction, await client.interactions.get({ id }));
}

/** The server may be a proxy, another version or an impostor: an answer of another shape is not printed. */
function parsed<Value>(schema: z.ZodType<Value>, answer: unknown): Value {
  const result = schema.safeParse(answer);
  if (result.success) return result.data;
  const hint =
    "The server's answer does not have the shape that this version of sallyport expects.";
  throw new SallyportError("internal_error", { hint });
}

/** More lines would push the facts off the screen; longer questions are read in the console. */
const MOST_LINES = 200;

/** One question for a terminal: what would run, where, its dry run, and who asks. */
export async function describeItem(client: Client, item: Item): Promise<Described> {
  const lines = [quoted(item.displayText)];
  let whyNot = "";
  if (item.type === "confirm") {
    const facts = await confirmFacts(client, item);
    lines.push(...facts.lines);
    whyNot = facts.whyNot;
  } else if (item.pendingTool !== undefined) {
    const { summary, args_json } = item.pendingTool;
    lines.push(`  ${quoted(summary)}`, `  input: ${quotedJson(args_json)}`);
  }
  for (const { by, text } of item.remarks)
    lines.push(`  remark by ${printable(by)}: ${quoted(text)}`);
  lines.push(
    `  asked by ${item.chain.map(printable).join(" < ")}, until ${printable(item.deadline)}`,
  );
  return { text: lines.join("\n"), whyNot };
}

const shownAnswer = z.object({ preview: wirePreview.nullable() });

interface Facts {
  readonly lines: readonly string[];
  readonly whyNot: string;
}

async function confirmFacts(client: Client, item: Item): Promise<Facts> {
  let decision: Decision;
  let preview: WirePreview | null;
  try {
    decision = parsed(decisionInFull, await client.decisions.get({ id: item.decisionId }));
    preview = parsed(shownAnswer, await client.interactions.shown({ id: item.id })).preview;
  } catch (error) {
    const whyNot = `What would run could not be read: ${printable(errorText(error))}`;
    return { lines: [`  ${whyNot}`], whyNot };
  }
  if (preview === null) {
    const whyNot = "There is no preview of what would run.";
    return { lines: [`  ${whyNot}`], whyNot };
  }
  const lines = decision.calls === null ? rawLines(decision) : callLines(decision, preview);
  const count = lines.join("\n").split("\n").length;
  if (count > MOST_LINES) {
    const whyNot = `It has ${count} lines; only the first ${MOST_LINES} are here. Read it in the console.`;
    const head = lines.join("\n").split("\n").slice(0, MOST_LINES);
    return { lines: [...head, `  … ${whyNot}`], whyNot };
  }
  if (!isBound(item.hash, decision, preview)) {
    const whyNot =
      "What is printed here is not what an approval would be bound to. Tell your operator.";
    return { lines: [...lines, `  ${whyNot}`], whyNot };
  }
  return { lines: [...lines, `  class: ${printable(preview.safetyClass)}`], whyNot: "" };
}

function callLines({ calls, targets }: Decision, { dryRun }: WirePreview): readonly string[] {
  const runs = Array.isArray(dryRun) ? dryRun : [];
  return (calls ?? []).flatMap(({ tool, input, workingDirectory }, index) => [
    `  tool: ${printable(tool)}`,
    `  input: ${quotedJson(JSON.stringify(input))}`,
    ...runLines(runs[index]),
    `  folder: ${workingDirectory === "" ? "(none)" : printable(workingDirectory)}`,
    ...targetLines(targets[index]),
  ]);
}

function targetLines(targets: Decision["targets"][number] | undefined): readonly string[] {
  if (targets == null) return ["  target: (the tool does not say)"];
  return targets.map(({ kind, target, access, reason }) => {
    const how = [
      access === undefined ? "" : `${access}s`,
      kind === "unresolved" ? "NOT RESOLVED" : "",
    ];
    const why = reason === undefined ? "" : `, ${printable(reason)}`;
    return `  target: ${printable(target)} (${[kind, ...how].filter((word) => word !== "").join(", ")}${why})`;
  });
}

/** The tool's dry run: its summary, and its preview or diff marked as untrusted text. */
function runLines(run: JsonValue | undefined): readonly string[] {
  const look = typeof run === "object" && run !== null && !Array.isArray(run) ? run : {};
  if (run === undefined || "unavailable" in look) {
    return [`  dry run: CANNOT BE INSPECTED ${printable(look["unavailable"] ?? "")}`.trimEnd()];
  }
  const { summary, preview, impact } = look;
  return [
    `  dry run: ${quoted(summary ?? "")}`,
    ...(preview === undefined || preview === summary || preview === ""
      ? []
      : [`  preview: ${quoted(preview)}`]),
    ...(impact === undefined || JSON.stringify(impact) === "{}"
      ? []
      : [`  impact: ${quotedJson(JSON.stringify(impact))}`]),
  ];
}

function rawLines({ sourceTool, raw }: Decision): readonly string[] {
  const about = `  payload of ${printable(sourceTool)}, ${raw?.bytes ?? 0} bytes:`;
  if (raw?.text == null) return [`${about} CANNOT BE INSPECTED, it is no text`];
  return [`${about} ${quoted(raw.text)}`];
}

/** Computed from what is printed, so that an approval cannot apply to anything else. */
function isBound(hash: string, { calls, raw }: Decision, preview: WirePreview): boolean {
  if (previewHash(preview as unknown as Preview) !== hash) return false;
  const action =
    calls === null
      ? Buffer.from(raw?.base64 ?? "", "base64")
      : canonicalJson({ v: 1, calls: calls as unknown as JsonValue });
  return sha256Hex(action) === preview.actionHash;
}
