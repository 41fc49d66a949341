import { type ChainHead, emptyHead } from "../../model/audit-entry.ts";
import { SallyportError } from "../../model/errors.ts";
import { EPOCH, SWITCHES } from "../../model/switch.ts";
import { type Clock, systemClock, toIso } from "../../util/clock.ts";
import { createIds } from "../../util/ids.ts";
import type { Random } from "../../util/random.ts";
import type { Timers } from "../../util/timers.ts";
import { ClockWatch } from "../clock-watch.ts";
import type { Engine } from "../engine.ts";
import { type AuditRow, entriesOf } from "../tenant-engine.ts";
import { Lines, type PgPool } from "./connection.ts";

import { LostTail } from "./lost-tail.ts";
import { checkPool, migrate, refuseUnsafe } from "./migrate.ts";
import { Notices } from "./notices.ts";
import { Reader } from "./reader.ts";

import { writePath } from "./write-path.ts";
import { Writer } from "./writer.ts";

export interface PostgresEngineOptions {
  readonly pool: PgPool;
  readonly schema: string;
  readonly random: Random;
  readonly timers: Timers;
  /** How long a call outlasts a database that is away or silent before it answers store_unavailable. */
  readonly patienceMs: number;
  /** Only looks: for auditors, and for standbys. Nothing is migrated and every write is refused. */
  readonly readOnly?: boolean;
  /** Only for tests that move the clock; otherwise the database's own decides. */
  readonly clock?: Clock;
  /** Compares the clock with time that nobody can set; left out, it is done unless a test moves the clock. */
  readonly clockWatch?: ClockWatch;
}

/** Many processes over one database. No process is special: all coordination is rows. */
export async function postgresEngine(options: PostgresEngineOptions): Promise<Engine> {
  const { pool, schema, random, timers, patienceMs, readOnly = false, clock } = options;
  checkPool(pool, readOnly);
  // An idle connection that breaks would otherwise end the process; whoever needs it next gets a new one or an error.
  pool.on?.("error", () => {});
  const lines = new Lines({ pool, timers });
  await migrate(lines, { schema, patienceMs, readOnly });
  if (!readOnly) await refuseUnsafe(lines, patienceMs);
  const now = (): string =>
    clock === undefined
      ? // As a query of its own it is asked once, before the rows are looked for, so an index on a time can be used.
        "(SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint)"
      : `${clock.now()}::bigint`;
  const reader = new Reader({ lines, schema, timers, patienceMs, now });
  const tail = new LostTail(epochs);
  const clockWatch = options.clockWatch ?? (clock ? undefined : new ClockWatch());
  const writer = new Writer({ schema, random, tail, clockWatch, ...(clock && { clock }) });
  // A longer name is cut by LISTEN and refused by pg_notify.
  const channel = `${schema}_commit`.slice(0, 63);
  const notices = new Notices({ lines, channel, timers, patienceMs, isDeaf: readOnly });
  const ids = createIds({ clock: clock ?? systemClock, random });
  const onCommit = () => notices.send();
  const writes = writePath({ lines, schema, writer, tail, timers, patienceMs, onCommit });
  let closed = false;

  /** Which epoch each tenant is in. */
  async function epochs(): Promise<ReadonlyMap<string, string>> {
    const text = `SELECT tenant, state FROM ${schema}.${SWITCHES.name} WHERE id = $1`;
    const rows = await reader.query<{ tenant: string; state: string }>(text, [EPOCH]);
    return new Map(rows.map(({ tenant, state }) => [tenant, state]));
  }

  async function heads(tenant?: string): Promise<ChainHead[]> {
    open();
    const rows = await reader.query<{ tenant: string; seq: number; hash: string; at: number }>(
      `SELECT c.tenant, e.seq, e.hash, e.at FROM ${schema}.chains AS c, LATERAL (SELECT seq, hash, at FROM ${schema}.audit WHERE tenant = c.tenant ORDER BY seq DESC LIMIT 1) AS e WHERE $1::text IS NULL OR c.tenant = $1 ORDER BY c.tenant`,
      [tenant ?? null],
    );
    return rows.map((row) => ({ ...row, at: toIso(row.at) }));
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
    async entries(tenant, { after, limit }) {
      open();
      const rows = await reader.query<AuditRow>(
        `SELECT tenant, seq, at, type, subject, session, actor, data, salt, hash FROM ${schema}.audit WHERE tenant = $1 AND seq >= $2 ORDER BY seq LIMIT $3`,
        [tenant, after, limit + 1],
      );
      return entriesOf(rows, after, limit);
    },
    head: async (tenant) => (await heads(tenant))[0] ?? emptyHead(tenant),
    heads: () => heads(),
    async now() {
      const [row] = await reader.query<{ now: number }>(`SELECT ${now()} AS now`, []);
      return row?.now ?? 0;
    },
    onCommit: (listener) => notices.add(listener),
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
