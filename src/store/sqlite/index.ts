import { createRedactor } from "../../audit/redact.ts";
import type { Clock } from "../../util/clock.ts";
import { type Random, systemRandom } from "../../util/random.ts";
import { systemTimers, type Timers } from "../../util/timers.ts";
import type { ClockWatch } from "../clock-watch.ts";
import { createStore } from "../create-store.ts";
import { epochFile } from "../epoch.ts";
import type { Store } from "../store.ts";
import type { Redact } from "../tenant-engine.ts";
import { watchedEngine } from "../watched-engine.ts";
import { sqliteEngine } from "./engine.ts";
import type { ThreadMode } from "./threaded-writer.ts";

export { sqliteEngine } from "./engine.ts";

export interface SqliteStoreOptions {
  /** Created when missing; its folder must exist. */
  readonly file: string;
  readonly redact?: Redact;
  /**
   * A file that a restored backup does not bring back; it notices when an older copy was put in place, and then nothing is
   * executed. One per store, shared by its processes on this machine.
   */
  readonly epochFile?: string;
  /** Only for tests that move the clock; otherwise the database's own decides. */
  readonly clock?: Clock;
  /** Only for tests that move the clock: by default every reading is compared with time that nobody can set. */
  readonly clockWatch?: ClockWatch;
  readonly random?: Random;
  readonly timers?: Timers;
  readonly patienceMs?: number;
  /** Which thread writes; `when busy` unless told otherwise. */
  readonly thread?: ThreadMode;
}

/** The default store: one file, every acknowledged write on disk. */
export function sqliteStore(options: SqliteStoreOptions): Store {
  const { redact = createRedactor({}), epochFile: file, ...rest } = options;
  const engine = sqliteEngine({
    random: systemRandom,
    timers: systemTimers,
    patienceMs: 10_000,
    ...rest,
  });
  const watched = file === undefined ? engine : watchedEngine(engine, epochFile(file));
  return createStore(watched, { redact });
}
