import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import Sqlite from "better-sqlite3";
import pg from "pg";
import { freshDatabase } from "../../tests/support/postgres-database.ts";
import { fileIn, type Place } from "./peer.ts";
import type { System } from "./systems/index.ts";

/** A folder and an empty database for one system and one experiment. */
export async function newPlace(parent: string, server: string, name: string): Promise<Place> {
  const dir = path.join(parent, name);
  await mkdir(dir);
  await writeFile(path.join(dir, "world"), "20");
  await writeFile(path.join(dir, "effects"), "");
  return { dir, url: (await freshDatabase(server)).url };
}

/** What the system's data takes on disk, with its log written back. */
export async function bytesIn({ dir, url }: Place, { store }: System): Promise<number> {
  if (store === "sqlite") {
    const db = new Sqlite(fileIn(dir));
    db.pragma("wal_checkpoint(TRUNCATE)");
    const used = Number(db.pragma("page_count", { simple: true }));
    const free = Number(db.pragma("freelist_count", { simple: true }));
    const bytes = (used - free) * Number(db.pragma("page_size", { simple: true }));
    db.close();
    return bytes;
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  // Dead rows are no data; what a plain vacuum gives back to the table but not to the disk still counts.
  await client.query("VACUUM");
  const { rows } = await client.query("SELECT pg_database_size(current_database()) AS bytes");
  await client.end();
  return Number(rows[0].bytes);
}
