// `npm run soak -- --minutes 240`: the load of G1 with a fault each minute, for as long as you like. `--agents`, `--seed` and
// `--fault-every-ms` as the names say, `--out file` for the figures as JSON.

import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { soak } from "../tests/faults/soak.ts";

/** Of a process that was warm: more is a leak, less is the allocator. Only a long run can tell. */
const MOST_GROWTH = 20;
const LONG_ENOUGH_S = 1_200;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "240" },
      agents: { type: "string", default: "100" },
      "fault-every-ms": { type: "string", default: "60000" },
      seed: { type: "string", default: String(Date.now()) },
      out: { type: "string", default: "" },
    },
  });
  const { seed, out } = values;
  const seconds = Math.round(60 * Number(values.minutes));
  if (!(seconds > 0)) throw new Error(`--minutes takes a number above 0, not "${values.minutes}"`);
  console.log(`${values.minutes} minutes, seed ${seed}`);
  const { figures, problems } = await soak({
    seconds,
    agents: Number(values.agents),
    faultEveryMs: Number(values["fault-every-ms"]),
    seed,
    onProgress: (line) => console.log(inWords(line)),
  });
  const grown = figures["memory growth %"] ?? 0;
  const leaks = seconds >= LONG_ENOUGH_S && grown > MOST_GROWTH;
  const isVoid = figures["effects"] === 0 || figures["kills"] === 0 || figures["pauses"] === 0;
  const nothing = isVoid ? ["void: nothing happened, or nothing was broken"] : [];
  const wrong = [...problems, ...nothing, ...(leaks ? [`memory grew by ${grown} %`] : [])];
  console.log(inWords(figures));
  for (const problem of wrong.slice(0, 20)) console.log(problem);
  if (out !== "")
    writeFileSync(out, `${JSON.stringify({ seed, figures, problems: wrong }, undefined, 2)}\n`);
  console.log(wrong.length === 0 ? "holds" : `broken: ${wrong.length} problems`);
  return wrong.length === 0 ? 0 : 1;
}

function inWords(line: Readonly<Record<string, number | string>>): string {
  return Object.entries(line)
    .map(([name, value]) => `${name} ${value.toLocaleString("en-US")}`)
    .join(", ");
}

process.exitCode = await main();
