import type { Conditions, Row } from "./engine.ts";

/** From here on a search for the best row took so long that it is worth to remember where it ended. */
const SLOW_MS = 20;
/** So much of the time is spent on looking from the start, while that is slow. */
const SHARE = 10;
const MAX_MARKS = 100;

interface Mark {
  readonly priority: number;
  readonly ord: number;
  /** Until then the search begins here. */
  readonly until: number;
}

/**
 * Where the search for the next task begins. From the start, as long as that is quick. But while somebody holds an old
 * snapshot open, a database cannot forget the rows of finished tasks, and a search from the start walks over all of them
 * again each time: then it begins where the last one ended, and looks from the start only now and then, and whenever it
 * finds nothing. What is freed in between by another process is found a little later, and nothing is lost.
 */
export class LowWater {
  readonly #marks = new Map<string, Mark>();

  /** Empty: look from the start. */
  conditions(key: string, now: number): Conditions {
    const mark = this.#marks.get(key);
    if (mark === undefined) return {};
    if (now < mark.until) return { priority: mark.priority, ord: { atLeast: mark.ord } };
    // This one looks; those who ask meanwhile need not.
    this.#marks.set(key, { ...mark, until: now + SHARE * SLOW_MS });
    return {};
  }

  /** What a search found: the rows best first, how long it took, and whether it began at the start. */
  learn(key: string, rows: readonly Row[], { now, tookMs, whole }: Search): void {
    const last = rows.at(-1);
    if (whole && (tookMs < SLOW_MS || last === undefined)) this.#marks.delete(key);
    if (last === undefined) return;
    const found = { priority: Number(last["priority"]), ord: Number(last["ord"]) };
    const mark = this.#marks.get(key);
    if (whole && tookMs >= SLOW_MS) {
      if (this.#marks.size >= MAX_MARKS) this.#marks.clear();
      this.#marks.set(key, { ...found, until: now + SHARE * tookMs });
    } else if (mark !== undefined && isBefore(mark, found)) {
      this.#marks.set(key, { ...found, until: mark.until });
    }
  }

  /** A new task comes last among its equals, so only marks below it are wrong now. */
  added(priority: number): void {
    for (const [key, mark] of this.#marks) if (mark.priority < priority) this.#marks.delete(key);
  }

  forget(): void {
    this.#marks.clear();
  }
}

export interface Search {
  readonly now: number;
  readonly tookMs: number;
  readonly whole: boolean;
}

function isBefore(a: Omit<Mark, "until">, b: Omit<Mark, "until">): boolean {
  return a.priority === b.priority ? a.ord < b.ord : a.priority > b.priority;
}
