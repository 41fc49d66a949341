import pg from "pg";
import { postgresStore } from "../../src/store/postgres/index.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import type { Store } from "../../src/store/store.ts";
import type { TaskStore } from "../../src/store/tasks.ts";
import type { Place } from "../support/stores.ts";

export const TENANT = "acme";

/** Opens the store at a place as a process of its own does: with its own connections, by the real clock. */
export async function openPlace(
  place: Place,
): Promise<{ store: TaskStore; whole: Store; close(): Promise<void> }> {
  if (place.kind === "memory") throw new TypeError("no other process can open it");
  if (place.kind === "sqlite") {
    const whole = sqliteStore({ file: place.file, patienceMs: 60_000 });
    return { store: whole.tenant(TENANT).tasks, whole, close: () => whole.close() };
  }
  const { url, schema } = place;
  const pool = new pg.Pool({ connectionString: url, max: 4, pipeline: true });
  const whole = await postgresStore({ pool, schema, patienceMs: 60_000 });
  return {
    store: whole.tenant(TENANT).tasks,
    whole,
    async close() {
      await whole.close();
      await pool.end();
    },
  };
}
