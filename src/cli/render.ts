const WIDEST = 60;

/** For people: a list as columns, a record as lines, a text as it is. */
export function render(value: unknown): string {
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
    .map(([name, value]) => [shown(name), shown(value)] as const);
  const width = Math.max(0, ...lines.map(([name]) => name.length));
  return lines.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n");
}

function cut(text: string): string {
  return text.length <= WIDEST ? text : `${text.slice(0, WIDEST - 1)}…`;
}

/** Control characters and marks that turn text around would let a record write over the screen (T15). */
export function shown(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    character === "\n" ? "\n" : `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
