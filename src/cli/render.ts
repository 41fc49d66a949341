import { piecesOf } from "../util/visible-text.ts";

const WIDEST = 60;

/** For people: a list as columns, a record as lines, a text of our own as it is. */
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

/** The columns of the first record that hold something short in any record; the rest is one `get` away. */
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
  // Names are shown like values: they too may come from elsewhere.
  const lines = Object.entries(record)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [shown(name), quoted(value)] as const);
  const width = Math.max(0, ...lines.map(([name]) => name.length));
  return lines.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n");
}

function cut(text: string): string {
  return text.length <= WIDEST ? text : `${text.slice(0, WIDEST - 1)}…`;
}

/** Text from elsewhere on one line. Nothing in it moves the cursor, hides, reorders or passes for another letter (T13, T15). */
export function shown(value: unknown): string {
  return marked(textOf(value), "\\n");
}

/** Starts every line of foreign text after its first. The text cannot write a line that begins without it. */
const CONTINUED = "  | ";

/**
 * Text from elsewhere on as many lines as it has. The terminal's own wrapping must not start a line with foreign text
 * either, so long lines are broken here when the width is known.
 */
export function quoted(value: unknown, width = process.stdout.columns ?? 0): string {
  const lines = marked(textOf(value), "\n").split("\n");
  return lines.flatMap((line) => wrapped(line, width)).join(`\n${CONTINUED}`);
}

/** A JSON text: each string in it is marked by itself, so that one long text cannot change what is ordinary for another. */
export function quotedJson(json: string, width = process.stdout.columns ?? 0): string {
  // Only in valid JSON does every quote have its partner, so that this takes one pass.
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

/** Our own words, which may quote something: line breaks stay. */
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

/** Room for what stands before the first line and for the mark before the others. */
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
