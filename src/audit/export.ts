import type { AuditEntry } from "../model/audit-entry.ts";
import { SallyportError } from "../model/errors.ts";
import type { AuditReader, Store } from "../store/store.ts";
import { readLines, type TextSource } from "./anchor.ts";

/** Enough for data at its limit with every character escaped twice; longer lines are rejected before parsing. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
const PAGE = 500;

/**
 * One tenant's chain as JSON Lines, one entry per line, each with its line feed. Ends at the entry that was last when
 * the export began, so that it ends while others write. Throws damaged_record after the last line when entries before
 * that end are missing.
 */
export async function* exportTrail(
  reader: AuditReader,
  { pageSize = PAGE }: { readonly pageSize?: number } = {},
): AsyncGenerator<string> {
  const { seq: end } = await reader.head();
  let after = 0;
  while (after < end) {
    const entries = await reader.read({ after, limit: Math.min(pageSize, end - after) });
    for (const entry of entries) yield `${exportLine(entry)}\n`;
    const last = entries.at(-1)?.seq ?? 0;
    if (!(last > after)) {
      const hint = "Entries are missing at the end. Run audit verify and compare with a backup.";
      throw new SallyportError("damaged_record", { tenant: reader.tenant, after, head: end, hint });
    }
    after = last;
  }
}

/** The chains of all tenants, one after the other. */
export async function* exportStore(
  store: Pick<Store, "heads" | "tenant">,
  options: { readonly pageSize?: number } = {},
): AsyncGenerator<string> {
  for (const { tenant } of await store.heads()) {
    yield* exportTrail(store.tenant(tenant).audit, options);
  }
}

/**
 * An entry in RFC 8785 form: every field, and the version of the format. Without `data`, `salt` and `hash` it is
 * exactly the text whose SHA-256 is `hash`, so that a line can be verified with three standard tools. No field can
 * break its line, because JSON escapes control characters and quotes.
 */
export function exportLine(entry: AuditEntry): string {
  const text = JSON.stringify;
  return (
    `{"actor":${text(entry.actor)},"at":${text(entry.at)},"data":${text(entry.data)},` +
    `"dataHash":${text(entry.dataHash)},"hash":${text(entry.hash)},"prev":${text(entry.prev)},` +
    `"salt":${text(entry.salt)},"seq":${text(entry.seq)},"session":${text(entry.session)},` +
    `"subject":${text(entry.subject)},"tenant":${text(entry.tenant)},"type":${text(entry.type)},"v":1}`
  );
}

/** The entries of an export, in constant memory. Throws like `parseExportLine`. */
export async function* readExport(source: TextSource): AsyncGenerator<AuditEntry> {
  for await (const { number, text } of readLines(source, MAX_LINE_BYTES)) {
    if (text === undefined) throw unreadable(number, "it is too long or not UTF-8");
    yield parseExportLine(text, number);
  }
}

/**
 * Parses exactly the output of `exportLine`. The line is serialised again and must be equal: that rejects duplicate
 * keys, other spellings, other orders and spaces, and takes a third of the time of the strict parser. Throws
 * damaged_record with the line number.
 */
export function parseExportLine(line: string, number = 1): AuditEntry {
  if (line.length > MAX_LINE_BYTES) throw unreadable(number, "it is too long");
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    // The parser's message repeats the text, which is untrusted.
    throw unreadable(number, "it is not JSON");
  }
  if (!isEntry(value)) throw unreadable(number, "it is not an audit entry");
  if (exportLine(value) !== line) {
    throw unreadable(number, "it was not written by an export, or was changed since");
  }
  const { tenant, seq, at, type, subject, session, actor, data, salt, dataHash, prev, hash } =
    value;
  return { tenant, seq, at, type, subject, session, actor, data, salt, dataHash, prev, hash };
}

/** Unrolled, because it runs for every line: a loop over the names takes three times as long. */
function isEntry(value: unknown): value is AuditEntry {
  if (typeof value !== "object" || value === null) return false;
  const entry = value as Record<keyof AuditEntry, unknown>;
  return (
    isText(entry.tenant) &&
    isText(entry.type) &&
    isText(entry.subject) &&
    isText(entry.session) &&
    isText(entry.actor) &&
    (entry.data === null || isText(entry.data)) &&
    (entry.salt === null || isText(entry.salt)) &&
    isHash(entry.dataHash) &&
    isHash(entry.prev) &&
    isHash(entry.hash) &&
    Number.isSafeInteger(entry.seq) &&
    (entry.seq as number) > 0 &&
    typeof entry.at === "string" &&
    INSTANT.test(entry.at)
  );
}

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const HASH = /^[0-9a-f]{64}$/;

/** A lone surrogate would make two different texts hash alike. */
function isText(value: unknown): boolean {
  return typeof value === "string" && value.isWellFormed();
}

function isHash(value: unknown): boolean {
  return typeof value === "string" && HASH.test(value);
}

function unreadable(line: number, what: string): SallyportError {
  const hint = `Line ${line} cannot be read: ${what}. Export again; if it stays, the trail was changed.`;
  return new SallyportError("damaged_record", { line, hint });
}
