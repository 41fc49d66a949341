// Real processes over a real PostgreSQL whose answers come late, which falls silent, and whose tables change; between that one
// of the processes is killed. After every cycle production's ledger, the trail and the state must agree.

import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { runRandom, type Trouble } from "../../src/crashkit/random/run-random.ts";
import { breakableLine } from "../faults/breakable-line.ts";
import { CACHE, SEED, withFolder } from "../support/crash-run.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { isWanted } from "../support/stores.ts";

const CYCLES = scaled({ test: 6, proof: 60, full: 600 });
/** Long enough for a busy machine: a process that learns of its lease in its second half starts nothing. */
const LEASE_MS = 1_500;
/** Longer than a lease, shorter than the store's patience: the answer arrives, and its process is alive. */
const LATE_MS = 1.5 * LEASE_MS;
const TABLES = ["decisions", "operations", "interactions"];

// skip: STORES names the stores to test, and postgres is not one of them
test.skipIf(!isWanted("postgres"))(
  "crash kit: late answers, a silent server and altered tables duplicate and lose nothing [SH3] [SH5] [SH8]",
  { timeout: scaled({ test: 240_000, proof: 600_000, full: 3_600_000 }) },
  async () => {
    const server = await startPostgres({ durable: false });
    onTestFinished(() => server.stop());
    const address = new URL(server.url);
    const line = await breakableLine({ host: address.hostname, port: Number(address.port) });
    onTestFinished(() => line.close());
    address.port = String(line.port);
    let columns = 0;
    const troubles: readonly Trouble[] = [
      {
        name: "answers come late",
        async strike() {
          line.cut("from the server");
          await setTimeout(LATE_MS);
          line.mend();
        },
      },
      { name: "the server is silent", strike: () => server.pause(LATE_MS) },
      {
        name: "tables are altered",
        async strike() {
          const owner = new pg.Client({ connectionString: server.url });
          await owner.connect();
          columns += 1;
          try {
            for (const table of TABLES) {
              await owner.query(`ALTER TABLE sallyport.${table} ADD COLUMN later_${columns} text`);
            }
          } finally {
            await owner.end();
          }
        },
      },
    ];
    const ran = await withFolder((folder) =>
      runRandom({
        run: "acme",
        store: { kind: "postgres", url: address.href },
        folder,
        cache: CACHE,
        seed: SEED,
        cycles: CYCLES,
        pauses: 0,
        leaseMs: LEASE_MS,
        troubles,
      }),
    );
    const { counts, violations } = ran;
    const figures = { ...ran.troubles, kills: ran.kills, effects: counts.effects };
    console.log(`CRASH_SEED=${SEED}: ${JSON.stringify(figures)}`);
    const what = "late answers, a silent server, altered tables";
    record({
      goal: "G5",
      what,
      figures: { ...figures, violations: violations.length },
      seed: SEED,
    });
    expect(violations.map(({ id, problem }) => `${id} ${problem}`).join("\n")).toBe("");
    for (const { name } of troubles) {
      expect(ran.troubles[name] ?? 0, `void: too few of "${name}"`).toBeGreaterThanOrEqual(
        Math.floor(CYCLES / 6),
      );
    }
    expect(counts.effects, "void: nothing was done").toBeGreaterThanOrEqual(CYCLES / 3);
  },
);
