import { z } from "zod";
import type { AnswerOf, Client } from "../client/index.ts";
import { decisionInFull } from "../http/routes/decisions.ts";
import { pageOf } from "../http/wire/common.ts";
import { interaction, preview as wirePreview } from "../http/wire/interaction.ts";
import { SallyportError } from "../model/errors.ts";
import { type Preview, previewHash } from "../model/interaction.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonValue } from "../util/json.ts";
import { piecesOf } from "../util/visible-text.ts";

const WIDEST = 60;

/** Text for people: a list as columns, a record as lines, a plain text as it is. */
export function render(value: unknown): string {
  if (typeof value === "string") return visible(value);
  if (typeof value !== "object" || value === null) return shown(value);
  const items = itemsOf(value);
  if (items === undefined) return renderRecord(value as Record<string, unknown>);
  if (items.length === 0) return "Nothing here.";
  if (!items.every(isRecord)) return items.map((item) => shown(item)).join("\n");
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
    names.map(shown),
    ...items.map((item) => names.map((name) => cut(shown(item[name])))),
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

function isShort(value: unknown): boolean {
  return value !== "" && value !== null && value !== undefined && typeof value !== "object";
}

function renderRecord(record: Record<string, unknown>): string {
  // Names may be untrusted too, so they are escaped like values.
  const lines = Object.entries(record)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [shown(name), quoted(value)] as const);
  const width = Math.max(0, ...lines.map(([name]) => name.length));
  return lines.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n");
}

function cut(text: string): string {
  return text.length <= WIDEST ? text : `${text.slice(0, WIDEST - 1)}…`;
}

/** Untrusted text on one line: it cannot move the cursor, hide, reorder or imitate characters (T13, T15). */
export function shown(value: unknown): string {
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
  return text.split("\n").map(shown).join("\n");
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
  for (const { by, text } of item.remarks) lines.push(`  remark by ${shown(by)}: ${quoted(text)}`);
  lines.push(`  asked by ${item.chain.map(shown).join(" < ")}, until ${shown(item.deadline)}`);
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
    const whyNot = `What would run could not be read: ${shown(errorText(error))}`;
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
  return { lines: [...lines, `  class: ${shown(preview.safetyClass)}`], whyNot: "" };
}

function callLines({ calls, targets }: Decision, { dryRun }: WirePreview): readonly string[] {
  const runs = Array.isArray(dryRun) ? dryRun : [];
  return (calls ?? []).flatMap(({ tool, input, workingDirectory }, index) => [
    `  tool: ${shown(tool)}`,
    `  input: ${quotedJson(JSON.stringify(input))}`,
    ...runLines(runs[index]),
    `  folder: ${workingDirectory === "" ? "(none)" : shown(workingDirectory)}`,
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
    const why = reason === undefined ? "" : `, ${shown(reason)}`;
    return `  target: ${shown(target)} (${[kind, ...how].filter((word) => word !== "").join(", ")}${why})`;
  });
}

/** The tool's dry run: its summary, and its preview or diff marked as untrusted text. */
function runLines(run: JsonValue | undefined): readonly string[] {
  const look = typeof run === "object" && run !== null && !Array.isArray(run) ? run : {};
  if (run === undefined || "unavailable" in look) {
    return [`  dry run: CANNOT BE INSPECTED ${shown(look["unavailable"] ?? "")}`.trimEnd()];
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
  const about = `  payload of ${shown(sourceTool)}, ${raw?.bytes ?? 0} bytes:`;
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
