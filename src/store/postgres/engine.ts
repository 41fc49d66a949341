import { type ChainHead, emptyHead } from "../../model/audit-entry.ts";
import { SallyportError } from "../../model/errors.ts";
import { type Clock, systemClock, toIso } from "../../util/clock.ts";
import { createIds } from "../../util/ids.ts";
import type { Random } from "../../util/random.ts";
import type { Timers } from "../../util/timers.ts";
import { type AuditRow, entriesOf } from "../audit-rows.ts";
import type { Engine } from "../engine.ts";
import { GroupCommit, type Waiting } from "../group-commit.ts";
import { asStoreError, type PgPool } from "./connection.ts";
import { GroupSpoiled } from "./members.ts";
import { migrate } from "./migrate.ts";
import { Notices } from "./notices.ts";
import { Reader } from "./reader.ts";
import { WriteSession } from "./session.ts";
import { Writer } from "./writer.ts";

export interface PostgresEngineOptions {
  readonly pool: PgPool;
  readonly schema: string;
  readonly random: Random;
  readonly timers: Timers;
  /** How long a write outlasts a database that is away before it answers store_unavailable. */
  readonly patienceMs: number;
  /** Only for tests that move the clock; otherwise the database's own decides. */
  readonly clock?: Clock;
}

/** Many processes over one database. No process is special: all coordination is rows. */
export async function postgresEngine(options: PostgresEngineOptions): Promise<Engine> {
  const { pool, schema, random, timers, patienceMs, clock } = options;
  // An idle connection that breaks would otherwise end the process; whoever needs it next gets a new one or an error.
  pool.on?.("error", () => {});
  await migrate(pool, schema);
  const writer = new Writer({ schema, random, ...(clock === undefined ? {} : { clock }) });
  const session = new WriteSession({
    pool,
    schema,
    writer,
    timers,
    patienceMs,
  });
  const now = (): string =>
    clock === undefined
      ? // As a query of its own it is asked once, before the rows are looked for, so an index on a time can be used.
        "(SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint)"
      : `${clock.now()}::bigint`;
  const reader = new Reader({ pool, schema, timers, now });
  // A longer name is cut by LISTEN and refused by pg_notify.
  const channel = `${schema}_commit`.slice(0, 63);
  const notices = new Notices({ pool, channel, timers });
  const ids = createIds({ clock: clock ?? systemClock, random });
  const group = new GroupCommit({ write: writeGroup, timers });
  let closed = false;

  async function writeGroup(members: readonly Waiting[]): Promise<void> {
    try {
      const results = await session.commit(members);
      for (const [index, one] of members.entries()) {
        const result = results[index];
        if (result === undefined) one.reject(new SallyportError("commit_unknown"));
        else one.resolve(result);
      }
      notices.send();
    } catch (error) {
      const [only] = members;
      if (members.length > 1 && (error instanceof GroupSpoiled || !isAboutTheServer(error))) {
        // One member failed and took the group with it: each gets a transaction of its own, so it fails alone.
        for (const one of members) await writeGroup([one]);
      } else if (error instanceof GroupSpoiled && only !== undefined) {
        only.resolve(error.refusal);
      } else {
        for (const one of members) one.reject(asStoreError(error));
      }
    }
  }

  async function heads(tenant?: string): Promise<ChainHead[]> {
    open();
    const rows = await reader.query<{ tenant: string; seq: number; hash: string; at: number }>(
      `SELECT tenant, seq, hash, at FROM ${schema}.chains WHERE seq > 0 AND ($1::text IS NULL OR tenant = $1) ORDER BY tenant`,
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
    commit: (tenant, change) => group.submit(tenant, change),
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
        `SELECT * FROM ${schema}.audit WHERE tenant = $1 AND seq >= $2 ORDER BY seq LIMIT $3`,
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
      await group.close();
      await notices.close();
      session.close();
    },
  };
}

function isAboutTheServer(error: unknown): boolean {
  const mapped = asStoreError(error);
  return (
    mapped instanceof SallyportError &&
    (mapped.code === "store_unavailable" || mapped.code === "commit_unknown")
  );
}
