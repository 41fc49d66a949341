import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { isQuick, previousIn } from "./checkout.ts";
import { gateBenches } from "./gate.ts";
import { hookBenches } from "./hooks.ts";
import { httpBenches } from "./http.ts";
import { interactionBenches } from "./interactions.ts";
import { mcpBenches } from "./mcp.ts";
import { memoryBenches } from "./memory.ts";
import { conditionsFromNow, inWords, markdown, writeFigures } from "./page.ts";
import { postgresBenches } from "./postgres.ts";
import { previousBenches } from "./previous.ts";
import { readBenches } from "./reads.ts";
import { cellsOf, printHeader, printResult, type Result } from "./report.ts";
import { sqliteBenches } from "./sqlite.ts";
import { taskBenches } from "./tasks.ts";
import { verifyBenches } from "./verify.ts";

/**
 * `npm run bench -- sqlite` narrows to the names that contain one of the words. With `--previous PATH` an earlier release in
 * that checkout is compared with, and nothing else is measured; `--quick` shows only that this works. `--write` puts the figures
 * of a whole run into docs/reference/performance.md.
 */
const given = process.argv.slice(2);
const previous = previousIn(given);
const words = given.filter((word, at) => !word.startsWith("-") && given[at - 1] !== "--previous");
const wanted = (name: string): boolean =>
  words.length === 0 || words.some((word) => name.includes(word));

const doesWrite = given.includes("--write");
if (doesWrite && (isQuick || words.length > 0)) throw new Error("only a whole run can be written");
const conditions = conditionsFromNow();
const results: Result[] = [];
printHeader();
const all = [
  memoryBenches,
  sqliteBenches,
  postgresBenches,
  taskBenches,
  gateBenches,
  interactionBenches,
  readBenches,
  verifyBenches,
  httpBenches,
  hookBenches,
  mcpBenches,
];
for (const benches of previous === undefined ? all : [previousBenches]) {
  for await (const result of benches(wanted)) {
    results.push(result);
    printResult(result);
  }
}
if (results.length === 0) {
  console.error(`No benchmark has a name with ${words.join(" or ")} in it.`);
  process.exitCode = 1;
} else {
  const name = previous === undefined ? "latest.json" : "previous.json";
  const file = path.join(import.meta.dirname, "results", name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(results, null, 2)}\n`);
  if (doesWrite) {
    const mark = previous === undefined ? "figures" : "beside the previous release";
    const table = markdown({
      head: ["name", "value", "unit", "against", "ratio", "goal"],
      rows: results.map(cellsOf),
    });
    const figures = `${inWords(conditions())}\n\n${table}`;
    await writeFigures("reference/performance.md", mark, figures);
  }
  console.log(`\n${results.length} results in bench/results/${name}`);
}
