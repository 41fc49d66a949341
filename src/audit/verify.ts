import type { KeyObject } from "node:crypto";
import {
  type AuditEntry,
  type ChainHead,
  dataHash,
  emptyHead,
  entryHash,
  GENESIS,
  headAfter,
} from "../model/audit-entry.ts";
import type { Instant } from "../model/names.ts";
import type { Store } from "../store/store.ts";
import type { Remembered } from "../store/watched-engine.ts";
import { definedFields } from "../util/defined-fields.ts";
import {
  type Anchor,
  anchorHash,
  type PublicKeys,
  publicKeys,
  signatureProblem,
} from "./anchor.ts";

export interface VerifyOptions {
  /** Without anchors a verification cannot detect that the end was cut off or that everything was rewritten. */
  readonly anchors?: AnchorSource;
  /** From an epoch file outside the store: the minimum number of entries of all tenants together. */
  readonly remembered?: Pick<Remembered, "entries" | "isRolledBack">;
  /** Ed25519 public keys as PEM, from another channel than the anchors. */
  readonly publicKeys?: readonly (string | KeyObject)[];
  /** Check only these tenants, and expect each of them to exist. */
  readonly tenants?: readonly string[];
  /** Trusted heads from an earlier report: only newer entries are checked. */
  readonly from?: readonly ChainHead[];
  /** Epoch milliseconds, to compute the age of the blind window. */
  readonly now?: number;
  /** Shape: callback; called every 10,000 entries and awaited, so that other work can run. */
  readonly onProgress?: (progress: { readonly entries: number }) => void | Promise<void>;
}

const PAGE = 1_000;

/**
 * Verifies a log: numbers, links, hashes and times of each tenant, then all of it against the anchors. Entries of
 * several tenants may be interleaved. Memory grows with tenants and anchors, not with entries. A damaged log is a
 * report, not an error; throws invalid_input only for an invalid public key.
 */
export async function verifyTrail(
  entries: AsyncIterable<AuditEntry> | Iterable<AuditEntry>,
  options: VerifyOptions = {},
): Promise<VerifyReport> {
  const run = await Verification.start(options);
  try {
    for await (const entry of entries) {
      const pause = run.take(entry);
      if (pause !== undefined) await pause;
    }
  } catch (error) {
    run.problems.add("unreadable", { tenant: "" }, reasonOf(error));
  }
  return run.finish();
}

/**
 * Checks every log of a store: reads all tenants of the store and of the anchors.
 *
 *     const { ok, problems } = await verifyStore(store);
 */
export async function verifyStore(
  store: Pick<Store, "heads" | "tenant">,
  options: VerifyOptions & { readonly pageSize?: number } = {},
): Promise<VerifyReport> {
  // Anchors before heads: an anchor created in between would refer to entries after the head.
  const run = await Verification.start(options);
  const heads = new Map<string, ChainHead>();
  try {
    for (const head of await store.heads()) heads.set(head.tenant, head);
  } catch (error) {
    run.problems.add("unreadable", { tenant: "" }, reasonOf(error));
  }
  checkRemembered(options, heads, run);
  for (const tenant of options.tenants ?? new Set([...heads.keys(), ...run.expected])) {
    try {
      await readTenant(store, tenant, heads.get(tenant), run, options);
    } catch (error) {
      run.problems.add("unreadable", { tenant }, reasonOf(error));
    }
  }
  return run.finish();
}

/** Without anchors this is all that is known about the end; with them it also covers entries after the last one. */
function checkRemembered(
  { remembered }: VerifyOptions,
  heads: ReadonlyMap<string, ChainHead>,
  run: Verification,
): void {
  if (remembered === undefined) return;
  const found = [...heads.values()].reduce((sum, { seq }) => sum + seq, 0);
  if (found >= remembered.entries && remembered.isRolledBack !== true) return;
  const fact = `the epoch file remembers ${remembered.entries} entries, the store holds ${found}`;
  run.problems.add("cut_off", { tenant: "" }, fact);
}

