// `npm run peers`: the same approval cycle on Sallyport and on others, in one run. `-- --write` puts the figures into the page.

import { writeFile } from "node:fs/promises";
import { availableParallelism, loadavg } from "node:os";
import path from "node:path";
import { startPostgres } from "../../tests/support/postgres-server.ts";
import { scratch } from "../scratch.ts";
import { type Behaviour, observe } from "./behaviours.ts";
import { measurePending, type Pending } from "./pending.ts";
import { measureRates } from "./rates.ts";
import { printTables, writePage } from "./report.ts";
import { SYSTEMS } from "./systems/index.ts";

/** The two graphs of LangGraph.js differ in speed, not in what they do; what is only staged is carried out by others. */
const kinds = Object.keys(SYSTEMS).filter(
  (name) => !/^(?:langgraph-agent|sallyport-staged)/.test(name),
);
const SIDE_BY_SIDE = 3;

const began = performance.now();
const load = () => Number(loadavg()[0]?.toFixed(1));
const loadBefore = load();
const server = await startPostgres({ durable: true });
try {
  await using folder = await scratch();
  const note = (what: string) => process.stderr.write(`${what}…\n`);
  note("cycles, one system after the other, round by round");
  const { rates, sizes } = await measureRates(folder.dir, server.url);
  note("memory of what is pending");
  const pending: Pending[] = [];
  for (const name of kinds) pending.push(await measurePending(name, folder.dir, server.url));
  note("kill -9, two answers, a world that moved");
  const behaviours: Behaviour[] = [];
  const queue = kinds.values();
  const look = async () => {
    for (const name of queue) behaviours.push(await observe(name, folder.dir, server.url));
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, look));
  behaviours.sort((one, other) => kinds.indexOf(one.system) - kinds.indexOf(other.system));

  const conditions = {
    date: new Date().toISOString().slice(0, 10),
    node: process.version,
    cores: availableParallelism(),
    loadBefore,
    loadAfter: load(),
  };
  const results = { conditions, rates, sizes, pending, behaviours };
  await writeFile(
    path.join(import.meta.dirname, "results.json"),
    `${JSON.stringify(results, null, 2)}\n`,
  );
  printTables(results);
  if (process.argv.includes("--write")) await writePage(results);
  const seconds = Math.round((performance.now() - began) / 1_000);
  console.log(`\n${seconds} s; the same in bench/peers/results.json`);
} finally {
  await server.stop();
}
