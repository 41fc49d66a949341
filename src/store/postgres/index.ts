import { createRedactor } from "../../audit/redact.ts";
import type { Clock } from "../../util/clock.ts";
import { type Random, systemRandom } from "../../util/random.ts";
import { systemTimers, type Timers } from "../../util/timers.ts";
import { createStore } from "../create-store.ts";
import { epochFile } from "../epoch.ts";
import type { Store } from "../store.ts";
import type { Redact } from "../tenant-engine.ts";
import { watchedEngine } from "../watched-engine.ts";
import type { PgPool } from "./connection.ts";
import { postgresEngine } from "./engine.ts";

export type { PgPool } from "./connection.ts";
export { postgresEngine } from "./engine.ts";
export { type ServerFinding, serverFindings } from "./migrate.ts";

export interface PostgresStoreOptions {
  /**
   * `new pg.Pool({ connectionString, pipeline: true, connectionTimeoutMillis: 5_000, keepAlive: true })`: pipelining
   * saves round trips. Who opens the pool ends it. It needs room for one writing and one listening connection beside those
   * that read; less than three in all is refused.
   */
  readonly pool: PgPool;
  /** Where the tables live; created when missing. */
  readonly schema?: string;
  /** Only looks: for auditors, and for standbys. Nothing is migrated and every write is refused. */
  readonly readOnly?: boolean;
  readonly redact?: Redact;
  /**
   * A file that a restored backup does not bring back; it notices when an older copy was put in place, and then nothing is
   * executed. One per store, shared by its processes on this machine.
   */
  readonly epochFile?: string;
  readonly random?: Random;
  readonly timers?: Timers;
  /** How long a call waits for a database that is away or silent; 10 seconds unless told otherwise. */
  readonly patienceMs?: number;
  /** Only for tests that move the clock; otherwise the database's own decides. */
  readonly clock?: Clock;
}

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
