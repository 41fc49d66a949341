import type { Luck } from "./luck.ts";

/** Everything that can go wrong, and how often of a hundred times it does where a seed has armed it. */
const SITES = {
  "commit is slow": 25,
  "commit is refused": 25,
  "commit is lost": 25,
  "commit is done and its answer lost": 25,
  // Longer than a lease, and its process lives on.
  "answer of a commit is slow": 15,
  // The server falls over its own disk; when it is back the commit is there, or it is not.
  "sync fails": 8,
  // A standby that lags takes its place.
  "server loses its tail": 4,
  // Nothing gets through, and there is no error.
  "server is silent": 4,
  // A migration changes the tables under open connections.
  "server is altered": 10,
  // One reading of the database's clock is a day or a year off.
  "clock was wrong once": 5,
  "process dies before its commit": 10,
  "process dies after its commit": 10,
  // A call reads a dozen times: with more of these nothing would ever be reached.
  "read is refused": 4,
  "read is slow": 10,
  "tool is slow": 25,
  "tool refuses": 25,
  "tool cannot be reached": 25,
  "tool never gets it": 25,
  "tool does it and its answer is lost": 25,
  "tool hangs": 25,
  "probe fails": 25,
  // Longer than a lease, as looks are below.
  "probe is slow": 25,
  "look fails": 10,
  // Longer than a lease: another process takes the call for abandoned and executes it.
  "look is slow": 25,
  "validator says no": 15,
  "validator hangs": 10,
} as const satisfies Record<string, number>;

export type Fault = keyof typeof SITES;

/** Each place where something can go wrong is armed in a quarter of the seeds, so that seeds differ in kind. */
export class Faults {
  readonly #armed: ReadonlySet<Fault>;
  readonly #luck: Luck;
  /** How often each has struck. */
  readonly struck = new Map<Fault, number>();
  #stopped = false;

  constructor(luck: Luck) {
    this.#luck = luck;
    const sites = Object.keys(SITES) as Fault[];
    this.#armed = new Set(sites.filter(() => luck.percent(25)));
  }

  /** Whether it goes wrong here and now. */
  strikes(fault: Fault): boolean {
    if (this.#stopped || !this.#armed.has(fault)) return false;
    const strikes = this.#luck.percent(SITES[fault]);
    if (strikes) this.struck.set(fault, (this.struck.get(fault) ?? 0) + 1);
    return strikes;
  }

  /** How long something takes, in virtual milliseconds. */
  delayMs(fault: Fault): number {
    return this.strikes(fault) ? 10 + this.#luck.below(5_000) : 0;
  }

  /** From now on everything works. */
  stop(): void {
    this.#stopped = true;
  }
}
