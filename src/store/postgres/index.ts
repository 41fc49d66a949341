import { createRedactor } from "../../audit/redact.ts";
import { type AuditEntry, type Block, type ChainHead, emptyHead } from "../../model/audit-entry.ts";
import { SallyportError } from "../../model/errors.ts";
import { EPOCH, SWITCHES } from "../../model/switch.ts";
import { type Clock, systemClock, toIso } from "../../util/clock.ts";
import { createIds } from "../../util/ids.ts";
import { type Random, systemRandom } from "../../util/random.ts";
import { systemTimers, type Timers } from "../../util/timers.ts";
import { CommitListeners, type Engine } from "../engine.ts";
import { createStore, type Store } from "../store.ts";
import {
  type AuditRow,
  type BeforeBlocks,
  entriesOf,
  entriesOfBlocks,
  type Redact,
  type TrailPart,
} from "../tenant-engine.ts";
import { ClockWatch, trustedTime } from "../turn.ts";
import { epochFile, watchedEngine } from "../watched-engine.ts";
import { postgresCallIndex } from "./call-index.ts";
import { Lines, type PgClient, type PgPool } from "./connection.ts";
import { HotPath } from "./hot.ts";
import { Reader } from "./reader.ts";
import { checkPool, migrate, refuseUnsafe } from "./schema.ts";
import { LostTail, writePath } from "./write-path.ts";
import { endOf, Writer } from "./writer.ts";

export type { PgPool } from "./connection.ts";
export { type PgDriver, primaryPool } from "./hosts.ts";
export { type ServerFinding, serverFindings } from "./schema.ts";

// The PostgreSQL engine: many processes over one database. Writes go through write-path.ts, reads through reader.ts.

export interface PostgresEngineOptions {
  /**
   * `new pg.Pool({ connectionString, pipeline: true, connectionTimeoutMillis: 5_000, keepAlive: true })`: pipelining saves
   * round trips. The caller ends the pool. It needs one connection to write, one to listen and one or more to read; fewer
   * than three in all are refused.
   */
  readonly pool: PgPool;
  /** Schema that holds the tables; created when missing. */
  readonly schema: string;
  readonly random: Random;
  readonly timers: Timers;
  /** How long a call waits for a database that is away or silent before it answers store_unavailable. */
  readonly patienceMs: number;
  /** Opens the store to be read, for auditors and standbys: nothing is migrated and every write is refused. */
  readonly readOnly?: boolean;
  /** Only for tests that move the clock; otherwise the database's own decides. */
  readonly clock?: Clock;
  /** `never` writes everything by the general path, to compare with. Default: what fits goes in one statement. */
  readonly hot?: "auto" | "never";
  /** Compares the clock with monotonic time. Default: unless a test moves the clock. */
  readonly clockWatch?: ClockWatch;
}

export interface PostgresStoreOptions
  extends Omit<
    PostgresEngineOptions,
    "schema" | "random" | "timers" | "patienceMs" | "clockWatch" | "hot"
  > {
  /** Schema that holds the tables, created when missing; `sallyport` when left out. */
  readonly schema?: string;
  readonly random?: Random;
  readonly timers?: Timers;
  /** How long a call waits for a database that is away or silent; 10 seconds when left out. */
  readonly patienceMs?: number;
  readonly redact?: Redact;
  /**
   * A file that is not part of a backup: it shows when an older copy of the store was put in place, and then nothing is
   * executed. One per store, shared by its processes on this machine.
   */
  readonly epochFile?: string;
}

/** Tenant names come from outside, so the number of remembered ones is bounded. */
const MOST_KNOWN = 4_096;

/** For many processes that share the work. Throws store_unavailable, store_incompatible. */
export async function postgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { redact = createRedactor({}), epochFile: file, ...rest } = options;
  const engine = await postgresEngine({
    schema: "sallyport",
    random: systemRandom,
    timers: systemTimers,
    patienceMs: 10_000,
    ...rest,
  });
  const watched = file === undefined ? engine : watchedEngine(engine, epochFile(file));
  return createStore(watched, { redact });
}

