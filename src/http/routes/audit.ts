import { z } from "zod";
import { exportTrail } from "../../audit/export.ts";
import { verifyStore } from "../../audit/verify.ts";
import { jsonRoute, rawRoute } from "../route.ts";
import { RULES } from "../rule.ts";
import { streamed } from "../stream.ts";
import { lastBefore, newestPart, sessionPart } from "../trail-part.ts";
import { auditEntry, chainHead, verifyReport } from "../wire/audit.ts";
import {
  DEFAULT_PAGE,
  instant,
  momentOf,
  NO_INPUT,
  name,
  page,
  pageOf,
  paging,
  placeOf,
} from "../wire/common.ts";

export const auditRoutes = {
  "audit.entries": jsonRoute({
    summary: "The trail, oldest first, or newest first with `order=newest`.",
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
    async handle({ after = 0, since, session, order, cursor, limit = DEFAULT_PAGE }, { port }) {
      const start =
        since === undefined
          ? after
          : Math.max(after, await lastBefore(port.audit, momentOf(since)));
      if (order === "newest") {
        return newestPart(port.audit, {
          after: start,
          limit,
          ...(session === undefined ? {} : { session }),
          ...(cursor === undefined ? {} : { before: placeOf(cursor) }),
        });
      }
      const from = cursor === undefined ? start : placeOf(cursor);
      if (session !== undefined) return sessionPart(port.audit, { session, after: from, limit });
      const entries = await port.audit.read({ after: from, limit: limit + 1 });
      return page(entries, limit, ({ seq }) => seq);
    },
  }),
  "audit.head": jsonRoute({
    summary: "The end of the trail: number, hash, time.",
    rule: RULES.readAll,
    of: "none",
    input: NO_INPUT,
    answer: chainHead,
    handle: (_, { port }) => port.audit.head(),
  }),
  "audit.verify": jsonRoute({
    summary: "Verifies the trail: numbers, links, hashes, times, and the end against anchors.",
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
        // A long trail must not keep others waiting.
        onProgress: () => new Promise((resolve) => timers.soon(resolve)),
        pageSize: 250,
      });
    },
  }),
  "audit.export": rawRoute({
    summary: "The whole trail as JSON Lines, to verify elsewhere.",
    rule: RULES.checkAudit,
    of: "none",
    input: NO_INPUT,
    contentType: "application/jsonl",
    async handle(_, context, { port, services }) {
      context.header("Content-Disposition", 'attachment; filename="audit.jsonl"');
      return streamed(context, "application/jsonl", exportTrail(port.audit), services.report);
    },
  }),
};
