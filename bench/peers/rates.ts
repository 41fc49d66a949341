import { isQuick } from "../checkout.ts";
import { median, ratio } from "../rounds.ts";
import type { Cycles } from "./peer.ts";
import { bytesIn, newPlace } from "./places.ts";
import { systemOf } from "./systems/index.ts";
import { startWorker } from "./worker.ts";

const ROUNDS = isQuick ? 1 : 4;
/** Callers at the same time, and how long a round of each system lasts. Many first: a lone caller takes long to warm code up. */
const LOADS = [
  { callers: 64, ms: isQuick ? 50 : 1_000 },
  { callers: 1, ms: isQuick ? 50 : 500 },
] as const;

export interface Rate {
  readonly system: string;
  readonly callers: number;
  readonly cyclesPerS: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Processor time of the system's own process; a database server's comes on top. */
  readonly cpuUsPerCycle: number;
  /** How many times as fast Sallyport is on the same store, as the median of the rounds' ratios: a gated call, and staged only. */
  readonly sallyportTimes: number;
  readonly stagedTimes: number;
}

export interface Size {
  readonly system: string;
  readonly bytesPerCycle: number;
}

/** Each system in its own process; round by round, one system after the other, so that the machine's moods hit all alike. */
export async function measureRates(
  names: readonly string[],
  dir: string,
  server: string,
): Promise<{ rates: Rate[]; sizes: Size[] }> {
  const contestants = await Promise.all(
    names.map(async (name) => {
      const place = await newPlace(dir, server, `rates-${name}`);
      const system = systemOf(name);
      const worker = await startWorker(name, place, { tool: "count" });
      return { name, place, system, worker, before: await bytesIn(place, system), done: 0 };
    }),
  );
  const rates: Rate[] = [];
  for (const { callers, ms } of LOADS) {
    const measured = new Map<string, Cycles[]>(contestants.map(({ name }) => [name, []]));
    for (let round = 0; round <= ROUNDS; round += 1) {
      for (const one of contestants) {
        const cycles = await one.worker.order<Cycles>({ do: "cycles", callers, ms });
        one.done += cycles.latenciesMs.length;
        // The first round warms up.
        if (round > 0) measured.get(one.name)?.push(cycles);
      }
    }
    for (const { name, system } of contestants) {
      const own = measured.get(name) ?? [];
      const ours = measured.get(`sallyport.${system.store}`) ?? [];
      const staged = measured.get(`sallyport-staged.${system.store}`) ?? [];
      rates.push(summary(name, callers, own, { ours, staged }));
    }
  }
  const sizes: Size[] = [];
  for (const { name, place, system, worker, before, done } of contestants) {
    await worker.end();
    sizes.push({ system: name, bytesPerCycle: ((await bytesIn(place, system)) - before) / done });
  }
  return { rates, sizes };
}

function summary(
  system: string,
  callers: number,
  own: readonly Cycles[],
  { ours, staged }: Readonly<Record<"ours" | "staged", readonly Cycles[]>>,
): Rate {
  const rateOf = (all: readonly Cycles[]) => all.map(({ rate }) => rate);
  const latencies = own
    .flatMap(({ latenciesMs }) => latenciesMs)
    .toSorted((one, other) => one - other);
  const quantile = (q: number) => latencies[Math.floor(latencies.length * q)] ?? Number.NaN;
  return {
    system,
    callers,
    cyclesPerS: median(rateOf(own)),
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    cpuUsPerCycle: median(own.map(({ cpuUs }) => cpuUs)),
    sallyportTimes: ratio(rateOf(ours), rateOf(own)),
    stagedTimes: ratio(rateOf(staged), rateOf(own)),
  };
}
