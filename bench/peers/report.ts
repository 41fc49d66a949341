import { type Conditions, inWords, markdown, type Table, writeFigures } from "../page.ts";
import type { Behaviour } from "./behaviours.ts";
import type { Cost } from "./costs.ts";
import type { Pending } from "./pending.ts";
import type { Rate, Size } from "./rates.ts";

export interface Results {
  /** The load tells how much to trust: the run itself makes about 2. */
  readonly conditions: Conditions;
  readonly rates: readonly Rate[];
  readonly sizes: readonly Size[];
  readonly costs: readonly Cost[];
  readonly pending: readonly Pending[];
  readonly behaviours: readonly Behaviour[];
}

interface Titled extends Table {
  readonly title: string;
}

export function printTables(results: Results): void {
  console.log(inWords(results.conditions));
  for (const table of tablesOf(results)) console.log(`\n${table.title}\n\n${markdown(table)}`);
}

export async function writePage(results: Results): Promise<void> {
  const tables = tablesOf(results).map((table) => `### ${table.title}\n\n${markdown(table)}`);
  const figures = [inWords(results.conditions), "", tables.join("\n\n")].join("\n");
  await writeFigures("proof/peers.md", "figures", figures);
}

function tablesOf(results: Results): readonly Titled[] {
  const { behaviours } = results;
  return [
    cyclesOf(results, 64),
    cyclesOf(results, 1),
    costsOf(results),
    pendingOf(results),
    aimsOf(results),
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

function cyclesOf({ rates }: Results, callers: number): Titled {
  return {
    title: callers === 1 ? "One caller" : `${callers} callers at once`,
    head: [
      "system",
      "cycles/s",
      "p50 ms",
      "p99 ms",
      "CPU µs per cycle",
      "a gated call is",
      "staged only is",
    ],
    rows: rates
      .filter((rate) => rate.callers === callers)
      .map((rate) => {
        const isOurs = /^sallyport(?!-previous)/.test(rate.system);
        return [
          rate.system,
          amount(rate.cyclesPerS),
          amount(rate.p50Ms),
          amount(rate.p99Ms),
          amount(rate.cpuUsPerCycle),
          isOurs ? "" : `${rate.sallyportTimes.toFixed(1)} ×`,
          isOurs ? "" : `${rate.stagedTimes.toFixed(1)} ×`,
        ];
      }),
  };
}

function costsOf({ costs, sizes }: Results): Titled {
  return {
    title: "What a cycle costs the database",
    head: [
      "system",
      "commits",
      "round trips to propose",
      "round trips to approve",
      "bytes that stay",
    ],
    rows: costs.map(({ system, commits, trips }) => [
      system,
      rounded(commits),
      trips === undefined ? "" : rounded(trips.propose),
      trips === undefined ? "" : rounded(trips.approve),
      amount(sizes.find((size) => size.system === system)?.bytesPerCycle ?? Number.NaN),
    ]),
  };
}

function pendingOf({ pending }: Results): Titled {
  return {
    title: "Memory of what is pending",
    head: ["system", "on the heap per pending call", "of RSS per pending call", "measured with"],
    rows: pending.map(({ system, heapBytesEach, rssBytesEach, pending }) => [
      system,
      amount(Math.max(0, heapBytesEach)),
      amount(Math.max(0, rssBytesEach)),
      `${amount(pending)} pending`,
    ]),
  };
}

/** How many times as fast as another system an approved call is to be, by callers. */
const AIMS = [
  { callers: 1, system: "langgraph.postgres", aim: 2 },
  { callers: 1, system: "dbos.postgres", aim: 1.5 },
  { callers: 1, system: "openai-agents.sqlite", aim: 1 },
  { callers: 64, system: "langgraph.sqlite", aim: 8 },
  { callers: 64, system: "langgraph.postgres", aim: 8 },
  { callers: 64, system: "graphile-worker.postgres", aim: 1.5 },
] as const;

function aimsOf({ rates }: Results): Titled {
  return {
    title: "What an approved call is to reach",
    head: ["beside", "callers", "an approved call is", "aim", ""],
    rows: AIMS.map(({ callers, system, aim }) => {
      const found = rates.find((rate) => rate.system === system && rate.callers === callers);
      const reached = found?.sallyportTimes ?? Number.NaN;
      const is = `${reached.toFixed(1)} ×`;
      return [system, `${callers}`, is, `>= ${aim} ×`, reached >= aim ? "reached" : "missed"];
    }),
  };
}

function rounded(value: number): string {
  return `${Number(value.toFixed(1))}`;
}

function times(count: number): string {
  return count === 1 ? "once" : count === 2 ? "twice" : `${Number(count.toFixed(1))} times`;
}

function amount(value: number): string {
  return value >= 99.5 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(2);
}
