import {
  type AuditEntry,
  type Block,
  type ChainHead,
  dataHash,
  GENESIS,
  unpackBlock,
} from "../model/audit-entry.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import { DEFINITIONS } from "../model/interaction.ts";
import type { Instant } from "../model/names.ts";
import { isName } from "../model/names.ts";
import { type OperationId, PICTURES } from "../model/operation.ts";
import { damaged } from "../model/record.ts";
import { CONTENT_KEYS } from "../model/switch.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { type Clock, stopwatch, toIso } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import { errorText } from "../util/error-text.ts";
import { hmacSha256Hex, sha256Hex } from "../util/hash.ts";
import { isDeepFrozen, type JsonObject } from "../util/json.ts";
import { type Random, systemRandom } from "../util/random.ts";
import { decodeValue } from "../util/value-codec.ts";
import {
  type Along,
  type Change,
  type ChangeResult,
  type Engine,
  type EventPlan,
  insertStep,
  NOW,
  type Query,
  type Row,
  requireStep,
  type Step,
  type Table,
} from "./engine.ts";
import { isOpenFact } from "./turn.ts";

/** Removes secrets from the data of an event before the engine gets it. Shape: callback, synchronous. */
export type Redact = (tenant: string, data: JsonObject) => JsonObject;

/** An engine bound to one tenant. The records are implemented over it, so they cannot reach another tenant by mistake. */
export interface TenantEngine {
  readonly tenant: string;
  newId(): string;
  commit(change: Change): Promise<ChangeResult>;
  get(table: Table, id: string): Promise<Row | undefined>;
  find(table: Table, query: Query): Promise<readonly Row[]>;
  now(): Promise<number>;
}

export function tenantEngine(
  engine: Engine,
  tenant: string,
  redact: Redact,
  keys: ContentKeys = new ContentKeys(engine, systemRandom),
): TenantEngine {
  function redacted(plan: EventPlan, steps: readonly Step[]): EventPlan {
    for (const [name, fact] of Object.entries(plan.facts ?? {})) {
      if (!isOpenFact(fact, steps)) throw new TypeError(`${name} might hold a secret`);
    }
    const data = redact(tenant, plan.data);
    return data === plan.data ? plan : { ...plan, data };
  }

  /** Throws invalid_input. */
  function ready({ steps, events }: Change, proof?: ContentProof): Change {
    try {
      const plans = events.map((plan) => {
        const open = redacted(plan, steps);
        if (open.hashes === undefined) return open;
        if (proof === undefined) throw new TypeError("there is no key for a hash of contents");
        return provenPlan(open, steps, proof);
      });
      return { steps, events: plans };
    } catch (cause) {
      const hint = "The event could not be recorded in the trail, so nothing was written.";
      throw new SallyportError("invalid_input", { what: "event", hint }, cause);
    }
  }

  /** The first change of a tenant in this process: looks up the tenant's key, or creates it in the same transaction. */
  async function commitFirst(change: Change): Promise<ChangeResult> {
    const known = keys.known(tenant) ?? (await keys.find(tenant));
    if (known !== undefined) return commitUnder(known, change);
    const { secret, proof, step } = keys.fresh();
    const { steps, events } = ready(change, proof);
    const result = await engine.commit(tenant, { steps: [...steps, step], events });
    if (result.committed) {
      keys.learned(tenant, secret);
      return { ...result, rows: result.rows.slice(0, -1) };
    }
    // Another process created the key meanwhile. Nothing was written; use that key.
    return result.step === steps.length ? commitFirst(change) : result;
  }

  async function commitUnder(proof: ContentProof, change: Change): Promise<ChangeResult> {
    const required = keys.requirement(tenant);
    const { steps, events } = ready(change, proof);
    // A take is the only step of its change.
    if (required === undefined || steps.some(({ op }) => op === "take")) {
      return engine.commit(tenant, { steps, events });
    }
    const result = await engine.commit(tenant, { steps: [...steps, required], events });
    if (result.committed) return { ...result, rows: result.rows.slice(0, -1) };
    if (result.step < steps.length) return result;
    // The key was lost with the transaction that created it. Nothing was written; the change gets a new key.
    keys.forget(tenant);
    return commitFirst(change);
  }

  return {
    tenant,
    newId: () => engine.newId(),
    commit(change) {
      try {
        const needsKey = change.events.some(({ hashes }) => hashes !== undefined);
        const proof = needsKey ? keys.known(tenant) : undefined;
        if (proof !== undefined) return commitUnder(proof, change);
        if (needsKey) return commitFirst(change);
        return engine.commit(tenant, ready(change));
      } catch (error) {
        return Promise.reject(error);
      }
    },
    get: (table, id) => engine.get(tenant, table, id),
    find: (table, query) => engine.find(tenant, table, query),
    now: () => engine.now(),
  };
}

