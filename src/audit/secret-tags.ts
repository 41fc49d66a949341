import { SallyportError } from "../model/errors.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { hmacSha256Hex } from "../util/hash.ts";
import type { JsonValue } from "../util/json.ts";

/** What stands in the place of a secret: `secret`, or `hmac-sha256:` and 64 digits. */
export type Tag = (value: JsonValue) => string;

const MIN_KEY_BYTES = 16;
const TAG = /^(?:secret|hmac-sha256:[0-9a-f]{64})$/;

/**
 * Tags by tenant. Each tenant has a key of its own, derived from the one given: equal secrets of one tenant are recognised,
 * those of two tenants are not, and without the key not even a four-digit number can be found by trying (T23).
 */
export function createTags(key: Uint8Array | string | undefined): (tenant: string) => Tag {
  if (key === undefined) return () => () => "secret";
  if (Buffer.byteLength(key) < MIN_KEY_BYTES) {
    const hint = `Give ${MIN_KEY_BYTES} random bytes or more, and keep them outside the database.`;
    throw new SallyportError("invalid_input", { what: "redaction key", hint });
  }
  return (tenant) => {
    const tenantKey = hmacSha256Hex(key, `sallyport redaction v1\n${tenant}`);
    return (value) => `hmac-sha256:${hmacSha256Hex(tenantKey, canonicalJson(value))}`;
  };
}

export function tagInText(tag: string): string {
  return `[redacted:${tag}]`;
}

/** True for what a redactor left behind; a value that only pretends to be that is redacted like any other. */
export function isRedacted(value: JsonValue): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const { $redacted: tag, ...rest } = value;
  return typeof tag === "string" && TAG.test(tag) && Object.keys(rest).length === 0;
}
