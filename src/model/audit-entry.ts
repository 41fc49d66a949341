import { deflateRawSync, inflateRawSync } from "node:zlib";
import { canonicalJson } from "../util/canonical-json.ts";
import { toIso } from "../util/clock.ts";
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
  /** How its hash is made: 2 since the log is stored in blocks, 1 before. */
  readonly v: 1 | 2;
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
    v: 2,
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
  } as const;
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

/**
 * The hash covers every field but the data itself, in RFC 8785 form, so that any language can recompute it. In version 2 it
 * is made in two steps: a leaf from what the entry says, then a link from its place and the entry before. So a reader who has
 * only the leaves of the later entries can tell that an entry is part of a chain (see `audit/proof.ts`).
 */
export function entryHash(entry: Omit<AuditEntry, "hash" | "data" | "salt">): string {
  if (entry.v === 2) return linkHash(entry, leafHash(entry));
  // Written out in key order, quoting only what may need it: a general canonicaliser costs four times as much.
  const text = JSON.stringify;
  return sha256Hex(
    `{"actor":${text(entry.actor)},"at":"${entry.at}","dataHash":"${entry.dataHash}",` +
      `"prev":"${entry.prev}","seq":${entry.seq},"session":${text(entry.session)},` +
      `"subject":${text(entry.subject)},"tenant":${text(entry.tenant)},"type":${text(entry.type)},"v":1}`,
  );
}

type Said = Pick<AuditEntry, "actor" | "dataHash" | "session" | "subject" | "tenant" | "type">;

/** What an entry says, without its place in the chain. The salted hash stands for its data, so a leaf reveals nothing. */
export function leafHash({ actor, dataHash, session, subject, tenant, type }: Said): string {
  const text = JSON.stringify;
  return sha256Hex(
    `{"actor":${text(actor)},"dataHash":"${dataHash}","session":${text(session)},` +
      `"subject":${text(subject)},"tenant":${text(tenant)},"type":${text(type)},"v":2}`,
  );
}

/** The place of a leaf in its chain. */
export function linkHash(
  { at, prev, seq }: Pick<AuditEntry, "at" | "prev" | "seq">,
  leaf: string,
): string {
  return sha256Hex(`{"at":"${at}","leaf":"${leaf}","prev":"${prev}","seq":${seq},"v":2}`);
}

/** The entries of one transaction and tenant, as the SQL engines store them: one row, sealed by its last hash. */
export interface Block {
  /** The number of its last entry; the others follow from how many there are. */
  readonly last: number;
  /** Epoch milliseconds, of all its entries. */
  readonly at: number;
  /** The hash of its last entry. */
  readonly head: string;
  readonly body: Uint8Array;
}

/** What a block stores of an entry. Erased entries keep the hash of their data, of the others it is computed. */
type Packed = readonly [
  ...fields: [type: string, subject: string, session: string, actor: string],
  data: string | null,
  salt: string | null,
  dataHash?: string,
];

/**
 * Compressed with texts that are frequent in logs known beforehand: the entries of a single call take a quarter of their
 * length, in about 25 µs. The first byte names how a body was made.
 */
export function packBlock(entries: readonly AuditEntry[]): Uint8Array {
  const packed = entries.map(({ type, subject, session, actor, data, salt, dataHash }): Packed => {
    const fields = [type, subject, session, actor, data, salt] as const;
    return data !== null && salt !== null ? fields : [...fields, dataHash];
  });
  const text = JSON.stringify(packed);
  // The buffers of zlib count towards the collector's limits: with the usual 16 KiB each, small blocks have it collect ten times as often.
  const chunkSize = Math.min(16_384, Math.max(1_024, text.length >> 1));
  const small = deflateRawSync(text, { ...PACKING, chunkSize, dictionary: FREQUENT });
  return Buffer.concat([Uint8Array.of(DEFLATED), small]);
}

const DEFLATED = 1;
const PACKING = { level: 6, memLevel: 6, windowBits: 13 } as const;
/** A body unpacks to at most this many bytes: the entries of the largest group, each at its limit. */
const MAX_BODY = 512 * 1024 * 1024;

