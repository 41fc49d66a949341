import type { AuditEntry } from "../model/audit-entry.ts";
import { SallyportError } from "../model/errors.ts";
import type { AuditReader, Store } from "../store/store.ts";
import type { JsonObject } from "../util/json.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import { readLines, type TextSource } from "./anchor.ts";

export interface FollowOptions {
  /** The number of the last entry that the reader has; 0 for all. */
  readonly after: number;
  readonly signal: AbortSignal;
  /**
   * A store's `onCommit`. Shape: push, of hints only. Without it, or when a hint is lost, new entries are found by
   * polling.
   */
  readonly onCommit?: (listener: () => void) => () => void;
  readonly pollMs?: number;
  readonly pageSize?: number;
  readonly timers?: Timers;
}

const FALSE_ALARM_MS = 10;

/**
 * A tenant's entries after a number, then new ones as they are committed: in order, each exactly once. A reader that
 * was disconnected resumes with the number of its last entry. Ends when the signal is aborted. It reads the next page
 * only when the last one is consumed, so a slow reader costs no memory. Throws damaged_record when an entry is missing
 * or does not follow the one before, invalid_input when `after` is beyond the end of the chain. Shape: pulled.
 */
export async function* followTrail(
  reader: AuditReader,
  options: FollowOptions,
): AsyncGenerator<AuditEntry> {
  const { signal, onCommit, pollMs = 250, pageSize = 500, timers = systemTimers } = options;
  let after = options.after;
  let hash: string | undefined;
  const bell = createBell(timers, signal);
  const stopListening = onCommit?.(bell.ring);
  try {
    await checkStart(reader, after);
    while (!signal.aborted) {
      const isHinted = bell.mute();
      const entries = await reader.read({ after, limit: pageSize });
      for (const entry of entries) {
        if (signal.aborted) return;
        checkNext(entry, reader.tenant, after, hash);
        after = entry.seq;
        hash = entry.hash;
        yield entry;
      }
      // A page that is not empty may be followed by more entries.
      if (entries.length > 0) continue;
      // The commit was another tenant's. A busy neighbour must not cause thousands of reads per second.
      if (isHinted) await pause(Math.min(pollMs, FALSE_ALARM_MS), timers, signal);
      await bell.wait(pollMs);
    }
  } finally {
    stopListening?.();
  }
}

/** After a restored backup a reader can be ahead of the chain; waiting there would skip numbers that are used again. */
async function checkStart(reader: AuditReader, after: number): Promise<void> {
  const isNumber = Number.isSafeInteger(after) && after >= 0;
  const head = isNumber && after > 0 ? (await reader.head()).seq : 0;
  if (isNumber && after <= head) return;
  const hint =
    "Start from 0 or from the number of an entry of this trail; if it was there before, a backup was restored.";
  throw new SallyportError("invalid_input", { what: "after", after, head, hint });
}

function checkNext(
  entry: AuditEntry,
  tenant: string,
  after: number,
  hash: string | undefined,
): void {
  const follows = hash === undefined || entry.prev === hash;
  if (entry.seq === after + 1 && entry.tenant === tenant && follows) return;
  const hint = "The trail has a hole or was changed. Run audit verify.";
  throw new SallyportError("damaged_record", { tenant, after, found: entry.seq, hint });
}

interface Bell {
  ring(): void;
  /** Returns whether it had rung. */
  mute(): boolean;
  /** Waits until it rings, unless it has rung since it was muted; at most `ms`, or until the signal is aborted. */
  wait(ms: number): Promise<void>;
}

function createBell(timers: Timers, signal: AbortSignal): Bell {
  let hasRung = false;
  let stop = new AbortController();
  return {
    ring() {
      hasRung = true;
      stop.abort();
    },
    mute() {
      const had = hasRung;
      hasRung = false;
      stop = new AbortController();
      return had;
    },
    wait: (ms) => pause(ms, timers, AbortSignal.any([signal, stop.signal])),
  };
}

/** Ends early when the signal is aborted, which is not an error here. */
async function pause(ms: number, timers: Timers, signal: AbortSignal): Promise<void> {
  await timers.sleep(ms, signal).catch(() => {});
}

/** Enough for data at its limit with every character escaped twice; longer lines are rejected before parsing. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
const EXPORT_PAGE = 500;

/**
 * One tenant's chain as JSON Lines, one entry per line, each with its line feed. Ends at the entry that was last when
 * the export began, so that it ends while others write. Throws damaged_record after the last line when entries before
 * that end are missing.
 */
