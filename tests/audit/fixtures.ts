// Trails, stores and sinks for the audit tests, small enough to be tampered with by hand.

import {
  type Anchor,
  type AnchorSink,
  anchorHash,
  createSigner,
  generateSigningKey,
  signAnchor,
} from "../../src/audit/anchor.ts";
import {
  type AuditEntry,
  type ChainHead,
  dataHash,
  emptyHead,
  entryHash,
  GENESIS,
  headAfter,
  sealEntry,
} from "../../src/model/audit-entry.ts";
import type { AuditReader, Store, TenantStore } from "../../src/store/store.ts";
import { toIso } from "../../src/util/clock.ts";
import { type Random, seededRandom } from "../../src/util/random.ts";

export const START = Date.UTC(2026, 10, 15, 6);

/** Full size of the slow tests: `SCALE=full npm test`. */
export const FULL = process.env["SCALE"] === "full";

export function appendEntry(
  trail: AuditEntry[],
  tenant: string,
  at = START,
  data = {},
): AuditEntry {
  const last = trail.at(-1);
  const head = last === undefined ? emptyHead(tenant) : headAfter(last);
  const draft = {
    type: "decision.staged",
    subject: `dec_${head.seq + 1}`,
    session: "ses_1",
    actor: "agent:billing",
    data: { to: "pending_tech", number: head.seq + 1, ...data },
  };
  const entry = sealEntry(head, draft, toIso(at), `salt-${tenant}-${head.seq + 1}`);
  trail.push(entry);
  return entry;
}

/** One entry a second. */
export function makeTrail(tenant: string, count: number): AuditEntry[] {
  const trail: AuditEntry[] = [];
  for (let n = 0; n < count; n += 1) appendEntry(trail, tenant, START + n * 1_000);
  return trail;
}

/** What a writer of the database can do: change entries and compute a valid chain again. */
export function rehash(trail: readonly AuditEntry[]): AuditEntry[] {
  let head: ChainHead = { ...emptyHead(trail[0]?.tenant ?? ""), hash: GENESIS };
  return trail.map((entry) => {
    const { data, salt } = entry;
    const hashed = data === null || salt === null ? entry.dataHash : dataHash(salt, data);
    const unsealed = { ...entry, seq: head.seq + 1, dataHash: hashed, prev: head.hash };
    const sealed = { ...unsealed, hash: entryHash(unsealed) };
    head = headAfter(sealed);
    return sealed;
  });
}

export function edited(entry: AuditEntry, changes: Partial<AuditEntry>): AuditEntry {
  return { ...entry, ...changes };
}

const key = generateSigningKey();
export const SIGNER = createSigner(key);
export const PUBLIC_KEYS = [key.publicKey];

/** Anchors of one writer for these heads, linked as an anchorer links them. */
export async function anchorsFor(heads: readonly ChainHead[], writer = "w1"): Promise<Anchor[]> {
  const anchors: Anchor[] = [];
  let prev = GENESIS;
  for (const { tenant, seq, hash, at } of heads) {
    const n = anchors.length + 1;
    const anchor = await signAnchor(SIGNER, { writer, n, tenant, seq, hash, at, prev });
    anchors.push(anchor);
    prev = anchorHash(anchor);
  }
  return anchors;
}

export function readerOf(tenant: string, entries: readonly AuditEntry[]): AuditReader {
  return {
    tenant,
    read: async ({ after, limit }) => entries.filter((one) => one.seq > after).slice(0, limit),
    async head() {
      const last = entries.at(-1);
      return last === undefined ? emptyHead(tenant) : headAfter(last);
    },
  };
}

export interface FakeStore extends Pick<Store, "heads" | "tenant" | "onCommit"> {
  readonly trails: Map<string, AuditEntry[]>;
  add(tenant: string, count?: number, at?: number): void;
}

export function fakeStore(trails: readonly (readonly AuditEntry[])[] = []): FakeStore {
  const listeners = new Set<() => void>();
  const all = new Map(trails.map((trail) => [trail[0]?.tenant ?? "", [...trail]]));
  const trailOf = (tenant: string) => {
    const known = all.get(tenant) ?? [];
    all.set(tenant, known);
    return known;
  };
  return {
    trails: all,
    add(tenant, count = 1, at = START) {
      for (let n = 0; n < count; n += 1) appendEntry(trailOf(tenant), tenant, at);
      for (const listener of listeners) listener();
    },
    heads: async () =>
      [...all.values()].flatMap((trail) => trail.slice(-1)).map((entry) => headAfter(entry)),
    tenant: (tenant) =>
      ({ tenant, audit: readerOf(tenant, all.get(tenant) ?? []) }) as unknown as TenantStore,
    onCommit(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export interface MemorySink extends AnchorSink {
  readonly anchors: Anchor[];
  /** When set, it fails: before writing or, worse, after. */
  failing: "no" | "before" | "after" | "hangs";
}

export function memorySink(): MemorySink {
  const sink: MemorySink = {
    anchors: [],
    failing: "no",
    async append(anchor) {
      if (sink.failing === "before") throw new Error("no route to the witness");
      if (sink.failing === "hangs") await new Promise(() => {});
      sink.anchors.push(anchor);
      if (sink.failing === "after") throw new Error("the witness did not answer");
    },
    async *read() {
      yield* sink.anchors;
    },
  };
  return sink;
}

/** Repeatable choices: a failing run is repeated by its seed. */
export function chooser(seed: number | string): {
  int(below: number): number;
  pick<T>(from: readonly T[]): T;
} {
  const random: Random = seededRandom(seed);
  const int = (below: number) => {
    const bytes = random.bytes(4);
    return new DataView(bytes.buffer, bytes.byteOffset).getUint32(0) % below;
  };
  return { int, pick: (from) => from[int(from.length)] as (typeof from)[number] };
}

export function codesOf(report: {
  readonly problems: readonly { readonly code: string }[];
}): string[] {
  return [...new Set(report.problems.map((problem) => problem.code))].sort();
}

export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}