/** An entry of the first format as the SQL engines stored it, without `prev`, which is the hash of the previous row. */
export interface AuditRow extends Omit<AuditEntry, "v" | "at" | "dataHash" | "prev"> {
  readonly at: number;
  /** Null while the data is there to compute it from. */
  readonly data_hash: string | null;
}

/** The part of a trail that a reader asks for. */
export interface TrailPart {
  readonly after: number;
  readonly limit: number;
}

/** Entries of the first format. The rows start one earlier: of the first one only the hash is used. */
export function entriesOf(rows: readonly AuditRow[], { after, limit }: TrailPart): AuditEntry[] {
  const entries: AuditEntry[] = [];
  let prev = after === 0 ? GENESIS : "";
  for (const { at, data_hash, ...row } of rows) {
    if (row.seq > after && entries.length < limit) {
      const stored = data_hash ?? dataHash(row.salt ?? "", row.data ?? "");
      entries.push({ v: 1, ...row, at: toIso(at), dataHash: stored, prev });
    }
    prev = row.hash;
  }
  return entries;
}

/** The end of the entries of the first format, which the blocks continue; undefined when a chain has only blocks. */
export type BeforeBlocks = Pick<ChainHead, "seq" | "hash"> | undefined;

/**
 * Entries out of blocks. The blocks start one earlier: of the first one only the head is used. Throws damaged_record for a
 * block that cannot be read.
 */
export function entriesOfBlocks(
  tenant: string,
  blocks: readonly Block[],
  { after, limit }: TrailPart,
  before: BeforeBlocks,
): AuditEntry[] {
  const entries: AuditEntry[] = [];
  // Without a block before it, one that is not the first has lost its predecessor, and no link fits.
  let prev = before?.hash ?? GENESIS;
  for (const block of blocks) {
    if (block.last > after && entries.length < limit) {
      entries.push(...unpackBlock(tenant, block, prev).filter(({ seq }) => seq > after));
    }
    prev = block.head;
  }
  return entries.slice(0, limit);
}

/**
 * The proof of a content that the log does not show. A plain hash of a short secret can be found by brute force, so the log
 * holds an HMAC of the hash under a key of the tenant. The key is created with the tenant's first entry of this kind. It is
 * stored in the database and copied with it, and is in no entry, export or answer.
 */
export type ContentProof = (about: ProvenContent, sha256: string) => string;

/** Bound to its record, so that the same content in two records does not look the same. */
export interface ProvenContent {
  readonly field: string;
  readonly subject: string;
}

export function contentProofBy(key: string): ContentProof {
  return ({ field, subject }, sha256) => hmacSha256Hex(key, `${field}\n${subject}\n${sha256}`);
}

/** The name under which the log shows the proof of a field. Entries of earlier versions have a plain hash, `field_sha256`. */
export function proofName(field: string): string {
  return `${field}_hmac`;
}

const CURRENT = "current";
const KEY_BYTES = 32;

/**
 * A failover to a lagging standby may lose the transaction that created a key or stored a definition. Proofs under a lost key
 * cannot be verified, and a question whose definition is lost cannot be answered, so for this long after a process has read or
 * written one of them, its changes require that it is stored. Assumes that no standby lags by more.
 */
const UNSETTLED_MS = 600_000;

interface KnownKey {
  readonly proof: ContentProof;
  readonly isStored: Step;
  readonly settlesAt: number;
}

/** The keys of one store, each read or created once per process. */
export class ContentKeys {
  readonly #engine: Engine;
  readonly #random: Random;
  readonly #stopwatch: Clock;
  readonly #known = new Map<string, KnownKey>();

