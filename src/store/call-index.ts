import type { Instant } from "../model/names.ts";

// The index of calls: what people search, filter and count. It is derived from the log and the records, holds only redacted
// text, and can be thrown away: it is built again. Keeping it out of the write path costs a call nothing.

/** What came of a call, in the words of people. */
export const CALL_OUTCOMES = [
  "waiting",
  "approved",
  "ran",
  "ran_alone",
  "rejected",
  "refused",
  "expired",
  "replaced",
  "failed",
  "unknown",
  "undone",
] as const;
export type CallOutcome = (typeof CALL_OUTCOMES)[number];

export const INDEXED_KINDS = ["decision", "operation", "refusal"] as const;

/** One call, or several that were decided as a whole. */
export interface IndexedCall {
  /** Of the decision; of the operation that needed none; or the number of the entry that refused it. */
  readonly id: string;
  readonly kind: (typeof INDEXED_KINDS)[number];
  readonly at: Instant;
  readonly sessionId: string;
  readonly agent: string;
  readonly tool: string;
  readonly title: string;
  readonly outcome: CallOutcome;
  /** The person, or the check, that decided; empty when none did. */
  readonly by: string;
  readonly reason: string;
  /** How long a person took; null when none decided. */
  readonly waitMs: number | null;
}

/** As it is stored. */
export interface CallDocument extends IndexedCall {
  /** The end of the log when it was read: an older reading never replaces a newer one. */
  readonly seq: number;
  /** What is searched: lower-case words, each once. */
  readonly words: string;
}

/** Up to where the log is in the index. */
export interface IndexPlace {
  readonly seq: number;
  readonly hash: string;
}

export interface CallFilter {
  /** Every word of it begins a word of the call. */
  readonly text?: string;
  readonly agent?: string;
  readonly tool?: string;
  readonly by?: string;
  readonly sessionId?: string;
  readonly outcomes?: readonly CallOutcome[];
  readonly from?: Instant;
  /** Not included. */
  readonly to?: Instant;
}

export interface CallPage {
  readonly limit: number;
  /** The last one of the page before. */
  readonly after?: { readonly at: Instant; readonly id: string };
}

export const COUNT_BY = ["hour", "day", "agent", "tool", "by"] as const;
export type CountBy = (typeof COUNT_BY)[number];

export interface CallCount {
  /** The beginning of the hour or day, or the name. */
  readonly key: string;
  readonly outcome: CallOutcome;
  readonly count: number;
}

/** What an engine offers for it; newest first everywhere. */
export interface CallIndex {
  place(): Promise<IndexPlace | undefined>;
  put(calls: readonly CallDocument[], place: IndexPlace): Promise<void>;
  /** Forgets everything, before it is built again. */
  clear(): Promise<void>;
  find(filter: CallFilter, page: CallPage): Promise<readonly IndexedCall[]>;
  count(filter: CallFilter, by: CountBy): Promise<readonly CallCount[]>;
  /** How long people took, the shortest first. */
  waits(filter: CallFilter): Promise<readonly number[]>;
}

const MOST_WORDS = 2_000;
const LONGEST_WORD = 64;
const MOST_SEARCHED = 12;

/** The words of a text: runs of letters and digits in lower case, each once. All engines search the same words. */
export function callWords(text: string): readonly string[] {
  const found = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return [...new Set(found.map((word) => word.slice(0, LONGEST_WORD)))].slice(0, MOST_WORDS);
}

/** The words that are looked for. */
export function searchedWords(text: string): readonly string[] {
  return callWords(text).slice(0, MOST_SEARCHED);
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The beginning of the hour or day that a time is in, UTC. */
export function bucketMs(by: "hour" | "day"): number {
  return by === "hour" ? HOUR_MS : DAY_MS;
}

/** Kept in the process: for the memory store, and for engines that bring none of their own. */
export function memoryCallIndex(): CallIndex {
  const calls = new Map<string, CallDocument>();
  let reached: IndexPlace | undefined;
  const chosen = (filter: CallFilter) =>
    [...calls.values()].filter((call) => isIn(call, filter)).sort(newestFirst);
  return {
    place: async () => reached,
    async put(documents, place) {
      for (const one of documents) {
        if ((calls.get(one.id)?.seq ?? 0) <= one.seq) calls.set(one.id, one);
      }
      if ((reached?.seq ?? 0) <= place.seq) reached = place;
    },
    async clear() {
      calls.clear();
      reached = undefined;
    },
    async find(filter, { limit, after }) {
      const rest =
        after === undefined ? () => true : (call: IndexedCall) => newestFirst(after, call) < 0;
      return chosen(filter).filter(rest).slice(0, limit).map(shownOf);
    },
    async count(filter, by) {
      const counts = new Map<string, CallCount>();
      for (const call of chosen(filter)) {
        const key = keyOf(call, by);
        const place = `${key}\n${call.outcome}`;
        const { count } = counts.get(place) ?? { count: 0 };
        counts.set(place, { key, outcome: call.outcome, count: count + 1 });
      }
      return [...counts.values()].sort(byCountKey);
    },
    waits: async (filter) =>
      chosen(filter)
        .flatMap(({ waitMs }) => waitMs ?? [])
        .sort((a, b) => a - b),
  };
}

function shownOf({ seq: _seq, words: _words, ...call }: CallDocument): IndexedCall {
  return call;
}

function newestFirst(a: Pick<IndexedCall, "at" | "id">, b: Pick<IndexedCall, "at" | "id">): number {
  if (a.at !== b.at) return a.at < b.at ? 1 : -1;
  return a.id < b.id ? 1 : a.id > b.id ? -1 : 0;
}

export function byCountKey(a: CallCount, b: CallCount): number {
  const [x, y] = [`${a.key}\n${a.outcome}`, `${b.key}\n${b.outcome}`];
  return x < y ? -1 : x > y ? 1 : 0;
}

function keyOf(call: IndexedCall, by: CountBy): string {
  if (by === "agent" || by === "tool" || by === "by") return call[by];
  const size = bucketMs(by);
  return new Date(Math.floor(Date.parse(call.at) / size) * size).toISOString();
}

function isIn(call: CallDocument, filter: CallFilter): boolean {
  const { text = "", outcomes, from, to, ...names } = filter;
  if (Object.entries(names).some(([name, wanted]) => call[name as "agent"] !== wanted))
    return false;
  if (outcomes !== undefined && !outcomes.includes(call.outcome)) return false;
  if (from !== undefined && call.at < from) return false;
  if (to !== undefined && call.at >= to) return false;
  const words = call.words.split(" ");
  return searchedWords(text).every((start) => words.some((word) => word.startsWith(start)));
}
