import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { gateBenches } from "./gate.ts";
import { hookBenches } from "./hooks.ts";
import { httpBenches } from "./http.ts";
import { interactionBenches } from "./interactions.ts";
import { mcpBenches } from "./mcp.ts";
import { memoryBenches } from "./memory.ts";
import { postgresBenches } from "./postgres.ts";
import { readBenches } from "./reads.ts";
import { printHeader, printResult, type Result } from "./report.ts";
import { sqliteBenches } from "./sqlite.ts";
import { taskBenches } from "./tasks.ts";
import { verifyBenches } from "./verify.ts";

/** `npm run bench -- sqlite` narrows to the names that contain one of the words. */
const words = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const wanted = (name: string): boolean =>
  words.length === 0 || words.some((word) => name.includes(word));

const results: Result[] = [];
printHeader();
for (const benches of [
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
]) {
  for await (const result of benches(wanted)) {
    results.push(result);
    printResult(result);
  }
}
if (results.length === 0) {
  console.error(`No benchmark has a name with ${words.join(" or ")} in it.`);
  process.exitCode = 1;
} else {
  const file = path.join(import.meta.dirname, "results", "latest.json");
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(results, null, 2)}\n`);
  console.log(`\n${results.length} results in bench/results/latest.json`);
}
