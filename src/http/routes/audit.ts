import { z } from "zod";
import { exportTrail } from "../../audit/export.ts";
import { verifyStore } from "../../audit/verify.ts";
import type { AuditEntry } from "../../model/audit-entry.ts";
import type { AuditReader } from "../../store/store.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { streamed } from "../connections.ts";
import { jsonRoute, RULES, rawRoute } from "../route.ts";
import {
  cursorOf,
  DEFAULT_PAGE,
  instant,
  list,
  momentOf,
  NO_INPUT,
  name,
  page,
  pageOf,
  paging,
  placeOf,
} from "../wire/common.ts";

/** An entry of the trail; `data` is redacted before it is stored. */
const auditEntry = z.object({
  tenant: z.string(),
  seq: z.int(),
  at: instant,
  type: z.string(),
  subject: z.string(),
  session: z.string(),
  actor: z.string(),
  data: z.string().nullable(),
  salt: z.string().nullable(),
  dataHash: z.string(),
  prev: z.string(),
  hash: z.string(),
});

const chainHead = z.object({
  tenant: z.string(),
  seq: z.int(),
  hash: z.string(),
  at: instant,
});

const verifyReport = z.object({
  ok: z.boolean(),
  entries: z.int(),
  anchors: z.int(),
  lastAnchorAt: instant.optional(),
  tenants: list(
    z.object({
      tenant: z.string(),
      entries: z.int(),
      head: chainHead,
      erased: z.int(),
      anchoredSeq: z.int(),
      unanchored: z.int(),
    }),
  ),
  problems: list(
    z.object({
      code: z.string(),
      tenant: z.string(),
      seq: z.int().optional(),
      message: z.string(),
    }),
  ),
  problemCount: z.int(),
  blindWindow: z.object({
    entries: z.int(),
    since: instant.optional(),
    sinceMs: z.number().optional(),
  }),
});

export const auditRoutes = {
  "audit.entries": jsonRoute({
    summary: "List audit entries, oldest first, or newest first with `order=newest`.",
    rule: RULES.readAll,
    of: "none",
    input: z.strictObject({
      after: z.int().min(0).optional(),
      /** Written at this moment or later. */
      since: instant.optional(),
      /** Of one session only; then a page may be short although `next` says that there is more. */
      session: name.optional(),
      /** From the beginning unless told; `newest` reads backwards from the end. */
      order: z.enum(["oldest", "newest"]).optional(),
      ...paging,
    }),
    answer: pageOf(auditEntry),
    async handle({ after = 0, since, session, order, cursor, limit = DEFAULT_PAGE }, { gate }) {
      const start =
        since === undefined
          ? after
          : Math.max(after, await lastBefore(gate.audit, momentOf(since)));
      if (order === "newest") {
        return newestPart(gate.audit, {
          after: start,
          limit,
          ...definedFields({
            session,
            before: cursor === undefined ? undefined : placeOf(cursor),
          }),
        });
      }
      const from = cursor === undefined ? start : placeOf(cursor);
      if (session !== undefined) return sessionPart(gate.audit, { session, after: from, limit });
      const entries = await gate.audit.read({ after: from, limit: limit + 1 });
      return page(entries, limit, ({ seq }) => seq);
    },
  }),
  "audit.head": jsonRoute({
    summary: "Get the end of the trail: number, hash, time.",
    rule: RULES.readAll,
    of: "none",
    input: NO_INPUT,
    answer: chainHead,
    handle: (_, { gate }) => gate.audit.head(),
  }),
  "audit.verify": jsonRoute({
    summary: "Verify the trail: numbers, links, hashes, times, and its end against the anchors.",
    rule: RULES.checkAudit,
    of: "none",
    input: NO_INPUT,
    answer: verifyReport,
    async handle(_, { services, identity }) {
      const { store, audit, clock, timers } = services;
      return verifyStore(store, {
        ...audit,
        tenants: [identity.tenant],
        now: clock.now(),
        // A long trail must not block other requests.
        onProgress: () => new Promise((resolve) => timers.soon(resolve)),
        pageSize: 250,
      });
    },
  }),
  "audit.export": rawRoute({
    summary: "Export the whole trail as JSON Lines, to verify elsewhere.",
    rule: RULES.checkAudit,
    of: "none",
    input: NO_INPUT,
    contentType: "application/jsonl",
    async handle(_, context, { gate, services }) {
      context.header("Content-Disposition", 'attachment; filename="audit.jsonl"');
      return streamed(context, "application/jsonl", exportTrail(gate.audit), services.report);
    },
  }),
};

/** How many entries one request scans for those of one session. */
const LOOK = 500;
const MOST_LOOKS = 20;

/**
 * Entries of one session after a number, at most `limit`. The trail is ordered by time only, so it is
 * scanned, a bounded part at a time: a page may have few entries, or none, and still have a `next`.
 */
async function sessionPart(
  reader: AuditReader,
  { session, after, limit }: { session: string; after: number; limit: number },
): Promise<{ items: readonly AuditEntry[]; next: string | null }> {
  const items: AuditEntry[] = [];
  let place = after;
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const read = await reader.read({ after: place, limit: LOOK });
    for (const entry of read) {
      place = entry.seq;
      if (entry.session === session) items.push(entry);
      if (items.length === limit) return { items, next: cursorOf(place) };
    }
    if (read.length < LOOK) return { items, next: null };
  }
  return { items, next: cursorOf(place) };
}

export interface NewestQuery {
  readonly session?: string;
  /** Entries with this number and smaller ones are not read. */
  readonly after: number;
  /** Entries with this number and larger ones were read before; the end of the trail when left out. */
  readonly before?: number;
  readonly limit: number;
}

/** A page from the end of the trail, newest first. With a session it scans a bounded part, as `sessionPart` does. */
async function newestPart(
  reader: AuditReader,
  { session, after, before, limit }: NewestQuery,
): Promise<{ items: readonly AuditEntry[]; next: string | null }> {
  const items: AuditEntry[] = [];
  let end = before ?? (await reader.head()).seq + 1;
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const size = session === undefined ? limit - items.length : LOOK;
    const start = Math.max(after, end - 1 - size);
    const count = end - 1 - start;
    if (count <= 0) return { items, next: null };
    const read = await reader.read({ after: start, limit: count });
    for (const entry of read.toReversed()) {
      if (session === undefined || entry.session === session) items.push(entry);
      end = entry.seq;
      const isLast = end <= after + 1;
      if (items.length === limit) return { items, next: isLast ? null : cursorOf(end) };
    }
    if (read.length === 0) return { items, next: null };
  }
  return { items, next: end <= after + 1 ? null : cursorOf(end) };
}

/** The number of the last entry before an instant, by binary search: times never decrease. */
async function lastBefore(reader: AuditReader, moment: string): Promise<number> {
  let before = 0;
  let notBefore = (await reader.head()).seq + 1;
  while (notBefore - before > 1) {
    const middle = Math.floor((before + notBefore) / 2);
    const [entry] = await reader.read({ after: middle - 1, limit: 1 });
    if (entry !== undefined && entry.at < moment) before = middle;
    else notBefore = middle;
  }
  return before;
}
