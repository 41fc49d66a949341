/** Does `units` units of work; its caller measures the time. */
export type Work = () => Promise<number>;

/**
 * Runs every contestant once per round, in turn, so that the machine's noise hits all of them alike. The first round
 * warms up and does not count. Answers units per second, per contestant and round.
 */
export async function rounds<Name extends string>(
  contestants: Readonly<Record<Name, Work>>,
  count: number,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(contestants) as Name[];
  const rates = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
    Name,
    number[]
  >;
  for (let round = 0; round <= count; round += 1) {
    for (const name of names) {
      const start = performance.now();
      const units = await contestants[name]();
      const seconds = (performance.now() - start) / 1_000;
      if (round > 0) rates[name].push(units / seconds);
    }
  }
  return rates;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The median of the ratios of each round: what happened in the same second is compared with each other. */
export function ratio(values: readonly number[], floors: readonly number[]): number {
  return median(values.map((value, round) => value / (floors[round] ?? Number.NaN)));
}
