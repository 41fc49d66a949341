import { existsSync } from "node:fs";
import path from "node:path";
import { createRedactor } from "../audit/redact.ts";
import { SallyportError } from "../model/errors.ts";
import { postgresStore } from "../store/postgres/index.ts";
import { sqliteStore } from "../store/sqlite/index.ts";
import type { Store } from "../store/store.ts";
import { definedFields } from "../util/defined-fields.ts";
import { ensurePrivateFolder, prepareState, type StorePlace, stateOf } from "./state-folder.ts";

export type { StorePlace } from "./state-folder.ts";

export interface OpenOptions {
  /** `unwatched` skips the epoch file; for the command that repairs a restored store. */
  readonly watch?: "watched" | "unwatched";
  readonly redactionKey?: Uint8Array | string;
  /** Receives warnings about the state folder. Shape: push. */
  readonly onNotice?: (text: string) => void;
}

/** Closing the store also closes its connections. Throws invalid_input, store_unavailable, store_incompatible. */
export async function openStore(place: StorePlace, options: OpenOptions = {}): Promise<Store> {
  const { watch = "watched", onNotice = toStandardError } = options;
  ensurePrivateFolder(place.data);
  const { folder, epochFile } = stateOf(place);
  const store = await open(place, options, watch === "watched" ? epochFile : undefined);
  if (watch === "unwatched") return store;
  try {
    // Only after the store was opened, so that a failed open leaves no state folder.
    const isNew = prepareState(place) === "new";
    if (isNew && (await store.heads()).some(({ seq }) => seq > 0)) {
      onNotice(
        `There was no state folder for this store on this machine; a new one was created: ${folder}. Whether the store was replaced by an older copy before now cannot be known.`,
      );
    }
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

function toStandardError(text: string): void {
  process.stderr.write(`${text}\n`);
}

async function open(
  { data, database, schema }: StorePlace,
  { redactionKey, readOnly = false }: OpenOptions & { readonly readOnly?: boolean },
  epochFile: string | undefined,
): Promise<Store> {
  const redact = redactionKey === undefined ? undefined : createRedactor({ key: redactionKey });
  const shared = definedFields({ epochFile, redact });
  if (database === undefined) return sqliteStore({ file: storeFile(data), ...shared });
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: database, ...POOL });
  // The pool replaces an idle connection that breaks; without a listener the error would end the process.
  pool.on("error", () => {});
  const store = await postgresStore({
    pool,
    // Needs only read permission, and works on a standby.
    readOnly,
    ...shared,
    ...definedFields({ schema }),
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

/** Failed and dead connections are detected within seconds. */
export const POOL = {
  pipeline: true,
  max: 10,
  connectionTimeoutMillis: 5_000,
  keepAlive: true,
} as const;

/** For commands that must not create a store or its state folder. Throws not_found. */
export async function openExisting(
  place: StorePlace,
  use: "to read" | "to write" = "to read",
): Promise<Store> {
  if (hasStore(place)) return open(place, { readOnly: use === "to read" }, undefined);
  const hint = "There is no store. Name its folder with --data, or the database with --database.";
  throw new SallyportError("not_found", { id: storeFile(place.data), hint });
}

/** Whether a store exists; for a database only opening it tells. */
export function hasStore({ data, database }: StorePlace): boolean {
  return database !== undefined || existsSync(storeFile(data));
}

export function storeFile(data: string): string {
  return path.join(data, "sallyport.db");
}