async function readTenant(
  store: Pick<Store, "tenant">,
  tenant: string,
  head: ChainHead | undefined,
  run: Verification,
  { pageSize = PAGE, from = [] }: VerifyOptions & { readonly pageSize?: number },
): Promise<void> {
  const reader = store.tenant(tenant).audit;
  const trusted = from.find((one) => one.tenant === tenant && one.seq > 0);
  // The trusted entry is read again, and the store's own record of the end is compared: both must still exist.
  const wanted = new Map<number, string | undefined>();
  if (trusted !== undefined) wanted.set(trusted.seq, undefined);
  if (head !== undefined) wanted.set(head.seq, undefined);
  let after = trusted === undefined ? 0 : trusted.seq - 1;
  for (;;) {
    const entries = await reader.read({ after, limit: pageSize });
    for (const entry of entries) {
      if (wanted.has(entry.seq)) wanted.set(entry.seq, entry.hash);
      const pause = run.take(entry);
      if (pause !== undefined) await pause;
    }
    const last = entries.at(-1)?.seq ?? 0;
    // A reader that does not advance is at the end, or broken, which the numbers have shown.
    if (!(last > after)) break;
    after = last;
  }
  if (trusted !== undefined && wanted.get(trusted.seq) === undefined) {
    run.problems.add("wrong_checkpoint", trusted, "the entry is gone");
  }
  if (head !== undefined && head.seq > 0 && wanted.get(head.seq) !== head.hash) {
    run.problems.add("head_mismatch", head);
  }
}

const PROGRESS_EVERY = 10_000;

/** One run over the entries of all tenants: passes each entry to its chain and sums up. */
class Verification {
  readonly problems = new ProblemList();
  #seen = 0;
  readonly #options: VerifyOptions;
  readonly #only: ReadonlySet<string> | undefined;
  readonly #chains = new Map<string, ChainCheck>();
  #anchors: CheckedAnchors = { count: 0, lastAt: "", points: new Map() };

  private constructor(options: VerifyOptions) {
    this.#options = options;
    this.#only = options.tenants && new Set(options.tenants);
  }

  static async start(options: VerifyOptions): Promise<Verification> {
    const keys = publicKeys(options.publicKeys ?? []);
    const run = new Verification(options);
    run.#anchors = await checkAnchors(options.anchors ?? [], keys, run.problems);
    for (const tenant of run.expected) run.#chainOf(tenant);
    return run;
  }

