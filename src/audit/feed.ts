import type { AuditEntry } from "../model/audit-entry.ts";
import { SallyportError } from "../model/errors.ts";
import type { AuditReader } from "../store/store.ts";
import { systemTimers, type Timers } from "../util/timers.ts";

export interface FollowOptions {
  /** The number of the last entry that the reader has; 0 for all. */
  readonly after: number;
  readonly signal: AbortSignal;
  /**
   * A store's `onCommit`. Shape: push, of hints only. Without it, or when a hint is lost, new entries are found by
   * polling.
   */
  readonly onCommit?: (listener: () => void) => () => void;
  readonly pollMs?: number;
  readonly pageSize?: number;
  readonly timers?: Timers;
}

const FALSE_ALARM_MS = 10;

/**
 * A tenant's entries after a number, then new ones as they are committed: in order, each exactly once. A reader that
 * was disconnected resumes with the number of its last entry. Ends when the signal is aborted. It reads the next page
 * only when the last one is consumed, so a slow reader costs no memory. Throws damaged_record when an entry is missing
 * or does not follow the one before, invalid_input when `after` is beyond the end of the chain. Shape: pulled.
 */
export async function* followTrail(
  reader: AuditReader,
  options: FollowOptions,
): AsyncGenerator<AuditEntry> {
  const { signal, onCommit, pollMs = 250, pageSize = 500, timers = systemTimers } = options;
  let after = options.after;
  let hash: string | undefined;
  const bell = createBell(timers, signal);
  const stopListening = onCommit?.(bell.ring);
  try {
    await checkStart(reader, after);
    while (!signal.aborted) {
      const isHinted = bell.mute();
      const entries = await reader.read({ after, limit: pageSize });
      for (const entry of entries) {
        if (signal.aborted) return;
        checkNext(entry, reader.tenant, after, hash);
        after = entry.seq;
        hash = entry.hash;
        yield entry;
      }
      // A page that is not empty may be followed by more entries.
      if (entries.length > 0) continue;
      // The commit was another tenant's. A busy neighbour must not cause thousands of reads per second.
      if (isHinted) await pause(Math.min(pollMs, FALSE_ALARM_MS), timers, signal);
      await bell.wait(pollMs);
    }
  } finally {
    stopListening?.();
  }
}

/** After a restored backup a reader can be ahead of the chain; waiting there would skip numbers that are used again. */
async function checkStart(reader: AuditReader, after: number): Promise<void> {
  const isNumber = Number.isSafeInteger(after) && after >= 0;
  const head = isNumber && after > 0 ? (await reader.head()).seq : 0;
  if (isNumber && after <= head) return;
  const hint =
    "Start from 0 or from the number of an entry of this trail; if it was there before, a backup was restored.";
  throw new SallyportError("invalid_input", { what: "after", after, head, hint });
}

function checkNext(
  entry: AuditEntry,
  tenant: string,
  after: number,
  hash: string | undefined,
): void {
  const follows = hash === undefined || entry.prev === hash;
  if (entry.seq === after + 1 && entry.tenant === tenant && follows) return;
  const hint = "The trail has a hole or was changed. Run audit verify.";
  throw new SallyportError("damaged_record", { tenant, after, found: entry.seq, hint });
}

interface Bell {
  ring(): void;
  /** Returns whether it had rung. */
  mute(): boolean;
  /** Waits until it rings, unless it has rung since it was muted; at most `ms`, or until the signal is aborted. */
  wait(ms: number): Promise<void>;
}

function createBell(timers: Timers, signal: AbortSignal): Bell {
  let hasRung = false;
  let stop = new AbortController();
  return {
    ring() {
      hasRung = true;
      stop.abort();
    },
    mute() {
      const had = hasRung;
      hasRung = false;
      stop = new AbortController();
      return had;
    },
    wait: (ms) => pause(ms, timers, AbortSignal.any([signal, stop.signal])),
  };
}

/** Ends early when the signal is aborted, which is not an error here. */
async function pause(ms: number, timers: Timers, signal: AbortSignal): Promise<void> {
  await timers.sleep(ms, signal).catch(() => {});
}