/** The entries of a block that follows `prev`. The last hash is the stored one, so that a verifier sees what was changed. Throws damaged_record. */
export function unpackBlock(
  tenant: string,
  { last, at, head, body }: Block,
  prev: string,
): AuditEntry[] {
  const packed = packedIn(tenant, last, body);
  const first = last - packed.length + 1;
  const iso = toIso(at);
  let link = prev;
  return packed.map(([type, subject, session, actor, data, salt, kept], index) => {
    const hashed = kept ?? dataHash(salt ?? "", data ?? "");
    const said = { tenant, type, subject, session, actor, data, salt, dataHash: hashed };
    const entry = { v: 2, ...said, seq: first + index, at: iso, prev: link } as const;
    link = index === packed.length - 1 ? head : entryHash(entry);
    return { ...entry, hash: link };
  });
}

function packedIn(tenant: string, seq: number, body: Uint8Array): readonly Packed[] {
  try {
    if (body[0] !== DEFLATED) throw new TypeError("made by a later version");
    const options = { dictionary: FREQUENT, maxOutputLength: MAX_BODY };
    const text = inflateRawSync(body.subarray(1), options).toString("utf8");
    const packed: unknown = JSON.parse(text);
    if (Array.isArray(packed) && packed.length > 0 && packed.every(isPacked)) return packed;
  } catch {
    // Reported below, without the bytes, which are untrusted.
  }
  const hint =
    "A block of the audit log cannot be read. Run audit verify and compare with a backup.";
  throw new SallyportError("damaged_record", { tenant, seq, hint });
}

function isPacked(value: unknown): value is Packed {
  if (!Array.isArray(value)) return false;
  const [type, subject, session, actor, data, salt, kept] = value as readonly unknown[];
  const isText = (one: unknown) => typeof one === "string";
  const names = [type, subject, session, actor].every(isText);
  return (
    names &&
    [data, salt].every((one) => one === null || isText(one)) &&
    (kept === undefined || isText(kept))
  );
}

/** Part of the format: a change of it needs another first byte. The most frequent comes last, where references are shortest. */
const FREQUENT = Buffer.from(
  [
    [
      "task.added",
      "task.claimed",
      "task.completed",
      "flow.saved",
      "session.opened",
      "call.denied",
      "gate.judged",
    ],
    [
      "operation.failed",
      "operation.unknown",
      "operation.rolled_back",
      "interaction.voted",
      "interaction.superseded",
    ],
    [
      "interaction.expired",
      "interaction.canceled",
      "rejected_ml",
      "rejected_tech",
      "failed",
      "validator:person:",
    ],
    '{"severity":"block","approved":false,"score":0,"findings":[],"policy":"","message":"","error":"',
    '["decision.staged","01a1ef25-a979-7","01a1ef25-a979-7","agent:',
    '{"metadata":{"chain":["agent:"],"facts":{},"keys":[],"messageId":"","owner":"","requester":"agent:"},"origin":"port","raw_bytes":2,"raw_hmac":"","source_tool":"","to":"pending_tech"}',
    '["decision.reviewed","","","validator:',
    '{"from":"pending_tech","tier":"tech","to":"pending_ml","verdict":{"approved":true,"policy_version":"2026-11","reason":"","score":1,"severity":"warn","validator":"',
    '["decision.previewed","","","agent:',
    '{"expires_at":"2026-11-19T14:00:00.000Z","hash":"","machine":{"approved":true,"policyVersion":"2026-11","reason":"","score":1,"severity":"warn","validator":"rules"},"safety_class":"irreversible"}',
    '["interaction.opened","","","agent:',
    '{"deadline":179509,"decision":"","hash":"","operation":"","text":"agent: asks to run .","type":"confirm"}',
    '["interaction.answered","","","person:',
    '{"outcome":"approved","reason":""}',
    '{"from":"pending_ml","tier":"business","to":"approved","verdict":{"approved":true,"policy_version":"none","reason":"","score":1,"severity":"","validator":"person:"}}',
    '["operation.started",".0","","executor',
    '{"decision":"","definition":"","fence":1,"input_hmac":"","step":0,"tool":"","undo_of":""}',
    '["operation.succeeded",".0","","executor',
    '{"fence":1,"output_hmac":"","truncated":false,"undo":"none"}',
    '["decision.executed","","","executor',
    '{"from":"approved","proof_hmac":"","to":"executed"}',
  ]
    .flat()
    // As it stands inside a JSON text.
    .map((text) => (text.startsWith("{") ? JSON.stringify(text).slice(1) : text))
    .join(","),
);
