// `npm run peers`: the same approval cycle on Sallyport and on others, in one run. `-- --write` puts the figures into the page,
// `-- --previous PATH` measures the earlier release in that checkout as well, `-- --quick` only shows that it all works.

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { startPostgres } from "../../tests/support/postgres-server.ts";
import { isQuick, previousIn } from "../checkout.ts";
import { conditionsFromNow } from "../page.ts";
import { scratch } from "../scratch.ts";
import { type Behaviour, observe } from "./behaviours.ts";
import { type Cost, measureCost } from "./costs.ts";
import { measurePending, type Pending } from "./pending.ts";
import { measureRates } from "./rates.ts";
import { printTables, writePage } from "./report.ts";
import { PREVIOUS, SYSTEMS } from "./systems/index.ts";

/** The two graphs of LangGraph.js differ in speed, not in what they do; what is only staged is carried out by others. */
const isAlike = (name: string) => /^(?:langgraph-agent|sallyport-staged)/.test(name);
const kinds = Object.keys(SYSTEMS).filter((name) => !isAlike(name));
const isPreviousAsked = previousIn(process.argv) !== undefined;
const measured = Object.keys(isPreviousAsked ? { ...SYSTEMS, ...PREVIOUS } : SYSTEMS);
const SIDE_BY_SIDE = 3;
const doesWrite = process.argv.includes("--write");
if (doesWrite && isQuick) throw new Error("--quick measures nothing that could be written");

const began = performance.now();
const conditions = conditionsFromNow();
const server = await startPostgres({ durable: true });
try {
  await using folder = await scratch();
  const note = (what: string) => process.stderr.write(`${what}…\n`);
  note("cycles, one system after the other, round by round");
  const { rates, sizes } = await measureRates(measured, folder.dir, server.url);
  note("commits and round trips of one cycle");
  const costs: Cost[] = [];
  for (const name of measured) costs.push(await measureCost(name, folder.dir, server.url));
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

  const results = { conditions: conditions(), rates, sizes, costs, pending, behaviours };
  const file = path.join(import.meta.dirname, "results.json");
  if (!isQuick) await writeFile(file, `${JSON.stringify(results, null, 2)}\n`);
  printTables(results);
  if (doesWrite) await writePage(results);
  const seconds = Math.round((performance.now() - began) / 1_000);
  console.log(`\n${seconds} s${isQuick ? "" : "; the same in bench/peers/results.json"}`);
} finally {
  await server.stop();
}
