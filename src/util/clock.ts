/** The only source of time, so that tests and simulations can control it. Shape: pulled. */
export interface Clock {
  /** Whole milliseconds since 1970-01-01 UTC. May stop or step back, as real clocks do. */
  now(): number;
}

/**
 * The machine's clock.
 *
 *     const gate = createGate({ clock: systemClock });
 */
export const systemClock: Clock = { now: () => Date.now() };

/** Measures durations: never steps back, and means nothing outside this process. */
export const stopwatch: Clock = { now: () => performance.now() };

export interface ManualClock extends Clock {
  /** Moves forward. */
  advance(ms: number): void;
  /** Jumps to any instant, also backwards. */
  set(ms: number): void;
}

/**
 * A clock that moves only when `advance` or `set` is called.
 *
 *     const clock = manualClock(0);
 */
export function manualClock(startMs: number): ManualClock {
  let now = checkInstant(startMs);
  return {
    now: () => now,
    advance(ms) {
      if (!(ms >= 0)) throw new RangeError(`A clock advances by zero or more, got ${ms}.`);
      now = checkInstant(now + ms);
    },
    set(ms) {
      now = checkInstant(ms);
    },
  };
}

const EARLIEST = Date.parse("0000-01-01T00:00:00.000Z");
const LATEST = Date.parse("9999-12-31T23:59:59.999Z");

/**
 * The instant as `2026-11-15T06:00:00.000Z`. The fixed length makes the order of texts equal the order of instants;
 * only years 0 to 9999 have this form. Throws RangeError for anything else.
 */
export function toIso(ms: number): string {
  const second = Math.floor(checkInstant(ms) / 1_000);
  const place = second & LAST_PLACE;
  let known = recent[place];
  if (known?.second !== second) {
    known = { second, text: new Date(second * 1_000).toISOString().slice(0, -4) };
    recent[place] = known;
  }
  return `${known.text}${MILLIS[ms - second * 1_000]}Z`;
}
// Most instants fall into the current or the last second, and formatting a date costs more than the rest of a row.
const LAST_PLACE = 15;
const recent: { readonly second: number; readonly text: string }[] = [];
const MILLIS = Array.from({ length: 1_000 }, (_, ms) => String(ms).padStart(3, "0"));

/** Parses exactly the output of `toIso`; throws RangeError for any other spelling and for dates that do not exist. */
export function fromIso(text: string): number {
  const ms = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text) ? Date.parse(text) : Number.NaN;
  // Date.parse reads 30 February as 2 March and 24:00 as the next day; formatting it again shows the difference.
  if (Number.isNaN(ms) || toIso(ms) !== text) {
    throw new RangeError(
      "An instant is written like 2026-11-15T06:00:00.000Z, in UTC with milliseconds.",
    );
  }
  return ms;
}

function checkInstant(ms: number): number {
  if (!Number.isInteger(ms) || ms < EARLIEST || ms > LATEST) {
    throw new RangeError(
      `An instant is a whole number of milliseconds in the years 0 to 9999, got ${ms}.`,
    );
  }
  return ms;
}
