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

/** A second secret, independent of the first: what a signed-in page keeps and sends with every request. */
const PAGE_KEY = /^[A-Za-z0-9_-]{43}$/;

export function newSecret(tenant: string, random: Random): Secret {
  const place = Buffer.from(tenant, "utf8").toString("base64url");
  const text = `sallyport_${place}.${randomText(random)}`;
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

export interface SessionSecret extends Secret {
  /** The half that is not in the cookie. */
  readonly key: string;
}

/**
 * A person's session has two random halves. Browsers send a cookie to every port of a machine, so the cookie alone must be
 * worth nothing: what is stored is a hash of both halves, and the cookie's half alone does not even find the session.
 */
export function newSessionSecret(tenant: string, random: Random): SessionSecret {
  return joined(newSecret(tenant, random), randomText(random));
}

/** Undefined for what cannot be the two halves of a session. */
export function readSessionSecret(text: string, key: string): SessionSecret | undefined {
  const secret = PAGE_KEY.test(key) ? readSecret(text) : undefined;
  return secret === undefined ? undefined : joined(secret, key);
}

/** Letters and digits that nobody mistakes for another when they are read out. */
const CODE_LETTERS = "ABCDEFGHJKMNPQRSTVWXYZ23456789";

/** The inviter's half of an invitation, short enough to be read out: 12 of 30 letters, 58 bits, and only good with the link. */
export function newCode(random: Random): string {
  let code = "";
  while (code.length < 12) {
    for (const byte of random.bytes(32)) {
      // The last six values would make some letters likelier than others.
      if (byte < 240 && code.length < 12) code += CODE_LETTERS[byte % CODE_LETTERS.length];
    }
  }
  return code.replace(/(.{4})(?=.)/g, "$1-");
}

/** As it is stored with the invitation; spaces, dashes and case do not matter. */
export function codeHash(tenant: string, code: string): string {
  return sha256Hex(`invite\n${tenant}\n${code.toUpperCase().replaceAll(/[^A-Z0-9]/g, "")}`);
}

/** What is stored for a link that needs a code as well. */
export function withCode(link: string, half: string): string {
  return sha256Hex(`${link}\n${half}`);
}

function joined(half: Secret, key: string): SessionSecret {
  return { ...half, key, hash: sha256Hex(`${half.text}\n${key}`) };
}

function randomText(random: Random): string {
  return Buffer.from(random.bytes(32)).toString("base64url");
}
