import type { Conditions, Row } from "./engine.ts";
import { PAUSE_PER_LOOK, SlowStreak } from "./slow-streak.ts";

const MAX_KEYS = 100;

interface Place {
  readonly priority: number;
  readonly ord: number;
}

/** What is known of the searches for one set of roles. */
interface Searches {
  readonly streak: SlowStreak;
  mark: Place | undefined;
  /** Until then a search begins at the mark. */
  until: number;
}

/**
 * Where the search for the next task begins. From the start, as long as that is quick. But while somebody holds an old
 * snapshot open, a database cannot forget the rows of finished tasks, and a search from the start walks over all of them
 * again each time: then it begins where the last one ended, and looks from the start only now and then, and whenever it
 * finds nothing. What is freed in between by another process is found a little later, and nothing is lost.
 */
export class LowWater {
  readonly #searches = new Map<string, Searches>();

  /** Empty: look from the start. */
  conditions(key: string, now: number): Conditions {
    const known = this.#searches.get(key);
    if (known?.mark === undefined) return {};
    const { priority, ord } = known.mark;
    if (now < known.until) return { priority, ord: { atLeast: ord } };
    // This one looks from the start; those who ask meanwhile need not.
    known.until = now + SLOW_MS * PAUSE_PER_LOOK;
    return {};
  }

  /** What a search found: the rows best first, how long it took, and whether it began at the start. */
  learn(key: string, rows: readonly Row[], { now, tookMs, whole }: Search): void {
    const known = this.#of(key);
    const last = rows.at(-1);
    const found = last && { priority: Number(last["priority"]), ord: Number(last["ord"]) };
    if (whole) {
      known.streak.took(tookMs);
      known.mark = known.streak.isSlow ? found : undefined;
      known.until = now + PAUSE_PER_LOOK * tookMs;
    } else if (found !== undefined && known.mark !== undefined && isBefore(known.mark, found)) {
      known.mark = found;
    }
  }

  /** A new task comes last among its equals, so only marks below it are wrong now. */
  added(priority: number): void {
    for (const known of this.#searches.values()) {
      if (known.mark !== undefined && known.mark.priority < priority) known.mark = undefined;
    }
  }

  forget(): void {
    for (const known of this.#searches.values()) known.mark = undefined;
  }

  #of(key: string): Searches {
    const known = this.#searches.get(key);
    if (known !== undefined) return known;
    if (this.#searches.size >= MAX_KEYS) this.#searches.clear();
    const streak = new SlowStreak({ slowMs: SLOW_MS, length: 8 });
    const fresh: Searches = { streak, mark: undefined, until: 0 };
    this.#searches.set(key, fresh);
    return fresh;
  }
}

/** With its share of a group commit an undisturbed search takes 2 to 4 ms; at 20 the walk over dead rows went unnoticed for too long. */
const SLOW_MS = 6;

export interface Search {
  readonly now: number;
  readonly tookMs: number;
  readonly whole: boolean;
}

function isBefore(a: Place, b: Place): boolean {
  return a.priority === b.priority ? a.ord < b.ord : a.priority > b.priority;
}
