import { existsSync, mkdirSync } from "node:fs";
import path from "node:path";
import { SallyportError } from "../model/errors.ts";
import { postgresStore } from "../store/postgres/index.ts";
import { sqliteStore } from "../store/sqlite/index.ts";
import type { Store } from "../store/store.ts";
import { sha256Hex } from "../util/hash.ts";

/** Where everything is kept: a PostgreSQL database, or one file in a folder. */
export interface StorePlace {
  readonly data: string;
  readonly database?: string;
  readonly schema?: string;
}

/**
 * Closing it ends what was opened for it too. `unwatched` is for whoever puts a restored store in order; `to read` asks a
 * database for no more than the right to read, and works on a standby. Throws store_unavailable, store_incompatible.
 */
export async function openStore(place: StorePlace, how?: "unwatched" | "to read"): Promise<Store> {
  const { data, database, schema } = place;
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const watch = how === "unwatched" ? {} : { epochFile: epochPath(place) };
  if (database === undefined) return sqliteStore({ file: storeFile(data), ...watch });
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: database, ...POOL });
  // A line that breaks while nobody uses it is opened anew by the pool; without a listener it would end the process.
  pool.on("error", () => {});
  const store = await postgresStore({
    pool,
    readOnly: how === "to read",
    ...watch,
    ...(schema === undefined ? {} : { schema }),
  }).catch(async (error: unknown) => {
    await pool.end();
    throw error;
  });
  const close = async () => {
    await store.close();
    await pool.end();
  };
  return { ...store, close, [Symbol.asyncDispose]: close };
}

/** A connection that cannot be made, or whose other side is gone, is found out within seconds. */
export const POOL = {
  pipeline: true,
  max: 10,
  connectionTimeoutMillis: 5_000,
  keepAlive: true,
} as const;

/** For whoever only looks: a store that is not there is not made. Throws not_found. */
export async function openExisting(place: StorePlace): Promise<Store> {
  if (hasStore(place)) return openStore(place, "to read");
  const hint = "There is no store. Name its folder with --data, or the database with --database.";
  throw new SallyportError("not_found", { id: storeFile(place.data), hint });
}

/** Whether there is something to open; a database is always asked itself. */
export function hasStore({ data, database }: StorePlace): boolean {
  return database !== undefined || existsSync(storeFile(data));
}

export function storeFile(data: string): string {
  return path.join(data, "sallyport.db");
}

/** What a restored backup does not bring back. One folder may serve several databases. */
export function epochPath({ data, database, schema = "" }: StorePlace): string {
  if (database === undefined) return path.join(data, "sallyport.epoch");
  const { host, pathname } = new URL(database);
  const name = sha256Hex(`${host}${pathname} ${schema}`).slice(0, 12);
  return path.join(data, `sallyport-${name}.epoch`);
}
