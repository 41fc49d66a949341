import type { Random } from "../../src/util/random.ts";

/** Chance of a simulated run: fast, and the same for the same seed. Everything that is open is decided by it. */
export interface Luck extends Random {
  /** A whole number from 0 to `limit` - 1. */
  below(limit: number): number;
  /** True in so many of a hundred cases. */
  percent(chance: number): boolean;
  pick<Item>(items: readonly Item[]): Item;
  /** A name of the table, as often as its weight says. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name;
}

export function createLuck(seed: number, stream: string): Luck {
  let state = mixed(seed, stream);
  /** Mulberry32: 32 bits per step, far faster than a hash and good enough to choose by. */
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let word = Math.imul(state ^ (state >>> 15), 1 | state);
    word = (word + Math.imul(word ^ (word >>> 7), 61 | word)) ^ word;
    return (word ^ (word >>> 14)) >>> 0;
  };
  const below = (limit: number): number => next() % limit;
  return {
    below,
    percent: (chance) => below(100) < chance,
    pick(items) {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error("nothing to pick from");
      return item;
    },
    weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
      const entries = Object.entries(weights) as [Name, number][];
      let left = below(entries.reduce((sum, [, weight]) => sum + weight, 0));
      for (const [name, weight] of entries) {
        left -= weight;
        if (left < 0) return name;
      }
      throw new Error("weights must be above zero");
    },
    bytes(length) {
      const bytes = new Uint8Array(length);
      for (let at = 0; at < length; at += 4) {
        const word = next();
        for (let byte = 0; byte < 4 && at + byte < length; byte += 1) {
          bytes[at + byte] = word >>> (8 * byte);
        }
      }
      return bytes;
    },
  };
}

/** FNV-1a, so that each stream of one seed goes its own way. */
function mixed(seed: number, stream: string): number {
  let hash = 0x811c9dc5;
  for (const char of `${seed}:${stream}`) {
    hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193);
  }
  return hash | 0;
}
