import { seededRandom } from "../util/random.ts";

/** Chance that repeats itself from a seed, so that a red run can be looked at again. */
export interface Dice {
  /** A whole number from 0 to `limit` - 1. */
  below(limit: number): number;
  pick<Item>(items: readonly Item[]): Item;
  /** Comes true so often out of a hundred times. */
  percent(chance: number): boolean;
}

export function createDice(seed: number | string): Dice {
  const random = seededRandom(seed);
  const below = (limit: number): number => {
    const [a = 0, b = 0, c = 0, d = 0] = random.bytes(4);
    return (((a << 24) | (b << 16) | (c << 8) | d) >>> 0) % limit;
  };
  return {
    below,
    pick(items) {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error("nothing to pick from");
      return item;
    },
    percent: (chance) => below(100) < chance,
  };
}
