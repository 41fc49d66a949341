import { mkdirSync } from "node:fs";
import path from "node:path";
import { postgresStore } from "../store/postgres/index.ts";
import { sqliteStore } from "../store/sqlite/index.ts";
import type { Store } from "../store/store.ts";

/** Where everything is kept: a PostgreSQL database, or one file in a folder. */
export interface StorePlace {
  readonly data: string;
  readonly database?: string;
  readonly schema?: string;
}

/** Closing it ends what was opened for it too. Throws store_unavailable, store_incompatible. */
export async function openStore({ data, database, schema }: StorePlace): Promise<Store> {
  if (database === undefined) {
    mkdirSync(data, { recursive: true, mode: 0o700 });
    return sqliteStore({ file: storeFile(data) });
  }
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: database, pipeline: true, max: 10 });
  // A line that breaks while nobody uses it is opened anew by the pool; without a listener it would end the process.
  pool.on("error", () => {});
  const store = await postgresStore({ pool, ...(schema === undefined ? {} : { schema }) }).catch(
    async (error: unknown) => {
      await pool.end();
      throw error;
    },
  );
  const close = async () => {
    await store.close();
    await pool.end();
  };
  return { ...store, close, [Symbol.asyncDispose]: close };
}

export function storeFile(data: string): string {
  return path.join(data, "sallyport.db");
}