export async function* exportTrail(
  reader: AuditReader,
  { pageSize = EXPORT_PAGE }: { readonly pageSize?: number } = {},
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
 * An entry in RFC 8785 form: every field, and the version of the format, which says how the fields give the hash (see
 * `entryHash`), so that a line can be verified with standard tools. No field can break its line, because JSON escapes
 * control characters and quotes.
 */
export function exportLine(entry: AuditEntry): string {
  const text = JSON.stringify;
  return (
    `{"actor":${text(entry.actor)},"at":${text(entry.at)},"data":${text(entry.data)},` +
    `"dataHash":${text(entry.dataHash)},"hash":${text(entry.hash)},"prev":${text(entry.prev)},` +
    `"salt":${text(entry.salt)},"seq":${text(entry.seq)},"session":${text(entry.session)},` +
    `"subject":${text(entry.subject)},"tenant":${text(entry.tenant)},"type":${text(entry.type)},"v":${entry.v}}`
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
  const { v, tenant, seq, at, type, subject, session, actor, data, salt, dataHash, prev, hash } =
    value;
  return { v, tenant, seq, at, type, subject, session, actor, data, salt, dataHash, prev, hash };
}

/** Unrolled, because it runs for every line: a loop over the names takes three times as long. */
function isEntry(value: unknown): value is AuditEntry {
  if (typeof value !== "object" || value === null) return false;
  const entry = value as Record<keyof AuditEntry, unknown>;
  return (
    (entry.v === 1 || entry.v === 2) &&
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

/** The subject of a line of a story, by the noun of its event. */
export const CHAPTERS = {
  session: "session",
  run: "plan",
  delegation: "plan",
  task: "task",
  gate: "gate",
  call: "gate",
  grant: "gate",
  decision: "decision",
  interaction: "interaction",
  operation: "operation",
} as const;
type Chapter = (typeof CHAPTERS)[keyof typeof CHAPTERS] | "other";

export interface StoryLine {
  readonly seq: number;
  readonly at: string;
  readonly chapter: Chapter;
  /** The event: `task.claimed`. */
  readonly type: string;
  readonly subject: string;
  readonly session: string;
  readonly actor: string;
  /** Null when it was erased. */
  readonly data: JsonObject | null;
}

const STORY_PAGE = 1_000;

/**
 * Everything that happened in a session, oldest first: its tasks, plan, gate trace, decisions, questions to people and
 * operations, and those of its sub-agents, whose sessions are named by its delegations. A task belongs to it with its
 * whole life once it was linked to it, so the chain is read twice: first to learn what belongs to the session, then to
 * produce the story. Shape: pulled; it holds a page at a time.
 */
export async function* sessionStory(
  reader: AuditReader,
  sessionId: string,
): AsyncGenerator<StoryLine> {
  const sessions = new Set([sessionId]);
  const tasks = new Set<string>();
  for await (const { type, subject, session } of entriesOf(reader)) {
    if (!sessions.has(session)) continue;
    if (type === "delegation.started") sessions.add(subject);
    if (nounOf(type) === "task") tasks.add(subject);
  }
  for await (const entry of entriesOf(reader)) {
    const isTask = nounOf(entry.type) === "task" && tasks.has(entry.subject);
    if (isTask || sessions.has(entry.session)) yield lineOf(entry);
  }
}

/** How many entries one part of the trail is searched for, in reads of so many. */
const LOOK = 500;
const MOST_LOOKS = 20;

/**
 * A part of what is picked out of the trail, after a number, at most `limit`. The trail is ordered by time only, so it is
 * searched, a bounded part at a time: a part may have few items, or none, and still have a `next`.
 */
export async function partOf<Item>(
  reader: AuditReader,
  { after, limit }: { readonly after: number; readonly limit: number },
  pick: (entry: AuditEntry) => Item | undefined,
): Promise<{ readonly items: readonly Item[]; readonly next: number | undefined }> {
  const items: Item[] = [];
  let place = after;
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const read = await reader.read({ after: place, limit: LOOK });
    for (const entry of read) {
      place = entry.seq;
      const item = pick(entry);
      if (item !== undefined) items.push(item);
      if (items.length === limit) return { items, next: place };
    }
    if (read.length < LOOK) return { items, next: undefined };
  }
  return { items, next: place };
}

/** Which entries belong to a story; the ids of its sessions and tasks, or of one decision and what it led to. */
export type StoryMembers =
  | { readonly sessions: ReadonlySet<string>; readonly tasks: ReadonlySet<string> }
  | {
      readonly session: string;
      readonly subjects: ReadonlySet<string>;
      /** The calls that the gate judged before there was a decision. */
      readonly callIds: ReadonlySet<string>;
    };

/** The line of an entry that belongs to a story. */
export function storyLine(entry: AuditEntry, members: StoryMembers): StoryLine | undefined {
  const { type, subject, session } = entry;
  if ("sessions" in members) {
    const isTask = nounOf(type) === "task" && members.tasks.has(subject);
    return isTask || members.sessions.has(session) ? lineOf(entry) : undefined;
  }
  if (session !== members.session) return undefined;
  // An outcome that is not known is asked about under the id of the operation.
  const isAbout =
    members.subjects.has(subject) || members.subjects.has(subject.split(".")[0] ?? "");
  if (isAbout) return lineOf(entry);
  if (nounOf(type) !== "gate") return undefined;
  const line = lineOf(entry);
  const { call } = (line.data ?? {}) as { readonly call?: { readonly callId?: string } };
  return call?.callId !== undefined && members.callIds.has(call.callId) ? line : undefined;
}

async function* entriesOf(reader: AuditReader): AsyncGenerator<AuditEntry> {
  for (let after = 0; ; ) {
    const page = await reader.read({ after, limit: STORY_PAGE });
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return;
    after = last.seq;
  }
}

function lineOf({ seq, at, type, subject, session, actor, data }: AuditEntry): StoryLine {
  const noun = nounOf(type);
  const chapter = Object.hasOwn(CHAPTERS, noun) ? CHAPTERS[noun as keyof typeof CHAPTERS] : "other";
  const facts = data === null ? null : (JSON.parse(data) as JsonObject);
  return { seq, at, chapter, type, subject, session, actor, data: facts };
}

function nounOf(type: string): string {
  return type.split(".", 1)[0] ?? "";
}