/** No process is special: all coordination is done by rows. */
export async function postgresEngine(options: PostgresEngineOptions): Promise<Engine> {
  const { pool, schema, random, timers, patienceMs, readOnly = false, clock } = options;
  checkPool(pool, readOnly);
  // Without a listener an idle connection that breaks would end the process. The next user gets a new one or an error.
  pool.on?.("error", () => {});
  const lines = new Lines({ pool, timers });
  await migrate(lines, { schema, patienceMs, readOnly });
  if (!readOnly) await refuseUnsafe(lines, patienceMs);
  const now = (): string =>
    clock === undefined
      ? // A subquery is evaluated once, before the rows are searched, so an index on a time can be used.
        "(SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint)"
      : `${clock.now()}::bigint`;
  const reader = new Reader({ lines, schema, timers, patienceMs, now });
  const tail = new LostTail(epochs);
  const clockWatch = options.clockWatch ?? (clock ? undefined : new ClockWatch());
  const parts = { schema, random, tail, clockWatch, clock };
  const writer = new Writer(parts);
  const hot = options.hot === "never" ? undefined : new HotPath(parts);
  // LISTEN truncates a longer name and pg_notify refuses it.
  const channel = `${schema}_commit`.slice(0, 63);
  const notices = new Notices({ lines, channel, timers, patienceMs, listens: !readOnly });
  const ids = createIds({ clock: clock ?? systemClock, random });
  const onCommit = () => notices.send();
  const writes = writePath({ lines, schema, writer, hot, tail, timers, patienceMs, onCommit });
  const olds = new Map<string, { readonly end: BeforeBlocks }>();
  let closed = false;

  /** The current epoch of each tenant. */
  async function epochs(): Promise<ReadonlyMap<string, string>> {
    const text = `SELECT tenant, state FROM ${schema}.${SWITCHES.name} WHERE id = $1`;
    const rows = await reader.query<{ tenant: string; state: string }>(text, [EPOCH]);
    return new Map(rows.map(({ tenant, state }) => [tenant, state]));
  }

  async function heads(tenant?: string): Promise<ChainHead[]> {
    open();
    const rows = await reader.query<{ tenant: string; seq: number; hash: string; at: number }>(
      `SELECT c.tenant, e.seq, e.hash, e.at FROM ${schema}.chains AS c, LATERAL (${endOf(schema, "c.tenant")}) AS e WHERE $1::text IS NULL OR c.tenant = $1 ORDER BY c.tenant`,
      [tenant ?? null],
    );
    return rows.map((row) => ({ ...row, at: toIso(row.at) }));
  }

  /** The end of a chain's entries of the first format. None are added any more, so it is read once. */
  async function beforeBlocks(tenant: string): Promise<BeforeBlocks> {
    const known = olds.get(tenant);
    if (known !== undefined) return known.end;
    const [end] = await reader.query<ChainHead>(
      `SELECT seq, hash FROM ${schema}.audit_entries WHERE tenant = $1 ORDER BY seq DESC LIMIT 1`,
      [tenant],
    );
    if (olds.size >= MOST_KNOWN) olds.clear();
    olds.set(tenant, { end });
    return end;
  }

  async function entries(tenant: string, { after, limit }: TrailPart): Promise<AuditEntry[]> {
    const before = await beforeBlocks(tenant);
    const old: AuditEntry[] = [];
    if (before !== undefined && after < before.seq) {
      const rows = await reader.query<AuditRow>(
        `SELECT tenant, seq, at, type, subject, session, actor, data, salt, data_hash, hash FROM ${schema}.audit_entries WHERE tenant = $1 AND seq >= $2 ORDER BY seq LIMIT $3`,
        [tenant, after, limit + 1],
      );
      old.push(...entriesOf(rows, { after, limit }));
    }
    const rest = { after: Math.max(after, before?.seq ?? 0), limit: limit - old.length };
    if (rest.limit <= 0) return old;
    // From the block before the first, whose head is the link, to the one with the last entry that is asked for.
    const blocks = await reader.query<Block>(
      `SELECT last, at, encode(head, 'hex') AS head, body FROM ${schema}.audit_blocks WHERE tenant = $1
AND last >= coalesce((SELECT max(last) FROM ${schema}.audit_blocks WHERE tenant = $1 AND last <= $2::bigint), 0)
AND last <= coalesce((SELECT min(last) FROM ${schema}.audit_blocks WHERE tenant = $1 AND last >= $2::bigint + $3::bigint), ${Number.MAX_SAFE_INTEGER}) ORDER BY last`,
      [tenant, rest.after, rest.limit],
    );
    return [...old, ...entriesOfBlocks(tenant, blocks, rest, before)];
  }

  function open(): void {
    if (closed) throw new SallyportError("store_closed");
  }

  return {
    name: "postgres",
    capabilities: { durable: true, manyProcesses: true },
    newId: () => ids.next(),
    commit(tenant, change) {
      if (readOnly) {
        const hint = "This store was opened to be read. Open it without readOnly to write.";
        return Promise.reject(new SallyportError("not_allowed", { reason: "read_only", hint }));
      }
      return writes.commit(tenant, change);
    },
    lostTail: (tenant) => tail.of(tenant),
    async get(tenant, table, id) {
      open();
      return reader.get(tenant, table, id);
    },
    async find(tenant, table, query) {
      open();
      return reader.find(tenant, table, query);
    },
    async entries(tenant, part) {
      open();
      return entries(tenant, part);
    },
    head: async (tenant) => (await heads(tenant))[0] ?? emptyHead(tenant),
    heads: () => heads(),
    async now() {
      const asked = clockWatch?.elapsedMs();
      return trustedTime(await reader.now(), clockWatch, asked);
    },
    onCommit: (listener) => notices.add(listener),
    // A store that is only read has it in memory.
    ...(!readOnly && {
      callIndex: (tenant: string) =>
        postgresCallIndex(tenant, schema, (text, values) => reader.query(text, values)),
    }),
    async backdate(tenant, table, id, column, at) {
      const text = `UPDATE ${schema}.${table.name} SET ${column} = $3 WHERE tenant = $1 AND id = $2`;
      await reader.query(text, [tenant, id, at]);
    },
    async close() {
      if (closed) return;
      closed = true;
      await writes.drain();
      await notices.close();
      writes.close();
    },
  };
}

