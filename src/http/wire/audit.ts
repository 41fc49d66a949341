import { z } from "zod";
import { instant, list } from "./common.ts";

/** An entry of the trail; `data` is redacted before it is stored. */
export const auditEntry = z.object({
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

export const chainHead = z.object({
  tenant: z.string(),
  seq: z.int(),
  hash: z.string(),
  at: instant,
});

export const verifyReport = z.object({
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