  /** Tenants that must exist: the requested ones, otherwise those that anchors and trusted heads name. */
  get expected(): readonly string[] {
    const { tenants, from = [] } = this.#options;
    return tenants ?? [...this.#anchors.points.keys(), ...from.map((head) => head.tenant)];
  }

  /** Returns a promise when the caller should wait before the next entry. */
  take(entry: AuditEntry): Promise<void> | void {
    if (this.#only?.has(entry.tenant) === false) return;
    this.#seen += 1;
    this.#chainOf(entry.tenant).take(entry);
    if (this.#seen % PROGRESS_EVERY === 0) {
      return this.#options.onProgress?.({ entries: this.#seen });
    }
  }

  finish(): VerifyReport {
    const { problems } = this;
    const tenants = [];
    for (const [tenant, chain] of this.#chains) {
      if (chain.isEmpty && this.#only?.has(tenant)) {
        problems.add("tenant_missing", { tenant });
      }
      tenants.push(chain.finish());
    }
    const { count, lastAt } = this.#anchors;
    return {
      ok: problems.count === 0,
      entries: tenants.reduce((sum, one) => sum + one.entries, 0),
      anchors: count,
      ...(lastAt === "" ? {} : { lastAnchorAt: lastAt }),
      tenants,
      problems: problems.kept,
      problemCount: problems.count,
      blindWindow: this.#blindWindow(tenants.reduce((sum, one) => sum + one.unanchored, 0)),
    };
  }

  #chainOf(tenant: string): ChainCheck {
    let chain = this.#chains.get(tenant);
    if (chain === undefined) {
      const from = this.#options.from?.find((head) => head.tenant === tenant);
      chain = new ChainCheck(tenant, this.problems, this.#anchors.points.get(tenant), from);
      this.#chains.set(tenant, chain);
    }
    return chain;
  }

  #blindWindow(entries: number): BlindWindow {
    const times = [...this.#chains.values()].flatMap((chain) => chain.unanchoredSince ?? []);
    const since = times.sort()[0];
    if (since === undefined) return { entries };
    const sinceMs = (this.#options.now ?? Number.NaN) - Date.parse(since);
    return Number.isNaN(sinceMs)
      ? { entries, since }
      : { entries, since, sinceMs: Math.max(0, sinceMs) };
  }
}

/** The result of a verification. `ok` is true when there is no problem; read it together with `blindWindow`. */
export interface VerifyReport {
  readonly ok: boolean;
  /** The number of checked entries. */
  readonly entries: number;
  /** The number of compared anchors with a valid signature. */
  readonly anchors: number;
  /** When the newest of them was created. */
  readonly lastAnchorAt?: Instant;
  readonly tenants: readonly TenantReport[];
  /** The first hundred; `problemCount` counts all. */
  readonly problems: readonly VerifyProblem[];
  readonly problemCount: number;
  /** Entries without an anchor. A writer of the database could still change these undetected. */
  readonly blindWindow: BlindWindow;
}

export interface TenantReport {
  readonly tenant: string;
  readonly entries: number;
  /** The end of the chain; pass it as `from` to check only newer entries next time. */
  readonly head: ChainHead;
  /** Entries whose data was erased; their place in the chain is still verified. */
  readonly erased: number;
  /** The number of the last anchored entry, 0 for none. */
  readonly anchoredSeq: number;
  readonly unanchored: number;
}

interface BlindWindow {
  readonly entries: number;
  /** When the oldest of them was written. */
  readonly since?: Instant;
  /** Its age, when the caller passed the time. */
  readonly sinceMs?: number;
}

interface VerifyProblem {
  readonly code: ProblemCode;
  /** Empty when the problem belongs to no tenant. */
  readonly tenant: string;
  readonly seq?: number;
  /** Its meaning and what to do. */
  readonly message: string;
}

const TAMPERED = "Keep the file as evidence and compare it with a backup.";

/** Each problem with its meaning and what to do. */
const PROBLEMS = {
  unreadable:
    "The input could not be read to its end, so the rest was not checked. Export again and repeat.",
  missing_start: `The trail does not begin with its first entry: older entries were cut off. ${TAMPERED}`,
  gap: `Entries before this one are missing: they were deleted. ${TAMPERED}`,
  out_of_order: `This number was there before, or comes too late: an entry was inserted, doubled or moved. ${TAMPERED}`,
  broken_link: `This entry does not follow the one before it: one of the two was replaced. ${TAMPERED}`,
  wrong_hash: `The entry was changed after it was written: its fields do not give its hash. ${TAMPERED}`,
  wrong_data: `The data was changed after it was written: it does not give its hash. ${TAMPERED}`,
  half_erased: `Data and salt are erased together or not at all; here one of them is left. ${TAMPERED}`,
  time_backwards: `The entry claims to be older than the one before it. ${TAMPERED}`,
  wrong_checkpoint: `The trail differs from the head that was given as trusted: it was rewritten since. ${TAMPERED}`,
  tenant_missing:
    "The tenant was asked for and has no entries here. Check the name, or look for a backup.",
  head_mismatch: `The store's own note of the end of this trail does not agree with its entries. ${TAMPERED}`,
  anchored_tenant_missing:
    "Anchors prove that this tenant had a trail, and there is none: it was deleted. If only some tenants were meant to be " +
    "verified, name them; otherwise look for a backup.",
  cut_off:
    "Anchors or the epoch file prove that the trail was longer: its last entries were deleted, or an old copy was restored. Unless the anchors " +
    `are newer than the export, which should then be made again: ${TAMPERED.toLowerCase()}`,
  anchor_mismatch: `The trail was rewritten: an anchor proves that this entry had another hash. ${TAMPERED}`,
  anchor_key_unknown:
    "The anchor was signed with a key that was not given, so it proves nothing. Give the public key, if it is one of yours.",
  anchor_signature: `The anchor was forged or changed: its signature is wrong, so it was not used. ${TAMPERED}`,
  anchor_hole: `Anchors before this one are missing: lines were taken out of the anchor file. ${TAMPERED}`,
  anchors_unreadable: "The anchors could not be read to their end. Check the file and repeat.",
} as const satisfies Record<string, string>;

type ProblemCode = keyof typeof PROBLEMS;

const MAX_PROBLEMS = 100;

/** Keeps the first hundred and counts the rest, so that a badly damaged log gives a readable report. */
export class ProblemList {
  readonly kept: VerifyProblem[] = [];
  count = 0;

  add(code: ProblemCode, at: { readonly tenant: string; readonly seq?: number }, fact = ""): void {
    this.count += 1;
    if (this.count > MAX_PROBLEMS) return;
    const message = fact === "" ? PROBLEMS[code] : `${PROBLEMS[code]} (${fact})`;
    this.kept.push(definedFields({ code, tenant: at.tenant, seq: at.seq, message }));
  }
}

export function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 300);
}

/** Checks one tenant's entries in a stream, and keeps only its position. */
export class ChainCheck {
  readonly #tenant: string;
  readonly #problems: ProblemList;
  readonly #anchors: readonly AnchoredPoint[];
  /** A head that the caller trusts; earlier entries are not checked. */
  readonly #from: ChainHead | undefined;
  #head: ChainHead;
  #nextAnchor = 0;
  #entries = 0;
  #erased = 0;
  #unanchoredSince: Instant | undefined;

