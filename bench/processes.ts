// Three processes with eight callers each on one tenant in PostgreSQL: approved calls per second of this checkout and of
// another one, in turns, so that the moods of the machine hit both alike.
//   node --conditions=sallyport-source bench/processes.ts /path/to/the/other/checkout [rounds]

import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { freshDatabase } from "../tests/support/postgres-database.ts";
import { startPostgres } from "../tests/support/postgres-server.ts";
import { median } from "./rounds.ts";

/** The part of the child's answer that counts here. */
interface Cycles {
  readonly rate: number;
}

const PROCESSES = 3;
const CALLERS = 8;
const MS = 3_000;
const [other, rounds = "6"] = process.argv.slice(2);
if (other === undefined) throw new Error("Name the folder of the checkout to compare with.");
const here = path.join(import.meta.dirname, "..");

/** One process of a checkout: the child of its own bench/peers, which opens a store and runs cycles when told. */
async function start(root: string, dir: string, url: string) {
  const child = fork(path.join(root, "bench/peers/child.ts"), {
    cwd: root,
    execArgv: ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"],
  });
  const order = async <Answer>(given: object): Promise<Answer> => {
    child.send(given);
    const [reply] = (await once(child, "message")) as [{ ok?: Answer; error?: string }];
    if (reply.error !== undefined) throw new Error(reply.error);
    return reply.ok as Answer;
  };
  const place = { dir, url };
  await order({ do: "open", system: "sallyport.postgres", place, tool: "count", role: "all" });
  return { order, end: () => child.kill() };
}

const server = await startPostgres({ durable: true });
const dir = mkdtempSync(path.join(tmpdir(), "sallyport-processes-"));
try {
  const teams = [];
  for (const root of [here, path.resolve(other)]) {
    const { url } = await freshDatabase(server.url);
    const workers = [];
    for (let n = 0; n < PROCESSES; n += 1) workers.push(await start(root, dir, url));
    teams.push({ root, workers, rates: [] as number[] });
  }
  for (let round = 0; round <= Number(rounds); round += 1) {
    for (const { workers, rates } of teams) {
      const order = { do: "cycles", callers: CALLERS, ms: MS };
      const all = await Promise.all(workers.map((worker) => worker.order<Cycles>(order)));
      // The first round warms up.
      if (round > 0) rates.push(all.reduce((sum, { rate }) => sum + rate, 0));
    }
  }
  for (const { root, rates } of teams) {
    console.log(`${root}: ${Math.round(median(rates))} approved calls/s`);
  }
  const [ours, theirs] = teams.map(({ rates }) => median(rates));
  console.log(`ratio ${((ours ?? 0) / (theirs ?? 1)).toFixed(2)}`);
  for (const worker of teams.flatMap(({ workers }) => workers)) worker.end();
} finally {
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
}