export interface NoticesOptions {
  readonly lines: Lines;
  readonly channel: string;
  readonly timers: Timers;
  readonly patienceMs: number;
  /** False for a store that is only read: a standby refuses LISTEN, so it polls. */
  readonly listens: boolean;
}

/** NOTIFY inside the transaction serialises commits (measured: 3,000 per second instead of 7,100), so it is sent afterwards. */
const NOTIFY_EVERY_MS = 25;
const RETRY_MS = 1_000;

/** A hint does not wait for the disk: that would delay the flush of the next group. */
const HINT = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, '')";

/** Wake-ups between processes. Best effort: nothing may depend on a wake-up arriving. */
export class Notices {
  readonly #options: NoticesOptions;
  readonly #listeners = new CommitListeners();
  #listening: PgClient | undefined;
  #wanted = false;
  #connecting: Promise<void> | undefined;
  #sending = false;
  /** Something was committed after the hint that is being sent was requested. */
  #missed = false;
  #closed = false;

  constructor(options: NoticesOptions) {
    this.#options = options;
  }

  add(listener: () => void): () => void {
    this.#wanted = true;
    this.#listen();
    return this.#listeners.add(listener);
  }

  /** Wakes this process immediately and the others soon, with one hint for all commits in between. */
  send(): void {
    this.#listeners.tell();
    this.#missed = this.#sending;
    if (this.#sending || this.#closed) return;
    this.#sending = true;
    const { lines, channel, timers, patienceMs } = this.#options;
    timers.after(NOTIFY_EVERY_MS, () => {
      if (this.#closed) return;
      // One at a time: on a silent network many would use up the pool.
      const hint = lines.query({ text: HINT, values: [channel] }, patienceMs).catch(() => {
        // A lost hint does no harm: waiting processes poll as well.
      });
      void hint.then(() => {
        this.#sending = false;
        if (this.#missed) this.send();
      });
    });
  }

  #listen(): void {
    if (!this.#options.listens) return;
    if (this.#closed || !this.#wanted || this.#listening || this.#connecting) return;
    this.#connecting = this.#connect().finally(() => {
      this.#connecting = undefined;
    });
  }

  async #connect(): Promise<void> {
    const { lines, patienceMs } = this.#options;
    try {
      const client = await lines.connect(patienceMs);
      const lost = (): void => {
        if (this.#listening !== client) return;
        this.#listening = undefined;
        lines.drop(client);
        this.#options.timers.after(RETRY_MS, () => this.#listen());
      };
      client.on("error", lost);
      client.on("notification", () => this.#listeners.tell());
      this.#listening = client;
      const text = `LISTEN ${this.#options.channel}`;
      await lines.within(client, patienceMs, () => client.query({ text }));
    } catch {
      // No hints for now: polling continues, and so do attempts to listen.
      this.#hangUp();
      this.#options.timers.after(RETRY_MS, () => this.#listen());
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#connecting;
    this.#hangUp();
  }

  #hangUp(): void {
    const client = this.#listening;
    this.#listening = undefined;
    if (client !== undefined) this.#options.lines.drop(client);
  }
}
