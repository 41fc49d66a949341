import { data, instant, integer, key, oneOf, text } from "./field.ts";
import { record } from "./record.ts";

export interface StoredAnswer {
  readonly status: number;
  readonly body: string;
}

/** Requests that carry an idempotency key, and what was answered to them. */
export const HTTP_KEYS = record(
  "http_keys",
  {
    id: key(),
    route: text(),
    contentHash: text(),
    state: oneOf(["begun", "answered"]),
    fence: integer(),
    leaseUntil: instant(),
    answer: data<StoredAnswer>({ limit: "none" }).optional(),
    expiresAt: instant(),
    createdAt: instant(),
  },
  { indexes: [{ name: "by_expiry", on: ["expires_at"] }] },
);