  constructor(
    tenant: string,
    problems: ProblemList,
    anchors: readonly AnchoredPoint[] = [],
    from?: ChainHead,
  ) {
    this.#tenant = tenant;
    this.#problems = problems;
    this.#anchors = anchors;
    this.#from = from;
    this.#head = from ?? emptyHead(tenant);
    if (from !== undefined) this.#compareWithAnchors(from.seq, from.hash);
  }

  /** When the oldest entry without an anchor was written. */
  get unanchoredSince(): Instant | undefined {
    return this.#unanchoredSince;
  }

  get isEmpty(): boolean {
    return this.#entries === 0 && this.#from === undefined;
  }

  take(entry: AuditEntry): void {
    const { seq, hash } = entry;
    if (this.#from !== undefined && seq <= this.#from.seq) {
      if (seq === this.#from.seq && hash !== this.#from.hash) this.#add("wrong_checkpoint", entry);
      return;
    }
    this.#entries += 1;
    this.#checkContent(entry);
    this.#compareWithAnchors(seq, hash);
    const expected = this.#head.seq + 1;
    // The head stays, or one misplaced entry would make all later ones look wrong.
    if (!(seq >= expected)) {
      this.#add("out_of_order", entry);
      return;
    }
    if (seq > expected) {
      const missing = seq - expected;
      this.#add(expected === 1 ? "missing_start" : "gap", entry, `${missing} missing`);
    } else if (entry.prev !== this.#head.hash) this.#add("broken_link", entry);
    if (entry.at < this.#head.at) this.#add("time_backwards", entry);
    if (seq > this.#anchoredSeq()) this.#unanchoredSince ??= entry.at;
    this.#head = headAfter(entry);
  }

  finish(): TenantReport {
    const { seq } = this.#head;
    const anchored = this.#anchoredSeq();
    if (anchored > seq) {
      const fact = `it ends at ${seq}, anchors go up to ${anchored}`;
      const code = this.isEmpty ? "anchored_tenant_missing" : "cut_off";
      this.#problems.add(code, { tenant: this.#tenant, seq }, fact);
    }
    return {
      tenant: this.#tenant,
      entries: this.#entries,
      head: this.#head,
      erased: this.#erased,
      anchoredSeq: anchored,
      unanchored: Math.max(0, seq - Math.max(anchored, this.#from?.seq ?? 0)),
    };
  }

  #checkContent(entry: AuditEntry): void {
    const { data, salt } = entry;
    try {
      if (entryHash(entry) !== entry.hash) this.#add("wrong_hash", entry);
      if (data === null && salt === null) this.#erased += 1;
      else if (data === null || salt === null) this.#add("half_erased", entry);
      else if (dataHash(salt, data) !== entry.dataHash) this.#add("wrong_data", entry);
    } catch (error) {
      // Only a text that no entry can have, such as a lone surrogate, cannot be hashed.
      this.#add("wrong_hash", entry, reasonOf(error));
    }
  }

  /** Several processes may have anchored one number; all anchors must agree. */
  #compareWithAnchors(seq: number, hash: string): void {
    for (;;) {
      const anchor = this.#anchors[this.#nextAnchor];
      if (anchor === undefined || anchor.seq > seq) return;
      this.#nextAnchor += 1;
      if (anchor.seq === seq && anchor.hash !== hash) {
        this.#add("anchor_mismatch", { seq });
      }
    }
  }

  #anchoredSeq(): number {
    return this.#anchors.at(-1)?.seq ?? 0;
  }

  #add(code: Parameters<ProblemList["add"]>[0], at: { readonly seq: number }, fact?: string): void {
    this.#problems.add(code, { tenant: this.#tenant, seq: at.seq }, fact);
  }
}

/** Anchors in the order of writing, from a sink's `read` or from `readAnchors`. Shape: pulled. */
export type AnchorSource = AsyncIterable<Anchor> | Iterable<Anchor>;

/** The statement of a valid anchor: at this number the chain had this hash. */
export interface AnchoredPoint {
  readonly seq: number;
  readonly hash: string;
}

export interface CheckedAnchors {
  readonly count: number;
  /** When the newest was created; empty without any. */
  readonly lastAt: string;
  /** Ascending by number. */
  readonly points: ReadonlyMap<string, readonly AnchoredPoint[]>;
}

/**
 * Checks the list itself: each anchor signed with a known key, each following an earlier line, each writer's numbering
 * without a gap. An anchor with an invalid signature is reported and not trusted. Takes about 300 bytes of memory for
 * each anchor, which is for every 64th entry of a busy chain.
 */
export async function checkAnchors(
  anchors: AnchorSource,
  keys: PublicKeys,
  problems: ProblemList,
): Promise<CheckedAnchors> {
  const lines = new Set([GENESIS]);
  const counts = new Map<string, number>();
  const points = new Map<string, AnchoredPoint[]>();
  let count = 0;
  let lastAt = "";
  try {
    for await (const anchor of anchors) {
      const line = anchorHash(anchor);
      // An anchor that was sent again after a failure occurs twice and counts once.
      if (lines.has(line)) continue;
      const isLinked = lines.has(anchor.prev);
      lines.add(line);
      const { tenant, seq, hash, writer, n } = anchor;
      const wrong = signatureProblem(anchor, keys);
      if (wrong === "bad_signature") {
        problems.add("anchor_signature", anchor);
        continue;
      }
      if (!isLinked || n !== (counts.get(writer) ?? 0) + 1) {
        problems.add("anchor_hole", anchor, `anchor ${n} of writer ${writer}`);
      }
      counts.set(writer, n);
      if (wrong === "unknown_key") {
        problems.add("anchor_key_unknown", anchor, anchor.keyId);
        continue;
      }
      count += 1;
      if (anchor.at > lastAt) lastAt = anchor.at;
      const known = points.get(tenant);
      if (known === undefined) points.set(tenant, [{ seq, hash }]);
      else known.push({ seq, hash });
    }
  } catch (error) {
    problems.add("anchors_unreadable", { tenant: "" }, reasonOf(error));
  }
  for (const list of points.values()) list.sort((a, b) => a.seq - b.seq);
  return { count, lastAt, points };
}