  constructor(engine: Engine, random: Random, watch: Clock = stopwatch) {
    this.#engine = engine;
    this.#random = random;
    this.#stopwatch = watch;
  }

  /** Undefined when it has not been looked up yet. */
  known(tenant: string): ContentProof | undefined {
    return this.#known.get(tenant)?.proof;
  }

  /** Requires that the known key is stored; undefined once it can no longer be lost. */
  requirement(tenant: string): Step | undefined {
    const known = this.#known.get(tenant);
    if (known === undefined || this.#stopwatch.now() >= known.settlesAt) return undefined;
    return known.isStored;
  }

  /** The key is no longer stored. */
  forget(tenant: string): void {
    this.#known.delete(tenant);
  }

  /** Undefined when the tenant has none yet. */
  async find(tenant: string): Promise<ContentProof | undefined> {
    const known = this.known(tenant);
    if (known !== undefined) return known;
    const row = await this.#engine.get(tenant, CONTENT_KEYS, CURRENT);
    return row === undefined ? undefined : this.learned(tenant, String(row["secret"]));
  }

  /** A new key with the step that stores it. It is valid once that step is committed. */
  fresh(): { readonly secret: string; readonly proof: ContentProof; readonly step: Step } {
    const secret = Buffer.from(this.#random.bytes(KEY_BYTES)).toString("hex");
    const row = CONTENT_KEYS.row({ secret, createdAt: NOW });
    const step = { op: "insert", table: CONTENT_KEYS, id: CURRENT, row } as const;
    return { secret, proof: contentProofBy(secret), step };
  }

  learned(tenant: string, secret: string): ContentProof {
    const proof = contentProofBy(secret);
    const key = { table: CONTENT_KEYS, id: CURRENT, where: { secret } } as const;
    const isStored: Step = { op: "require", ...key, absent: "refuses" };
    this.#known.set(tenant, { proof, isStored, settlesAt: this.#stopwatch.now() + UNSETTLED_MS });
    return proof;
  }
}

/** The plan with proofs in place of the hashes of contents. */
export function provenPlan(
  { hashes, ...plan }: EventPlan,
  steps: readonly Step[],
  proof: ContentProof,
): EventPlan {
  const subject = idOf(plan.subject, steps);
  const proofs = Object.entries(hashes ?? {}).map(([field, sha256]) => [
    proofName(field),
    proof({ field, subject }, sha256),
  ]);
  return { ...plan, data: { ...plan.data, ...Object.fromEntries(proofs) } };
}

/** A proof contains the id of its record, so the id must be known before anything is written. */
function idOf(subject: EventPlan["subject"], steps: readonly Step[]): string {
  if (typeof subject === "string") return subject;
  const step = steps[subject.step ?? 0];
  if (subject.left === "id" && step !== undefined && step.op !== "take") return step.id;
  throw new TypeError("a hash of contents needs the id of its record");
}

/** More than the tools of a large gate. */
const MOST_DEFINITIONS = 1_000;

/** Kept for a definition that cannot be changed: it is asked for several times per question. */
export function hashOf(definition: JsonObject): string {
  const known = hashes.get(definition);
  if (known !== undefined) return known;
  const hash = sha256Hex(canonicalJson(definition));
  if (isDeepFrozen(definition)) hashes.set(definition, hash);
  return hash;
}

const hashes = new WeakMap<JsonObject, string>();

/**
 * The tool definitions that questions name by their hash. Each is stored once, in the transaction of the first question that
 * shows it, and read once per process: what a hash stands for never changes.
 */
export class Definitions {
  readonly #engine: TenantEngine;
  readonly #stopwatch: Clock;
  readonly #known = new Map<string, JsonObject>();
  /** Of each that was seen in the store, from when on it can no longer be lost. */
  readonly #settlesAt = new Map<string, number>();

  constructor(engine: TenantEngine, watch: Clock = stopwatch) {
    this.#engine = engine;
    this.#stopwatch = watch;
  }

  /** Commits a change together with those of the definitions that are not stored yet. */
  async commit(change: Change, shown: readonly JsonObject[]): Promise<ChangeResult> {
    const named = new Map(shown.map((definition) => [hashOf(definition), definition]));
    for (;;) {
      const steps = [...named].flatMap(([hash, definition]) => this.#steps(hash, definition));
      const result = await this.#engine.commit({ ...change, steps: [...change.steps, ...steps] });
      if (result.committed) {
        for (const { op, id } of steps) {
          const definition = named.get(id);
          if (op === "insert" && definition !== undefined) this.#keep(id, definition);
        }
        return { ...result, rows: result.rows.slice(0, change.steps.length) };
      }
      const refused = steps[result.step - change.steps.length];
      if (refused === undefined) return result;
      // Stored meanwhile, or before this process started; or lost since it was seen. Nothing was written: tried again.
      if (refused.op === "insert") this.#seen(refused.id);
      else this.#settlesAt.delete(refused.id);
    }
  }

  /** Stores it, or requires that it is stored; nothing once it can no longer be lost. */
  #steps(
    hash: string,
    definition: JsonObject,
  ): readonly (Step & { readonly op: "insert" | "require" })[] {
    const settlesAt = this.#settlesAt.get(hash);
    if (settlesAt === undefined)
      return [insertStep(DEFINITIONS, hash, DEFINITIONS.row({ definition }))];
    return this.#stopwatch.now() < settlesAt ? [requireStep(DEFINITIONS, hash, {})] : [];
  }

  /** The same with definitions in place of hashes. Throws damaged_record for one that is missing or was changed. */
  async filled<Named extends { readonly definitions: readonly (string | JsonObject)[] }>(
    named: Named,
  ): Promise<Omit<Named, "definitions"> & { readonly definitions: readonly JsonObject[] }> {
    const definitions = await Promise.all(
      named.definitions.map((one) => (typeof one === "string" ? this.#find(one) : one)),
    );
    return { ...named, definitions };
  }

  async #find(hash: string): Promise<JsonObject> {
    const known = this.#known.get(hash);
    if (known !== undefined) return known;
    const definition = (await peekRecord(this.#engine, DEFINITIONS, hash))?.definition;
    if (definition === undefined || hashOf(definition) !== hash) {
      const hint =
        "The definition of a tool that was shown is missing or was changed: propose the call again.";
      throw new SallyportError("damaged_record", { id: hash, column: "definition", hint });
    }
    this.#keep(hash, definition);
    return definition;
  }

  #keep(hash: string, definition: JsonObject): void {
    if (this.#known.size >= MOST_DEFINITIONS) this.#known.clear();
    this.#known.set(hash, definition);
    this.#seen(hash);
  }

  #seen(hash: string): void {
    this.#settlesAt.set(hash, this.#stopwatch.now() + UNSETTLED_MS);
  }
}

interface Readable<Item> extends Table {
  read(row: Row): Item;
}

/** Undefined when there is none. Throws damaged_record. */
export async function peekRecord<Item>(
  engine: TenantEngine,
  table: Readable<Item>,
  id: string,
): Promise<Item | undefined> {
  const row = isName(id) ? await engine.get(table, id) : undefined;
  return row === undefined ? undefined : table.read(row);
}

/** Throws not_found, damaged_record. */
export async function getRecord<Item>(
  engine: TenantEngine,
  table: Readable<Item>,
  id: string,
  hint?: string,
): Promise<Item> {
  const found = await peekRecord(engine, table, id);
  if (found !== undefined) return found;
  throw new SallyportError("not_found", definedFields({ id: String(id), hint }));
}

/** Commits one step with one event. Returns the record after the step, or undefined when the step did not hold. */
export async function writeRecord<Item>(
  engine: TenantEngine,
  table: Readable<Item>,
  step: Step,
  event: EventPlan,
): Promise<Item | undefined> {
  const result = await engine.commit({ steps: [step], events: [event] });
  return result.committed ? table.read(result.rows[0] ?? {}) : undefined;
}

/** A record that is stored and cannot be read. */
export interface Damaged {
  readonly id: string;
  readonly reason: string;
}

/** One page of a list, oldest first. */
export interface Found<Item> {
  readonly items: readonly Item[];
  readonly damaged: readonly Damaged[];
  /** Where the next page begins; undefined at the end of the list. */
  readonly next: number | undefined;
}

/** One page. Damaged rows are reported beside the others. */
export async function readPage<Item>(
  engine: TenantEngine,
  table: Table,
  query: Query,
  read: (row: Row) => Item,
): Promise<Found<Item>> {
  const rows = await engine.find(table, query);
  const items: Item[] = [];
  const damaged: Damaged[] = [];
  for (const row of rows) {
    try {
      items.push(read(row));
    } catch (error) {
      if (!isSallyportError(error, "damaged_record")) throw error;
      damaged.push({ id: String(row["id"]), reason: errorText(error) });
    }
  }
  const last = rows.at(-1);
  const isEnd = rows.length < query.limit || last === undefined;
  return { items, damaged, next: isEnd ? undefined : Number(last["ord"]) };
}

/** As many readable rows as requested; fewer only at the end of the list. */
export async function readable<Item>(
  engine: TenantEngine,
  table: Table,
  query: Query,
  read: (row: Row) => Item,
  onDamaged: (damaged: Damaged) => void = () => {},
): Promise<readonly Item[]> {
  const all: Item[] = [];
  let place: Pick<Query, "afterOrd"> = {};
  for (;;) {
    const limit = query.limit - all.length;
    const { items, damaged, next } = await readPage(
      engine,
      table,
      { ...query, ...place, limit },
      read,
    );
    all.push(...items);
    damaged.forEach(onDamaged);
    if (next === undefined || all.length >= query.limit) return all;
    place = { afterOrd: next };
  }
}

/** A complete list for readers, page by page: a record that cannot be read hides itself alone. */
export async function everyReadable<Item>(
  engine: TenantEngine,
  table: Table,
  where: NonNullable<Query["where"]>,
  read: (row: Row) => Item,
): Promise<readonly Item[]> {
  const all: Item[] = [];
  for (let afterOrd: number | undefined = 0; afterOrd !== undefined; ) {
    const query: Query = { where, afterOrd, limit: PAGE };
    const { items, next }: Found<Item> = await readPage(engine, table, query, read);
    all.push(...items);
    afterOrd = next;
  }
  return all;
}

/** A complete list, read page by page, for code that decides something. Throws damaged_record: a rule must not be skipped because it is damaged. */
export async function everyOne<Item>(
  engine: TenantEngine,
  table: Table,
  where: NonNullable<Query["where"]>,
  read: (row: Row) => Item,
): Promise<readonly Item[]> {
  const all: Item[] = [];
  for (let afterOrd = 0; ; ) {
    const rows = await engine.find(table, { where, afterOrd, limit: PAGE });
    all.push(...rows.map(read));
    if (rows.length < PAGE) return all;
    afterOrd = Number(rows.at(-1)?.["ord"]);
  }
}

const PAGE = 1_000;

/** The value that was encoded into a cell. Throws damaged_record. */
export function decoded<Shape>(row: Row, column: string): Shape {
  const cell = row[column];
  if (typeof cell !== "string") throw damaged(row, column);
  try {
    return decodeValue(cell) as Shape;
  } catch (cause) {
    throw damaged(row, column, cause);
  }
}

/** A cell that holds a time. Throws damaged_record. */
export function instantIn(row: Row, column: string): Instant {
  try {
    return toIso(Number(row[column]));
  } catch (cause) {
    throw damaged(row, column, cause);
  }
}

export interface PictureStore {
  /** What the tool of an approved call returned as a picture; undefined when it returned none. */
  picture(id: OperationId): Promise<StoredPicture | undefined>;
}

/** Without the other fields of the tool's data. */
interface StoredPicture {
  readonly kind: "image";
  readonly mediaType: string;
  readonly base64: string;
}

/** Beside the operations, which are read without what may be large. */
export function enginePictures(engine: TenantEngine): PictureStore {
  return {
    async picture(id) {
      const found = await peekRecord(engine, PICTURES, id);
      if (found === undefined) return undefined;
      const { mediaType, bytes } = found;
      return { kind: "image", mediaType, base64: Buffer.from(bytes).toString("base64") };
    },
  };
}

/** To be written with the outcome of its operation. */
export function pictureStep(
  id: OperationId,
  { mediaType, base64 }: Omit<StoredPicture, "kind">,
): Along {
  const bytes = Buffer.from(base64, "base64");
  return { step: insertStep(PICTURES, id, PICTURES.row({ mediaType, bytes, createdAt: NOW })) };
}
