import { existsSync } from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import { createRedactor } from "../audit/redact.ts";
import { SallyportError } from "../model/errors.ts";
import { postgresStore, primaryPool } from "../store/postgres/index.ts";
import { sqliteStore } from "../store/sqlite/index.ts";
import type { Store } from "../store/store.ts";
import { definedFields } from "../util/defined-fields.ts";
import type { Shared } from "./connect.ts";
import { ensurePrivateFolder, prepareState, type StorePlace, stateOf } from "./state-folder.ts";

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
  place: StorePlace,
  { redactionKey, readOnly = false }: OpenOptions & { readonly readOnly?: boolean },
  epochFile: string | undefined,
): Promise<Store> {
  const redact = redactionKey === undefined ? undefined : createRedactor({ key: redactionKey });
  const shared = definedFields({ epochFile, redact });
  const { database, schema } = place;
  if (database === undefined) return sqliteStore({ file: storeFile(place), ...shared });
  const { default: pg } = await import("pg");
  const pool = primaryPool(pg, database, POOL);
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

/** For commands that must not create a store or its state folder: opens it for `work` alone. Throws not_found. */
export async function inStore<Done>(
  place: StorePlace,
  work: (store: Store) => Promise<Done>,
  use: "to read" | "to write" = "to read",
): Promise<Done> {
  if (!hasStore(place)) {
    const hint =
      "There is no store. Name its folder with --data, or the file or database with --store.";
    throw new SallyportError("not_found", { id: storeFile(place), hint });
  }
  const store = await open(place, { readOnly: use === "to read" }, undefined);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Whether a store exists; for a database only opening it shows that. */
export function hasStore(place: StorePlace): boolean {
  return place.database !== undefined || existsSync(storeFile(place));
}

const FILE = "sallyport.db";

export function storeFile({ data, file = path.join(data, FILE) }: StorePlace): string {
  return file;
}

/** What `--store` stands for. A file of another name than ours has a folder of its own beside it for a server's files. */
export function storeNamed(
  store: string,
  database?: string,
): Pick<StorePlace, "database"> | Pick<StorePlace, "data" | "file"> {
  if (database !== undefined) {
    const hint = "Name the store once: with --store or with --database.";
    throw new SallyportError("invalid_input", { what: "--store", hint });
  }
  if (/^postgres(ql)?:\/\//.test(store)) return { database: store };
  const file = path.resolve(store);
  const isOurs = path.basename(file) === FILE;
  return { data: isOurs ? path.dirname(file) : `${file}.sallyport`, file };
}

/** Flags of the commands that open a store themselves. */
export interface StoreFlags extends Shared {
  /** Set by `--store`. */
  readonly file?: string;
  readonly database?: string;
  readonly state?: string;
  readonly epochFile?: string;
}

/** The store that the flags of a command name. */
export function storePlaceOf(flags: StoreFlags): StorePlace {
  const { data, file, database, state, epochFile } = flags;
  return definedFields({ data: path.resolve(data), file, database, state, epochFile });
}

/** Options that several commands have, as `command.option` takes them. */
export const OPTION = {
  database: ["--database <url>", "a PostgreSQL store"],
  databaseToServe: [
    "--database <url>",
    "a PostgreSQL database instead of a file (or SALLYPORT_DATABASE, which keeps its password out of the list of processes)",
  ],
  state: [
    "--state <folder>",
    "folder of anchors, signing key and epoch file, outside --data (or SALLYPORT_STATE); by default your state folder",
  ],
  epochFile: ["--epoch-file <file>", "the epoch file; by default in the state folder"],
  records: ["--records", "compare records with the trail, however many there are"],
  noRecords: ["--no-records", "do not compare records with the trail"],
} as const;

/** An action that gets its flags, those of the program included, and then its arguments. */
export function withFlags<Flags>(work: (flags: Flags, ...args: string[]) => unknown) {
  return async (...given: unknown[]) => {
    const command = given.at(-1) as Command;
    await work(command.optsWithGlobals() as Flags, ...(given.slice(0, -2) as string[]));
  };
}
