import { isSallyportError, type SallyportError } from "../../src/model/errors.ts";
import { EPOCH, SWITCHES } from "../../src/model/switch.ts";
import { type Change, type ChangeResult, type Engine, isUrgent } from "../../src/store/engine.ts";
import type { Waiting } from "../../src/store/group-commit.ts";
import type { MemoryEngine } from "../../src/store/memory/index.ts";
import { asStoreError, Lines, type PgClient } from "../../src/store/postgres/connection.ts";
import { askedAgain } from "../../src/store/postgres/reader.ts";
import type { SessionOptions } from "../../src/store/postgres/session.ts";
import { LostTail, writePath } from "../../src/store/postgres/write-path.ts";
import {
  ClockRefused,
  checkHead,
  type Ends,
  type Written,
} from "../../src/store/postgres/writer.ts";
import { ClockWatch, type Reading, trustedTime } from "../../src/store/turn.ts";
import { type EpochFile, type Remembered, watchedEngine } from "../../src/store/watched-engine.ts";
import type { Luck } from "./luck.ts";
import type { WallClock } from "./run-queue.ts";
import {
  type Client,
  LOCK,
  type Locked,
  namesOf,
  READ,
  type ServerParts,
  SimServer,
  type Work,
} from "./sim-server.ts";

/** A group waits for the one before it, and then gets a second for its turn; and whose time has come is not chosen at once. */
const MARGIN_MS = 6_000;

export interface StoreCounts {
  unknownCommits: number;
  refusedCommits: number;
}

export interface StoreParts extends ServerParts {
  readonly clock: WallClock;
}

/**
 * One database for all processes. Each of them reaches it through the product's own code for PostgreSQL: group commit, write
 * session, lines, lost tail and epoch file. Only the SQL itself is left out: the memory engine stands for it.
 */
export class SimStore {
  readonly server: SimServer;
  readonly #counts: StoreCounts = { unknownCommits: 0, refusedCommits: 0 };
  readonly #parts: StoreParts;
  /** On the machine's disk: shared by all processes, and no failover takes it back. */
  #remembered: Remembered | undefined;
  #ids = 0;

  constructor(parts: StoreParts) {
    this.#parts = parts;
    this.server = new SimServer(parts);
  }

  /** What is written at this moment. */
  get durable(): MemoryEngine {
    return this.server.image;
  }

  /** The number of the last entry that the epoch file knows of: no effect begins before its intent is one of these. */
  get remembered(): number {
    return this.#remembered?.last?.seq ?? 0;
  }

  /** A process has noticed that entries are gone, and no operator has confirmed it yet. */
  get isRolledBack(): boolean {
    return this.#remembered?.isRolledBack === true;
  }

