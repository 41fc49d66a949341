import { readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { isQuick } from "../checkout.ts";
import { countingProxy } from "./counting-proxy.ts";
import { fileIn, type Place } from "./peer.ts";
import { newPlace } from "./places.ts";
import { systemOf } from "./systems/index.ts";
import { startWorker } from "./worker.ts";

/** What one cycle of a lone caller asks of the database, counted outside the system. */
export interface Cost {
  readonly system: string;
  readonly commits: number;
  /** Missing on SQLite, which is in the process. What a person reads before they say yes does not count. */
  readonly trips?: { readonly propose: number; readonly approve: number };
}

const CYCLES = isQuick ? 3 : 20;
const WARM_UP = 3;
/** Hints to other processes are sent together, some ms after their commits. */
const HINT_MS = 100;

export async function measureCost(system: string, dir: string, server: string): Promise<Cost> {
  const place = await newPlace(dir, server, `cost-${system}`);
  const { store } = systemOf(system);
  await using proxy = await countingProxy(place.url);
  const worker = await startWorker(system, { ...place, url: proxy.url }, { tool: "count" });
  const trips = { propose: 0, approve: 0 };
  const counted = async <T>(part: keyof typeof trips, work: () => Promise<T>): Promise<T> => {
    const before = proxy.trips();
    const result = await work();
    trips[part] += proxy.trips() - before;
    return result;
  };
  const cycle = async () => {
    const id = await counted("propose", () => worker.order<string>({ do: "propose" }));
    await worker.order({ do: "look", id });
    await counted("approve", () => worker.order({ do: "approve", id }));
  };
  for (let n = 0; n < WARM_UP; n += 1) await cycle();
  Object.assign(trips, { propose: 0, approve: 0 });
  const commitsSoFar = async () => {
    if (store === "sqlite") return sqliteCommits(place);
    await sleep(HINT_MS);
    return (await postgresCommits(place)) - proxy.hints();
  };
  const before = await commitsSoFar();
  for (let n = 0; n < CYCLES; n += 1) await cycle();
  const commits = ((await commitsSoFar()) - before) / CYCLES;
  await worker.end();
  if (store === "sqlite") return { system, commits };
  return {
    system,
    commits,
    trips: { propose: trips.propose / CYCLES, approve: trips.approve / CYCLES },
  };
}

/** Transactions that wrote something: only those are given a number. */
async function postgresCommits({ url }: Place): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(
    "SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next",
  );
  await client.end();
  return Number(rows[0].next);
}

const HEADER = 32;
const FRAME = 24;

/**
 * The frames of the write-ahead log that end a transaction. So few cycles are far from the size at which a log starts over.
 */
function sqliteCommits({ dir }: Place): number {
  const log = readFileSync(`${fileIn(dir)}-wal`);
  const pageSize = log.readUInt32BE(8);
  const salt = log.subarray(16, 24);
  let commits = 0;
  for (let at = HEADER; at + FRAME + pageSize <= log.length; at += FRAME + pageSize) {
    // What is left of an earlier round of the log has another salt.
    if (!log.subarray(at + 8, at + 16).equals(salt)) break;
    if (log.readUInt32BE(at + 4) > 0) commits += 1;
  }
  if (commits === 0) throw new Error(`${path.basename(dir)} keeps no write-ahead log`);
  return commits;
}
