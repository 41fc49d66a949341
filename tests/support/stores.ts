// The three engines, each opened the way a test needs it: fresh, on a clock that the test moves.

import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { inject } from "vitest";
import { type EngineHarness, harnessOf, START } from "../../src/store/conformance/index.ts";
import { memoryEngine } from "../../src/store/memory/index.ts";
import { postgresEngine } from "../../src/store/postgres/index.ts";
import { sqliteEngine, type ThreadMode } from "../../src/store/sqlite/index.ts";
import { manualClock } from "../../src/util/clock.ts";
import { systemRandom } from "../../src/util/random.ts";
import { systemTimers } from "../../src/util/timers.ts";
import { assertNobodyConnected, endPool } from "./postgres-connections.ts";
import { emptySchema, freshDatabase } from "./postgres-database.ts";

/** Where another process finds the store of a harness. */
export type Place =
  | { readonly kind: "memory" }
  | { readonly kind: "sqlite"; readonly file: string }
  | { readonly kind: "postgres"; readonly url: string; readonly schema: string };

export interface TestStore extends EngineHarness {
  readonly place: Place;
}

/** Makes stores for one test file; `stop` removes everything it made. */
export interface StoreMaker {
  open(): Promise<TestStore>;
  stop(): Promise<void>;
}

export const STORE_NAMES = ["memory", "sqlite", "postgres"] as const;
export type StoreName = (typeof STORE_NAMES)[number];

/** `STORES=memory,sqlite npm test` leaves the others out. */
export function isWanted(name: StoreName): boolean {
  const wanted = process.env["STORES"];
  return !wanted || wanted.split(",").includes(name);
}

/** Shorter than the default, so that a store that tries for ever is found out quickly. */
const PATIENCE_MS = 2_000;
const parts = { random: systemRandom, timers: systemTimers, patienceMs: PATIENCE_MS };

export const startStores: Readonly<Record<StoreName, () => Promise<StoreMaker>>> = {
  async memory() {
    return {
      async open() {
        const clock = manualClock(START);
        const engine = memoryEngine({ clock, random: systemRandom });
        return { ...harnessOf({ engine, clock }), place: { kind: "memory" } };
      },
      stop: async () => {},
    };
  },

  sqlite: () => startSqlite("when busy"),

  async postgres() {
    const database = await freshDatabase(inject("pgUrl"));
    let count = 0;
    // Making a schema takes 150 ms, emptying one 5: what a case has closed serves the next.
    const free: string[] = [];
    return {
      async open() {
        const schema = free.pop() ?? `case_${++count}`;
        const clock = manualClock(START);
        // A pool of its own: a store that loses a connection must not starve the cases after it.
        const options = { connectionString: database.url, max: 8, pipeline: true };
        const pool = new pg.Pool(options).on("error", () => {});
        const open = () => postgresEngine({ ...parts, pool, schema, clock });
        const closed = async () => {
          await endPool(pool);
          await emptySchema(database.url, schema);
          free.push(schema);
        };
        const harness = harnessOf({ engine: await open(), clock, again: open, closed });
        return { ...harness, place: { kind: "postgres", url: database.url, schema } };
      },
      async stop() {
        try {
          await assertNobodyConnected(database.url);
        } finally {
          await database.drop();
        }
      },
    };
  },
};

export async function startSqlite(thread: ThreadMode): Promise<StoreMaker> {
  // In memory where there is such a place: these tests are about what is written, not about the disk.
  const base = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
  const folder = await mkdtemp(path.join(base, "sallyport-sqlite-"));
  let count = 0;
  return {
    async open() {
      count += 1;
      const file = path.join(folder, `store-${count}.db`);
      const clock = manualClock(START);
      const open = async () => sqliteEngine({ ...parts, file, clock, thread });
      const closed = () => rm(file, { force: true });
      const harness = harnessOf({ engine: await open(), clock, again: open, closed });
      return { ...harness, place: { kind: "sqlite", file } };
    },
    stop: () => rm(folder, { recursive: true, force: true }),
  };
}
