import type { Gate } from "../../src/gate/create-gate.ts";
import { isSallyportError, SallyportError } from "../../src/model/errors.ts";
import type { CallAnswer } from "../../src/model/operation.ts";
import type { Store } from "../../src/store/store.ts";
import { Faults } from "./faults.ts";
import { Fleet } from "./fleet.ts";
import { createLuck, type Luck } from "./luck.ts";
import { type Owner, RunQueue, WallClock } from "./run-queue.ts";
import { APPROVAL_MS, Gone, LEASE_MS, START, TENANT } from "./sim-process.ts";
import { SimStore } from "./sim-store.ts";
import { SimWorld } from "./sim-world.ts";
import { Watch } from "./watch.ts";

export const TASK_LEASE_MS = 3_000;

/** What was done in a run, by name; reported next to the violations. */
export type Tally = Map<string, number>;

/** Everything that a run consists of, made from its seed. */
export class Scene {
  readonly seed: number;
  /** What actors do; the other parts have streams of their own, so that they do not shift each other. */
  readonly luck: Luck;
  readonly queue: RunQueue;
  readonly faults: Faults;
  /** The database's own, which leases and deadlines go by. */
  readonly clock: WallClock;
  readonly store: SimStore;
  readonly world: SimWorld;
  readonly fleet: Fleet;
  readonly watch: Watch;
  readonly tally: Tally = new Map();
  /** The run is about to end: no actor begins anything new. */
  isClosing = false;
  readonly #accepted = new Map<string, string>();

  constructor(seed: number) {
    const luckOf = (stream: string) => createLuck(seed, stream);
    this.seed = seed;
    this.luck = luckOf("actors");
    this.queue = new RunQueue(luckOf("order"));
    this.faults = new Faults(luckOf("faults"));
    this.clock = new WallClock(this.queue, START);
    this.watch = new Watch({
      tenant: TENANT,
      leaseMs: LEASE_MS,
      taskLeaseMs: TASK_LEASE_MS,
      approvalMs: APPROVAL_MS,
    });
    const { queue, faults, clock, watch } = this;
    const luck = luckOf("store");
    this.store = new SimStore({
      queue,
      faults,
      clock,
      luck,
      tenant: TENANT,
      leaseMs: LEASE_MS,
      // With the longer one the session waits for an answer that comes after the lease is over.
      patienceMs: luck.percent(70) ? 400 : 6_000,
      onProblem: (problem) => void watch.problems.push(problem),
      onLoss: (seq) => {
        watch.lose(seq, this.store.remembered > seq);
        this.#accepted.clear();
      },
    });
    this.world = new SimWorld({
      queue,
      faults,
      luck: luckOf("world"),
      // Production's clock is right; where the database's runs ahead, what is written there counts as before.
      now: () => Math.max(clock.now(), watch.lastAt),
      onSend: (key, fence) => watch.sent(key, fence, queue.time),
    });
    const { store, world } = this;
    this.fleet = new Fleet(luckOf("fleet"), { seed, queue, faults, store, world });
  }

  count(what: string, by = 1): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + by);
  }

  /** Asks a process, with the name of what is asked for. Undefined when it was refused or the connection broke. */
  async ask<Answer>(
    who: Owner,
    what: string,
    work: (gate: Gate, store: Store) => Promise<Answer>,
  ): Promise<Answer | undefined> {
    this.count(what);
    try {
      return await this.fleet.ask(work);
    } catch (error) {
      this.#refused(who, what, error);
      return undefined;
    }
  }

  /** How often a caller was refused with this code. */
  refused(code: string): number {
    return this.tally.get(`refused: ${code}`) ?? 0;
  }

  /** Nothing but a code of the table and a broken connection is an answer; anything else is a defect. */
  #refused({ name }: Owner, what: string, error: unknown): void {
    if (error instanceof Gone) this.count("connections broken");
    else if (error instanceof SallyportError && isSallyportError(error)) {
      this.count(`refused: ${error.code}`);
    } else this.watch.problems.push(`${name} ${what}: unexpected ${String(error)}`);
  }

  /** What a caller was told is held against what is stored, now and at the end. */
  told(answers: readonly (CallAnswer | undefined)[]): void {
    for (const answer of answers) {
      if (answer === undefined) continue;
      this.count(`answered ${answer.answer}`);
      const { watch } = this;
      if (answer.answer === "pending") {
        const { decisionId } = answer;
        if (decisionId !== "") watch.tell({ decisionId, answer: "pending" });
      } else if (answer.answer !== "denied" && answer.operationId) {
        watch.tell({ operationId: answer.operationId, answer: answer.answer });
      }
    }
  }

  /** An answer to a question was accepted. A second one must not be. */
  accepted(id: string, answer: string): void {
    if (this.watch.lost.has(id)) return;
    const first = this.#accepted.get(id);
    if (first !== undefined) {
      this.watch.problems.push(`I10 ${id}: "${first}" was accepted, and then "${answer}"`);
    }
    this.#accepted.set(id, answer);
  }
}
