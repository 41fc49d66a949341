import { mkdir } from "node:fs/promises";
import path from "node:path";
import { freshDatabase } from "../tests/support/postgres-database.ts";
import { startPostgres } from "../tests/support/postgres-server.ts";
import { isQuick, previousIn } from "./checkout.ts";
import type { Cycles } from "./peers/peer.ts";
import { startWorker, type Worker } from "./peers/worker.ts";
import type { Result } from "./report.ts";
import { median, ratio } from "./rounds.ts";
import { scratch } from "./scratch.ts";

const ROUNDS = isQuick ? 1 : 6;
const TURN_MS = isQuick ? 100 : 1_000;
const PROCESSES = 3;
const CALLERS_EACH = 8;

/** What is compared, and the two systems of bench/peers that do it with the code here and with that of the release. */
const KINDS = [
  ["staged", "sallyport-staged", "sallyport-staged-previous"],
  ["allowed", "sallyport-allowed", "sallyport-allowed-previous"],
  ["approved", "sallyport", "sallyport-previous"],
] as const;

/**
 * `npm run bench -- --previous PATH`: this code beside that of an earlier release, each in processes of its own, in turns, so
 * that the moods of the machine hit both alike. Without a release to compare with there is nothing to do.
 */
export async function* previousBenches(wanted: (name: string) => boolean): AsyncGenerator<Result> {
  if (previousIn(process.argv) === undefined) return;
  const loads = KINDS.flatMap((kind) =>
    [64, 1].flatMap((callers) =>
      (["sqlite", "postgres"] as const).map((store) => ({
        name: `${store}.${kind[0]}.${callers}`,
        systems: [`${kind[1]}.${store}`, `${kind[2]}.${store}`] as const,
        processes: 1,
        callers,
        goal: ">= 0.9",
      })),
    ),
  );
  const processes = {
    name: `postgres.processes.${PROCESSES}x${CALLERS_EACH}`,
    systems: ["sallyport.postgres", "sallyport-previous.postgres"] as const,
    processes: PROCESSES,
    callers: CALLERS_EACH,
    goal: ">= 3",
  };
  const chosen = [...loads, processes].filter(({ name }) => wanted(name));
  if (chosen.length === 0) return;
  const server = await startPostgres({ durable: true });
  try {
    for (const load of chosen) yield await compare(load, server.url);
  } finally {
    await server.stop();
  }
}

interface Compared {
  readonly name: string;
  readonly systems: readonly [today: string, previous: string];
  readonly processes: number;
  readonly callers: number;
  readonly goal: string;
}

/** The processes of one system share one store and one tenant. */
async function compare(load: Compared, server: string): Promise<Result> {
  const { name, systems, processes, callers, goal } = load;
  await using folder = await scratch();
  const teams: Worker[][] = [];
  for (const system of systems) {
    const place = { dir: path.join(folder.dir, system), url: (await freshDatabase(server)).url };
    await mkdir(place.dir);
    const team: Worker[] = [];
    for (let n = 0; n < processes; n += 1) {
      team.push(await startWorker(system, place, { tool: "count" }));
    }
    teams.push(team);
  }
  const rates: [today: number[], previous: number[]] = [[], []];
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [index, team] of teams.entries()) {
      const order = { do: "cycles", callers, ms: processes * TURN_MS } as const;
      const all = await Promise.all(team.map((worker) => worker.order<Cycles>(order)));
      // The first round warms up.
      if (round > 0) rates[index]?.push(all.reduce((sum, { rate }) => sum + rate, 0));
    }
  }
  for (const worker of teams.flat()) await worker.end();
  const [today, previous] = rates;
  return {
    name,
    value: median(today),
    unit: "cycles/s",
    against: `previous (${Math.round(median(previous)).toLocaleString("en-US")})`,
    ratio: ratio(today, previous),
    goal,
  };
}