  get counts() {
    return { ...this.#counts, ...this.server.counts };
  }

  /** The engine of one process. It dies with it. */
  engineOf(client: Client): Engine {
    const { queue, tenant, clock, luck, patienceMs } = this.#parts;
    const timers = queue.timersOf(client);
    const lines = new Lines({ pool: this.server.poolOf(client), timers });
    /** However silent the server is, a caller gets an answer soon after its time limit. */
    const inTime = (what: string, began: number, marginMs: number) => {
      const ms = queue.time - began;
      if (ms <= patienceMs + marginMs || !client.isAlive) return;
      this.#parts.onProblem(
        `${client.name} ${what}: took ${ms} ms, with a patience of ${patienceMs}`,
      );
    };
    /** Tables that change under a connection are the product's own doing: while there is time, no caller may notice. */
    const noticed = (what: string, began: number, error: unknown) => {
      const { cause } = error as Error;
      const isAltered = cause instanceof Error && "code" in cause && cause.code === "0A000";
      if (!isAltered || queue.time - began >= patienceMs) return;
      this.#parts.onProblem(`${client.name} ${what}: ${cause.message} reached the caller`);
    };
    const reading = async <Read>(label: string, read: (image: MemoryEngine) => Promise<Read>) => {
      const began = queue.time;
      const ask = (line: PgClient) => line.query<Read>({ text: READ, values: [label, read] });
      try {
        const { rows } = await askedAgain({ timers, patienceMs }, (ms) => lines.using(ms, ask));
        return rows[0] as Read;
      } catch (cause) {
        const error = asStoreError(cause);
        noticed(`reads ${label}`, began, error);
        throw error;
      } finally {
        inTime(`reads ${label}`, began, MARGIN_MS / 2);
      }
    };
    const tail = new LostTail(async () => {
      const row = await reading("epoch", (image) => image.get(tenant, SWITCHES, EPOCH));
      return new Map(row === undefined ? [] : [[tenant, String(row["state"])]]);
    });
    const watch = new ClockWatch({
      elapsedMs: () => queue.time,
      uptimeMs: () => queue.time + clock.jumped,
    });
    const writer = new SimWriter({ tenant, tail, watch, luck, onProblem: this.#parts.onProblem });
    const onCommit = () => {};
    const schema = "simulated";
    const writes = writePath({ lines, schema, writer, tail, timers, patienceMs, onCommit });
    const engine: Engine = {
      name: "simulated",
      capabilities: { durable: true, manyProcesses: true },
      newId: () => {
        this.#ids += 1;
        return String(this.#ids);
      },
      commit: async (own, change) => {
        const began = queue.time;
        try {
          const result = await writes.commit(own, change);
          if (result.committed) this.server.told(change, "written");
          return result;
        } catch (error) {
          const isOpen = isSallyportError(error, "commit_unknown");
          this.#counts[isOpen ? "unknownCommits" : "refusedCommits"] += 1;
          if (!isOpen) this.server.told(change, "not written");
          noticed("commits", began, error);
          throw error;
        } finally {
          inTime("commits", began, patienceMs + MARGIN_MS);
        }
      },
      lostTail: (own) => tail.of(own),
      get: (own, table, id) => reading(table.name, (image) => image.get(own, table, id)),
      find: (own, table, query) => reading(table.name, (image) => image.find(own, table, query)),
      entries: (own, range) => reading("trail", (image) => image.entries(own, range)),
      head: (own) => reading("head", (image) => image.head(own)),
      heads: () => reading("heads", (image) => image.heads()),
      async now() {
        const asked = watch.elapsedMs();
        return trustedTime(await reading("time", (image) => image.now()), watch, asked);
      },
      // A hint by contract, with no promise that it comes: here it never does, and polling must suffice.
      onCommit: () => () => {},
      backdate: (...given) => this.durable.backdate(...given),
      async close() {
        await writes.drain();
        writes.close();
      },
    };
    return watchedEngine(engine, this.#file());
  }

  #file(): EpochFile {
    return {
      read: () => this.#remembered,
      write: (what) => {
        this.#remembered = what;
      },
      close: () => {},
    };
  }
}

interface WriterParts {
  readonly tenant: string;
  readonly tail: LostTail;
  readonly watch: ClockWatch;
  readonly luck: Luck;
  onProblem(problem: string): void;
}

/** Stands for the statements of a transaction: the lock, the steps and the entries, worked out on a copy of the image. */
class SimWriter implements Pick<SessionOptions["writer"], "write" | "committed"> {
  readonly #parts: WriterParts;

  constructor(parts: WriterParts) {
    this.#parts = parts;
  }

  committed(ends: Ends): void {
    for (const head of ends.values()) this.#parts.tail.remember(head);
  }

  async write(client: PgClient, group: readonly Waiting[]): Promise<Written> {
    const { tenant, tail, watch, luck } = this.#parts;
    const changes = group.map(({ change }) => change);
    const label = `commit ${namesOf(changes)}`;
    const seen = tail.seenOf(tenant);
    const asked = watch.elapsedMs();
    const values = [label, seen?.seq ?? null];
    const { rows } = await client.query<Locked>({ text: LOCK, values });
    const [locked] = rows;
    if (locked === undefined) throw new TypeError("LOCK gives one row");
    checkHead(tenant, seen, await locked.end);
    const { trusted } = watch;
    const image = locked.image.copy({
      clock: { now: () => locked.now },
      random: luck,
      clockWatch: { jumpOf: (now) => watch.jumpOf(now, asked) },
    });
    const before = await image.head(tenant);
    const results: ChangeResult[] = [];
    const untimely = new Map<Waiting, SallyportError>();
    for (const one of group) {
      try {
        results.push(await image.commit(tenant, one.change));
      } catch (error) {
        if (!isClockWrong(error)) throw error;
        untimely.set(one, error);
      }
    }
    if (untimely.size > 0) throw new ClockRefused(untimely);
    const clock = this.#judged(locked, trusted, changes);
    const end = await image.head(tenant);
    const { seq } = end;
    const wrote = changes.filter((_, index) => results[index]?.committed === true);
    const work: Work = { image, changes: wrote, seq, label, clock };
    const committing = Promise.allSettled([client.query({ text: "COMMIT", values: [work] })]);
    const ends = new Map(seq > before.seq ? [[tenant, end]] : []);
    return { results, ends, committing };
  }

  /** The time by which a transaction may be decided: a reading that differs from what is known must not count. */
  #judged(
    { now, offMs }: Locked,
    trusted: Reading | undefined,
    changes: readonly Change[],
  ): number {
    if (offMs === 0 || trusted === undefined) return now;
    const right = now - offMs;
    const wasOff = trusted.now - trusted.elapsed - (right - this.#parts.watch.elapsedMs());
    if (Math.abs(wasOff) > HALF_A_DAY) return now;
    const timely = changes.filter((change) => !isUrgent(change));
    if (timely.length > 0) {
      const problem = `I13 ${namesOf(timely)} was written at a time that is ${offMs} ms off`;
      this.#parts.onProblem(problem);
    }
    return right;
  }
}

/** Far more than a run's clock is moved on purpose, and less than it is wrong by. */
const HALF_A_DAY = 12 * 3_600_000;

function isClockWrong(error: unknown): error is SallyportError {
  return isSallyportError(error, "clock_wrong");
}
