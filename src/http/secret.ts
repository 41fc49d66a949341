import { sha256Hex } from "../util/hash.ts";
import type { Random } from "../util/random.ts";

/**
 * A token as its holder has it: `sallyport_<tenant>.<256 random bits>`. The prefix lets scanners find leaked ones. The tenant
 * stands in it only so that the right place is looked in: another tenant's name in front gives another hash, and nothing is
 * found under that.
 */
export interface Secret {
  readonly text: string;
  readonly tenant: string;
  /** What is stored. */
  readonly hash: string;
}

const SECRET = /^sallyport_([A-Za-z0-9_-]{1,684})\.([A-Za-z0-9_-]{43})$/;

export function newSecret(tenant: string, random: Random): Secret {
  const place = Buffer.from(tenant, "utf8").toString("base64url");
  const text = `sallyport_${place}.${Buffer.from(random.bytes(32)).toString("base64url")}`;
  return { text, tenant, hash: sha256Hex(text) };
}

/** Undefined for what is no token. */
export function readSecret(text: string): Secret | undefined {
  const place = text.length <= 800 ? SECRET.exec(text)?.[1] : undefined;
  if (place === undefined) return undefined;
  const bytes = Buffer.from(place, "base64url");
  const tenant = bytes.toString("utf8");
  // One spelling for each tenant: bytes that are not UTF-8 come back as other bytes.
  if (Buffer.from(tenant, "utf8").toString("base64url") !== place) return undefined;
  return { text, tenant, hash: sha256Hex(text) };
}

/** Bound to one sign-in: whoever cannot read the page cannot know it, and it says nothing about the cookie. */
export function csrfToken(secret: Secret): string {
  return sha256Hex(`csrf\n${secret.text}`);
}
