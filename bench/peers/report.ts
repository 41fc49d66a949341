import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Behaviour } from "./behaviours.ts";
import type { Pending } from "./pending.ts";
import type { Rate, Size } from "./rates.ts";

export interface Results {
  /** The load tells how much to trust: the run itself makes about 2. */
  readonly conditions: {
    readonly date: string;
    readonly node: string;
    readonly cores: number;
    readonly loadBefore: number;
    readonly loadAfter: number;
  };
  readonly rates: readonly Rate[];
  readonly sizes: readonly Size[];
  readonly pending: readonly Pending[];
  readonly behaviours: readonly Behaviour[];
}

interface Table {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

const GOAL = 20;
const PAGE = path.join(import.meta.dirname, "../../docs/proof/peers.md");

export function printTables(results: Results): void {
  console.log(inWords(results));
  for (const table of tablesOf(results)) console.log(`\n${table.title}\n\n${markdown(table)}`);
}

/** Replaces what stands between the two marks of the page, so that its words and the figures of a run stay together. */
export async function writePage(results: Results): Promise<void> {
  const text = await readFile(PAGE, "utf8");
  const [start, end] = ["<!-- figures -->", "<!-- end of figures -->"];
  const [before, after] = [text.indexOf(start), text.indexOf(end)];
  if (before < 0 || after < before) throw new Error(`${PAGE} has no marks for the figures`);
  const tables = tablesOf(results).map((table) => `### ${table.title}\n\n${markdown(table)}`);
  const figures = [start, inWords(results), "", tables.join("\n\n"), "", ""].join("\n");
  await writeFile(PAGE, text.slice(0, before) + figures + text.slice(after));
}

function inWords({ conditions }: Results): string {
  const { date, node, cores, loadBefore, loadAfter } = conditions;
  const load = `load ${loadBefore} before and ${loadAfter} at the end`;
  return `Measured ${date} on ${cores} cores with Node ${node.slice(1)}, ${load}.`;
}

function tablesOf({ rates, sizes, pending, behaviours }: Results): readonly Table[] {
  const cycles = (callers: number): Table => ({
    title: callers === 1 ? "One caller" : `${callers} callers at once`,
    head: [
      "system",
      "cycles/s",
      "p50 ms",
      "p99 ms",
      "CPU µs per cycle",
      "a gated call is",
      "staged only is",
      "goal",
    ],
    rows: rates
      .filter((rate) => rate.callers === callers)
      .map((rate) => [
        rate.system,
        amount(rate.cyclesPerS),
        amount(rate.p50Ms),
        amount(rate.p99Ms),
        amount(rate.cpuUsPerCycle),
        rate.system.startsWith("sallyport") ? "" : `${rate.sallyportTimes.toFixed(1)} ×`,
        rate.system.startsWith("sallyport") ? "" : `${rate.stagedTimes.toFixed(1)} ×`,
        goal(rate),
      ]),
  });
  return [
    cycles(64),
    cycles(1),
    {
      title: "Bytes",
      head: [
        "system",
        "in the database per cycle",
        "on the heap per pending call",
        "of RSS per pending call",
        "measured with",
      ],
      rows: sizes.map(({ system, bytesPerCycle }) => {
        const waiting = pending.find((one) => one.system === system);
        const cells =
          waiting === undefined
            ? ["", "", ""]
            : [
                amount(Math.max(0, waiting.heapBytesEach)),
                amount(Math.max(0, waiting.rssBytesEach)),
                `${amount(waiting.pending)} pending`,
              ];
        return [system, amount(bytesPerCycle), ...cells];
      }),
    },
    {
      title: "What happens",
      head: [
        "system",
        "kill -9 in the tool, then a restart",
        "two answers at once, per call",
        "the world moved before the yes",
      ],
      rows: behaviours.map(({ system, killed, answers, moved }) => [
        system,
        `ran ${times(killed.effects)}; told: ${killed.told}`,
        `ran ${times(answers.effects / answers.calls)}; told: ${answers.told}`,
        `ran ${times(moved.effects)}; told: ${moved.told}`,
      ]),
    },
  ];
}

function goal({ system, callers, sallyportTimes, stagedTimes }: Rate): string {
  if (callers !== 64 || !system.startsWith("langgraph")) return "";
  const met = [sallyportTimes, stagedTimes].filter((times) => times >= GOAL).length;
  return `>= ${GOAL} × (${["missed", "staged only", "met"][met]})`;
}

function times(count: number): string {
  return count === 1 ? "once" : count === 2 ? "twice" : `${Number(count.toFixed(1))} times`;
}

function amount(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(2);
}

function markdown({ head, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), `|${head.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}
