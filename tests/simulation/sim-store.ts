import { SallyportError } from "../../src/model/errors.ts";
import type { ChangeResult, Engine } from "../../src/store/engine.ts";
import { GroupCommit, type Waiting } from "../../src/store/group-commit.ts";
import { memoryEngine } from "../../src/store/memory/index.ts";
import type { Clock } from "../../src/util/clock.ts";
import type { Fault, Faults } from "./faults.ts";
import type { Luck } from "./luck.ts";
import type { Owner, RunQueue } from "./run-queue.ts";

/** A process as the store sees it: who asks, and what can be done to it. */
export interface Client extends Owner {
  readonly isAlive: boolean;
  die(): void;
}

/** Changes on their way to the disk: asked for, not yet written. A power cut forgets them. */
interface Group {
  readonly client: Client;
  readonly members: readonly Waiting[];
  readonly done: () => void;
  forget(): void;
}

export interface StoreCounts {
  commits: number;
  unknownCommits: number;
  refusedCommits: number;
  powerCuts: number;
  lostInPowerCuts: number;
}

/**
 * One database for all processes: the memory engine as the durable image, and in front of it a volatile one of what was
 * asked for and not written. Every request and every answer is an event of its own, so a process can die, and others can
 * come in between, anywhere. Changes go through the product's own group commit.
 */
export class SimStore {
  readonly durable: Engine;
  readonly counts: StoreCounts = {
    commits: 0,
    unknownCommits: 0,
    refusedCommits: 0,
    powerCuts: 0,
    lostInPowerCuts: 0,
  };
  readonly #volatile = new Set<Group>();
  readonly #wire: Owner = { name: "wire" };
  readonly #queue: RunQueue;
  readonly #faults: Faults;
  readonly #luck: Luck;

  constructor(parts: { queue: RunQueue; faults: Faults; luck: Luck; clock: Clock }) {
    this.#queue = parts.queue;
    this.#faults = parts.faults;
    this.#luck = parts.luck;
    this.durable = memoryEngine({ clock: parts.clock, random: parts.luck });
  }

  /** The engine of one process. It dies with it. */
  engineOf(client: Client): Engine {
    const { durable } = this;
    const group = new GroupCommit({
      write: (members) => this.#send(client, members),
      timers: this.#queue.timersOf(client),
    });
    const reading = <Read>(label: string, read: () => Promise<Read>): Promise<Read> =>
      new Promise((resolve, reject) => {
        const delayMs = this.#faults.delayMs("read is slow");
        const run = () => {
          if (this.#faults.strikes("read is refused")) {
            reject(new SallyportError("store_unavailable", { simulated: true }));
          } else read().then(resolve, reject);
        };
        this.#queue.park(client, `reads ${label}`, run, { delayMs });
      });
    return {
      ...durable,
      capabilities: { durable: true, manyProcesses: true },
      commit: (tenant, change) => group.submit(tenant, change),
      get: (tenant, table, id) => reading(table.name, () => durable.get(tenant, table, id)),
      find: (tenant, table, query) => reading(table.name, () => durable.find(tenant, table, query)),
      entries: (tenant, range) => reading("trail", () => durable.entries(tenant, range)),
      head: (tenant) => reading("head", () => durable.head(tenant)),
      heads: () => reading("heads", () => durable.heads()),
      now: () => reading("time", () => durable.now()),
      // A hint by contract, with no promise that it comes: here it never does, and polling must suffice.
      onCommit: () => () => {},
    };
  }

  /** All that was asked for and not written is gone; what was written stays. Who asked cannot know which. */
  cutPower(): void {
    this.counts.powerCuts += 1;
    for (const group of this.#volatile) {
      this.counts.lostInPowerCuts += 1;
      this.counts.unknownCommits += group.members.length;
      group.forget();
      this.#answer(group, "lost in the power cut", () => fail(group, "commit_unknown"));
    }
    this.#volatile.clear();
  }

  #send(client: Client, members: readonly Waiting[]): Promise<void> {
    return new Promise((done) => {
      const label = `commit ${members.map(({ change }) => namesOf(change.events)).join(" | ")}`;
      const group: Group = { client, members, done, forget: () => forget() };
      const delayMs = this.#faults.delayMs("commit is slow");
      const orphan = () => {
        this.#volatile.delete(group);
        // It was sent before its process died: it arrives, or it does not.
        if (!this.#luck.percent(50)) return;
        this.#queue.park(this.#wire, `${label} (nobody waits)`, () => void this.#write(members));
      };
      const forget = this.#queue.park(client, label, () => this.#arrive(group, label), {
        delayMs,
        orphan,
      });
      this.#volatile.add(group);
    });
  }

  #arrive(group: Group, label: string): void {
    const { client, members } = group;
    this.#volatile.delete(group);
    const struck = FATES.find(({ fault }) => this.#faults.strikes(fault));
    const written = struck?.isWritten === false ? undefined : this.#write(members);
    if (struck?.code !== undefined) {
      const { code } = struck;
      const counted = code === "commit_unknown" ? "unknownCommits" : "refusedCommits";
      this.counts[counted] += members.length;
      this.#answer(group, `${struck.fault}: ${label}`, () => fail(group, code));
    } else if (struck !== undefined) {
      client.die();
    } else if (written !== undefined) {
      void written.then((results) => {
        this.#answer(group, `wrote ${label}`, () => succeed(group, results));
      });
    }
  }

  #answer({ client }: Group, label: string, answer: () => void): void {
    this.#queue.park(client, label, answer);
  }

  /** At once and in order: nothing comes between the members of a group. */
  #write(members: readonly Waiting[]): Promise<readonly PromiseSettledResult<ChangeResult>[]> {
    this.counts.commits += members.length;
    return Promise.allSettled(
      members.map(({ tenant, change }) => this.durable.commit(tenant, change)),
    );
  }
}

/** What may become of a change that arrives; the first that strikes counts. Without a code its process dies. */
const FATES: readonly Fate[] = [
  { fault: "process dies before its commit", isWritten: false },
  { fault: "commit is refused", isWritten: false, code: "store_unavailable" },
  { fault: "commit is lost", isWritten: false, code: "commit_unknown" },
  { fault: "process dies after its commit", isWritten: true },
  { fault: "commit is done and its answer lost", isWritten: true, code: "commit_unknown" },
];

interface Fate {
  readonly fault: Fault;
  readonly isWritten: boolean;
  readonly code?: Code;
}

type Code = "store_unavailable" | "commit_unknown";

function succeed(
  { members, done }: Group,
  results: readonly PromiseSettledResult<ChangeResult>[],
): void {
  for (const [index, { resolve, reject }] of members.entries()) {
    const result = results[index];
    if (result?.status === "fulfilled") resolve(result.value);
    else reject(result?.reason);
  }
  done();
}

function fail({ members, done }: Group, code: Code): void {
  for (const { reject } of members) reject(new SallyportError(code, { simulated: true }));
  done();
}

function namesOf(events: readonly { readonly type: string }[]): string {
  return events.map(({ type }) => type).join("+");
}
