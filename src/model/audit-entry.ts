import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../util/json.ts";
import { SallyportError } from "./errors.ts";
import type { Instant } from "./names.ts";

/** What changed; the store turns it into an entry in the same transaction. */
export interface EventDraft {
  /** Noun first, then what happened: `decision.staged`. */
  readonly type: string;
  /** The id of the record this is about. */
  readonly subject: string;
  readonly session: string;
  readonly actor: string;
  readonly data: JsonObject;
}

/** One entry of a tenant's audit log. The feed is these entries in this order. */
export interface AuditEntry {
  readonly tenant: string;
  /** Contiguous per tenant, from 1. */
  readonly seq: number;
  readonly at: Instant;
  readonly type: string;
  readonly subject: string;
  readonly session: string;
  readonly actor: string;
  /** Canonical JSON, or null when it was erased. */
  readonly data: string | null;
  /** Random, so that an erased value cannot be guessed from its hash. Erased together with the data. */
  readonly salt: string | null;
  /** SHA-256 of salt and data: the chain holds this hash, not the data, so that data can be erased and the chain still verifies. */
  readonly dataHash: string;
  /** Hash of the entry before, `GENESIS` for the first. */
  readonly prev: string;
  readonly hash: string;
}

/** An entry for a reader who wants what happened rather than the text that its hash covers. */
export type TrailEntry = Omit<AuditEntry, "data"> & {
  /** Null when it was erased. */
  readonly data: JsonObject | null;
};

/** Throws damaged_record when the data is not the JSON of an object. */
export function readEntry(entry: AuditEntry): TrailEntry {
  return { ...entry, data: entry.data === null ? null : dataIn(entry, entry.data) };
}

function dataIn({ tenant, seq }: AuditEntry, text: string): JsonObject {
  try {
    const data = JSON.parse(text) as JsonValue;
    if (isJsonObject(data)) return data;
  } catch {
    // Reported below, without the text, which is untrusted.
  }
  const hint = "The data of an audit entry is not a JSON object. Run audit verify.";
  throw new SallyportError("damaged_record", { tenant, seq, hint });
}

/** The end of a tenant's chain. */
export interface ChainHead {
  readonly tenant: string;
  readonly seq: number;
  readonly hash: string;
  readonly at: Instant;
}

export const GENESIS = "0".repeat(64);

export function emptyHead(tenant: string): ChainHead {
  return { tenant, seq: 0, hash: GENESIS, at: "1970-01-01T00:00:00.000Z" };
}

/** Appends one entry after `head`. Pure: the caller brings the time and the salt. */
export function sealEntry(
  head: ChainHead,
  draft: EventDraft,
  at: Instant,
  salt: string,
): AuditEntry {
  const data = canonicalJson(draft.data);
  return chainEntry(head, draft, at, { data, salt, dataHash: dataHash(salt, data) });
}

/** The same for data that was made ready before its place in the chain was known. */
export function chainEntry(
  head: ChainHead,
  draft: Omit<EventDraft, "data">,
  at: Instant,
  { data, salt, dataHash }: SealedData,
): AuditEntry {
  const unsealed = {
    tenant: head.tenant,
    seq: head.seq + 1,
    // Times never go backwards: an entry is not older than its predecessor, whatever the clock did.
    at: at < head.at ? head.at : at,
    type: draft.type,
    subject: draft.subject,
    session: draft.session,
    actor: draft.actor,
    data,
    salt,
    dataHash,
    prev: head.hash,
  };
  return { ...unsealed, hash: entryHash(unsealed) };
}

export interface SealedData {
  /** Canonical JSON. */
  readonly data: string;
  readonly salt: string;
  readonly dataHash: string;
}

export function headAfter(entry: AuditEntry): ChainHead {
  return { tenant: entry.tenant, seq: entry.seq, hash: entry.hash, at: entry.at };
}

export function dataHash(salt: string, data: string): string {
  return sha256Hex(`${salt}\n${data}`);
}

/** The hash covers every field but the data itself, in RFC 8785 form, so that any language can recompute it. */
export function entryHash(entry: Omit<AuditEntry, "hash" | "data" | "salt">): string {
  const text = JSON.stringify;
  // Written out in key order, quoting only what may need it: this runs once per transition, and a general canonicaliser
  // costs four times as much.
  return sha256Hex(
    `{"actor":${text(entry.actor)},"at":"${entry.at}","dataHash":"${entry.dataHash}",` +
      `"prev":"${entry.prev}","seq":${entry.seq},"session":${text(entry.session)},` +
      `"subject":${text(entry.subject)},"tenant":${text(entry.tenant)},"type":${text(entry.type)},"v":1}`,
  );
}
