import type { Change } from "../../src/store/engine.ts";
import { type MemoryEngine, memoryEngine } from "../../src/store/memory/index.ts";
import type { PgClient, PgPool, PgQuery } from "../../src/store/postgres/connection.ts";
import type { FoundHead } from "../../src/store/postgres/writer.ts";
import type { Clock } from "../../src/util/clock.ts";
import type { Faults } from "./faults.ts";
import type { Luck } from "./luck.ts";
import type { Owner, RunQueue } from "./run-queue.ts";

/** A process as the server sees it: who asks, and what can be done to it. */
export interface Client extends Owner {
  readonly isAlive: boolean;
  die(): void;
}

/** Takes the tenant's turn, and tells where its chain ends and what time it is. */
export const LOCK = "LOCK";
/** Runs the function it is handed on the image. */
export const READ = "READ";

/** What LOCK answers. */
export interface Locked {
  readonly end: Promise<FoundHead>;
  readonly image: MemoryEngine;
  readonly now: number;
  /** By how much that is wrong. */
  readonly offMs: number;
}

/** What a COMMIT brings. */
export interface Work {
  readonly image: MemoryEngine;
  readonly changes: readonly Change[];
  /** How long the trail is with it. */
  readonly seq: number;
  readonly label: string;
  /** The time that the clock gave to the writer, if it was trusted. */
  readonly clock: number;
}

/** When an entry was written: by the database's clock, and by monotonic time. */
export interface Stamp {
  readonly clock: number;
  readonly elapsed: number;
}

export interface ServerCounts {
  commits: number;
  powerCuts: number;
  lostInPowerCuts: number;
  failovers: number;
  lostEntries: number;
}

export interface ServerParts {
  readonly queue: RunQueue;
  readonly faults: Faults;
  readonly luck: Luck;
  readonly clock: Clock;
  readonly tenant: string;
  readonly leaseMs: number;
  readonly patienceMs: number;
  /** The trail ends at `seq` now, and everything behind it is gone. */
  onLoss(seq: number): void;
  onProblem(problem: string): void;
}

interface Reply {
  resolve(answer: { rows: never[] }): void;
  reject(error: unknown): void;
}

interface Waiting {
  readonly line: SimLine;
  readonly grant: () => void;
  readonly cancel: () => void;
}

/** Was written, and a failover has taken it back. */
const LOST = 0;

const DAY = 24 * 3_600_000;
const WRONG_BY = [DAY, -DAY, 365 * DAY, -365 * DAY] as const;
/** A server that is away for longer than the shorter patience leaves commits unknown. */
const AWAY_MS = 800;
const SILENT_MS = 10_000;
/** A standby lags by so many commits at most. */
const MOST_LAG = 8;

/**
 * A database server as the product's own session, lines and reader see it: connections that break, requests that are on
 * their way, one turn per tenant, and an image of what is durable. What SQL does is done by the memory engine, on a copy
 * that takes the image's place when it is committed.
 */
export class SimServer {
  readonly counts: ServerCounts = {
    commits: 0,
    powerCuts: 0,
    lostInPowerCuts: 0,
    failovers: 0,
    lostEntries: 0,
  };
  /** Of each entry, by its number. */
  stamps: Stamp[] = [];
  /** Until an operator has looked at what was lost, no more is. */
  isLossOpen = false;
  readonly #parts: ServerParts;
  readonly #owner: Owner = { name: "server" };
  readonly #lines = new Set<SimLine>();
  #image: MemoryEngine;
  /** The images of the last commits, newest last. */
  #past: { readonly image: MemoryEngine; readonly seq: number }[] = [];
  #holder: SimLine | undefined;
  #waiting: Waiting[] = [];
  /** Which version the tables have. */
  #version = 1;
  #awayUntil = 0;
  #silentUntil = 0;
  /** What was written, with the number of its last entry, and what was told as not written. */
  readonly #written = new Map<Change, number>();
  readonly #denied = new Set<Change>();

  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.#image = memoryEngine(this.#own());
  }

  get image(): MemoryEngine {
    return this.#image;
  }

  /** Whether a writer has the turn: a write around it would be overwritten by its commit. */
  get isTaken(): boolean {
    return this.#holder !== undefined;
  }

  /** A pool of connections of one process. */
  poolOf(client: Client): PgPool {
    const idle: SimLine[] = [];
    const release = (line: SimLine) => void idle.push(line);
    return {
      connect: () => {
        for (let line = idle.pop(); line !== undefined; line = idle.pop()) {
          if (line.isUp) return Promise.resolve(line);
        }
        return this.#connect(client, release);
      },
      query: () => Promise.reject(new Error("a simulated pool has no queries of its own")),
    };
  }

  /** Compares the result for a caller with the image. */
  told(change: Change, what: "written" | "not written"): void {
    const seq = this.#written.get(change);
    const { onProblem } = this.#parts;
    const names = namesOf([change]);
    if (what === "written") {
      if (seq === undefined) onProblem(`I9 ${names} was acknowledged and not written`);
      return;
    }
    if (seq !== undefined && seq !== LOST)
      onProblem(`I9 ${names} was reported as not written, and is there`);
    this.#denied.add(change);
  }

  ask(line: SimLine, query: PgQuery, reply: Reply): void {
    const { faults } = this.#parts;
    if (!line.isUp) {
      reply.reject(cutLine());
      return;
    }
    const slow = workOf(query) !== undefined ? "commit is slow" : "read is slow";
    const delayMs = query.text === READ || workOf(query) ? faults.delayMs(slow) : 0;
    line.pending.add(reply);
    line.inFlight = query;
    this.#deliver(line, query, reply, delayMs);
  }

  #deliver(line: SimLine, query: PgQuery, reply: Reply, delayMs: number): void {
    this.#whenHeard(line.client, labelOf(query), delayMs, () => {
      if (line.inFlight === query) this.#arrive(line, query, reply);
    });
  }

  /** The process closes a line, or dies: what was sent arrives or does not, and then the server forgets the line. */
  leave(line: SimLine): void {
    const { queue, luck } = this.#parts;
    if (!line.isUp) return;
    line.isUp = false;
    const sent = line.inFlight;
    line.inFlight = undefined;
    line.fail(cutLine());
    const work = sent && workOf(sent);
    const arrives = work !== undefined && this.#holder === line && luck.percent(50);
    const label = work ? `${work.label} (nobody waits)` : "a line is closed";
    queue.park(
      this.#owner,
      label,
      () => {
        if (arrives && this.#holder === line) this.#install(work);
        this.#forget(line);
      },
      { delayMs: luck.below(500) },
    );
  }

  leaveAll(client: Client): void {
    for (const line of [...this.#lines]) if (line.client === client) this.leave(line);
  }

  /** What was under way is gone; what was written stays. Who asked cannot know which. */
  cutPower(): void {
    this.counts.powerCuts += 1;
    if (this.#holder !== undefined) this.counts.lostInPowerCuts += 1;
    this.#restart();
  }

  #connect(client: Client, release: (line: SimLine) => void): Promise<PgClient> {
    const { queue } = this.#parts;
    return new Promise((resolve, reject) => {
      this.#whenHeard(client, "connects", 0, () => {
        if (queue.time < this.#awayUntil) return reject(lineError("ECONNREFUSED"));
        const line = new SimLine(this, client, this.#version, release);
        this.#lines.add(line);
        resolve(line);
      });
    });
  }

  /** Runs `heard` when its time has come and the server is not silent. */
  #whenHeard(client: Client, label: string, delayMs: number, heard: () => void): void {
    const { queue } = this.#parts;
    const run = () => {
      if (queue.time < this.#silentUntil) {
        this.#whenHeard(client, label, this.#silentUntil - queue.time, heard);
      } else heard();
    };
    queue.park(client, label, run, { delayMs });
  }

  #arrive(line: SimLine, query: PgQuery, reply: Reply): void {
    const { faults, queue, luck, patienceMs } = this.#parts;
    const isLock = query.text === LOCK;
    if (isLock && faults.strikes("server is altered")) this.#version += 1;
    if (isLock && faults.strikes("server is silent")) {
      this.#silentUntil = queue.time + 100 + luck.below(patienceMs + SILENT_MS);
      this.#deliver(line, query, reply, 0);
    } else {
      line.inFlight = undefined;
      const isPlanned = isLock || query.text === READ;
      if (isPlanned && line.version !== this.#version) line.refuse(reply, serverError("0A000"));
      else this.#handle(line, query, reply);
    }
  }

  #handle(line: SimLine, query: PgQuery, reply: Reply): void {
    const { faults } = this.#parts;
    const { text, values = [] } = query;
    const answer = (...rows: unknown[]) => line.answer(reply, rows);
    const work = workOf(query);
    if (work !== undefined) this.#commit(line, work, reply);
    else if (text === LOCK) {
      if (faults.strikes("commit is refused")) line.refuse(reply, serverError("53100"));
      else this.#takeTurn(line, reply, () => answer(this.#locked(values[1])));
    } else if (text === READ) {
      const [, read] = values as [string, (image: MemoryEngine) => Promise<unknown>];
      if (faults.strikes("read is refused")) line.refuse(reply, serverError("53200"));
      else read(this.#image).then(answer, (error: unknown) => line.refuse(reply, error));
    } else if (text.includes("FOR UPDATE")) {
      this.#takeTurn(line, reply, () => answer());
    } else if (text.startsWith("SELECT encode(head")) {
      const [tenant, seq] = values as [string, number];
      const found = this.#image.entries(tenant, { after: seq - 1, limit: 1 });
      void found.then((rows) => answer(...rows));
    } else {
      if (text.startsWith("SET")) line.configure(text);
      else if (text === "COMMIT" || text === "ROLLBACK") this.#endTurn(line);
      else if (!/^(?:BEGIN|INSERT INTO simulated.chains)/.test(text))
        throw new Error(`the server does not know ${text}`);
      answer();
    }
  }

  async #endOf(image: MemoryEngine, seen: unknown): Promise<FoundHead> {
    const { tenant } = this.#parts;
    const { seq, hash } = await image.head(tenant);
    const after = Number(seen) - 1;
    const [known] = seen === null ? [] : await image.entries(tenant, { after, limit: 1 });
    return seq === 0
      ? { seq: null, hash: null, seen_hash: null }
      : { seq, hash, seen_hash: known?.hash ?? null };
  }

  #locked(seen: unknown): Locked {
    const image = this.#image;
    const offMs = this.#off();
    return { end: this.#endOf(image, seen), image, now: this.#parts.clock.now() + offMs, offMs };
  }

  #off(): number {
    const { faults, luck } = this.#parts;
    return faults.strikes("clock was wrong once") ? luck.pick(WRONG_BY) : 0;
  }

  /** One at a time, in the order of the requests, and no request waits longer than its limit. */
  #takeTurn(line: SimLine, reply: Reply, granted: () => void): void {
    const { queue } = this.#parts;
    const grant = () => {
      this.#holder = line;
      line.idle = queue.park(this.#owner, "ends an idle transaction", () => this.#cut(line), {
        delayMs: line.idleMs,
      });
      granted();
    };
    if (this.#holder === undefined) {
      grant();
      return;
    }
    const expire = () => {
      this.#waiting = this.#waiting.filter((one) => one !== waiting);
      line.refuse(reply, serverError("55P03"));
    };
    const cancel = queue.park(this.#owner, "a row is waited for too long", expire, {
      delayMs: line.lockMs,
    });
    const waiting: Waiting = { line, cancel, grant };
    this.#waiting.push(waiting);
  }

  #endTurn(line: SimLine): void {
    if (this.#holder !== line) return;
    line.idle?.();
    this.#holder = undefined;
    const next = this.#waiting.shift();
    if (next === undefined) return;
    next.cancel();
    next.grant();
  }

  /** What becomes of a COMMIT that arrives; the first fault that strikes counts. */
  #commit(line: SimLine, work: Work, reply: Reply): void {
    const { faults, luck } = this.#parts;
    const mayLose = !this.isLossOpen && this.#past.length > 0;
    if (faults.strikes("process dies before its commit")) line.client.die();
    else if (faults.strikes("commit is lost")) this.#break(line);
    else if (mayLose && faults.strikes("server loses its tail")) this.#failOver();
    else if (faults.strikes("sync fails")) {
      if (luck.percent(50)) this.#install(work);
      line.refuse(reply, serverError("58030", "PANIC"));
      this.#restart();
    } else {
      this.#install(work);
      this.#endTurn(line);
      this.#acknowledge(line, work, reply);
    }
  }

  #acknowledge(line: SimLine, { label }: Work, reply: Reply): void {
    const { faults, luck, leaseMs } = this.#parts;
    const { client } = line;
    if (faults.strikes("process dies after its commit")) client.die();
    else if (faults.strikes("commit is done and its answer lost")) this.#break(line);
    else {
      const isSlow = faults.strikes("answer of a commit is slow");
      const delayMs = isSlow ? leaseMs + luck.below(3_000) : 0;
      this.#whenHeard(client, `wrote ${label}`, delayMs, () => line.answer(reply, []));
    }
  }

  #install({ image, changes, seq, clock }: Work): void {
    const { queue, onProblem } = this.#parts;
    const before = this.stamps.length;
    this.#past = [...this.#past, { image: this.#image, seq: before }].slice(-MOST_LAG);
    this.#image = image.copy(this.#own());
    this.counts.commits += changes.length;
    for (let number = before; number < seq; number += 1) {
      this.stamps.push({ clock, elapsed: queue.time });
    }
    for (const change of changes) {
      const names = namesOf([change]);
      const earlier = this.#written.get(change) ?? LOST;
      if (earlier !== LOST) onProblem(`I7 ${names} was written twice`);
      if (this.#denied.has(change)) onProblem(`I9 ${names} was reported as not written, and came`);
      this.#written.set(change, seq);
    }
  }

  /** The standby that takes over has everything but the last commits; half of the time all processes start anew as well. */
  #failOver(): void {
    const { luck, onLoss } = this.#parts;
    const { image, seq } = luck.pick(this.#past);
    const clients = new Set([...this.#lines].map(({ client }) => client));
    if (luck.percent(50)) for (const client of clients) client.die();
    this.#restart();
    this.#image = image.copy(this.#own());
    this.#past = [];
    this.counts.failovers += 1;
    this.counts.lostEntries += this.stamps.length - seq;
    this.stamps = this.stamps.slice(0, seq);
    for (const [change, at] of this.#written) if (at > seq) this.#written.set(change, LOST);
    this.isLossOpen = true;
    onLoss(seq);
  }

  #restart(): void {
    for (const { cancel } of this.#waiting.splice(0)) cancel();
    for (const line of [...this.#lines]) this.#cut(line);
    this.#goAway();
  }

  #break(line: SimLine): void {
    this.#cut(line);
    this.#goAway();
  }

  #goAway(): void {
    const { queue, luck } = this.#parts;
    this.#awayUntil = Math.max(this.#awayUntil, queue.time + luck.below(AWAY_MS));
  }

  /** The server ends a line; its process hears of it some time later. */
  #cut(line: SimLine): void {
    line.isUp = false;
    line.inFlight = undefined;
    this.#forget(line);
    if (!line.client.isAlive) return;
    this.#whenHeard(line.client, "hears that its line is cut", 0, () => line.fail(cutLine()));
  }

  #forget(line: SimLine): void {
    this.#lines.delete(line);
    for (const waiting of this.#waiting.filter((one) => one.line === line)) waiting.cancel();
    this.#waiting = this.#waiting.filter((one) => one.line !== line);
    this.#endTurn(line);
  }

  #own() {
    const { clock, luck } = this.#parts;
    return { clock: { now: () => clock.now() + this.#off() }, random: luck };
  }
}

/** One connection, with the part of `pg` that the product uses. */
export class SimLine implements PgClient {
  readonly client: Client;
  readonly version: number;
  readonly connection = { stream: { destroy: () => this.#server.leave(this) } };
  readonly pending = new Set<Reply>();
  isUp = true;
  inFlight: PgQuery | undefined;
  /** Calls off the end of its transaction for being idle. */
  idle: (() => void) | undefined;
  idleMs = 60_000;
  lockMs = 60_000;
  readonly #server: SimServer;
  readonly #release: (line: SimLine) => void;
  readonly #listeners = new Set<(error: Error) => void>();

  constructor(
    server: SimServer,
    client: Client,
    version: number,
    release: (line: SimLine) => void,
  ) {
    this.#server = server;
    this.client = client;
    this.version = version;
    this.#release = release;
  }

  query<R>(query: PgQuery): Promise<{ rows: R[] }> {
    return new Promise((resolve, reject) => this.#server.ask(this, query, { resolve, reject }));
  }

  release(destroy = false): void {
    if (destroy) this.#server.leave(this);
    else if (this.isUp) this.#release(this);
  }

  on(event: "error" | "notification", listener: (error: Error) => void): void {
    if (event === "error") this.#listeners.add(listener);
  }

  off(_: "error", listener: (error: Error) => void): void {
    this.#listeners.delete(listener);
  }

  /** What the session asks the server to hold it to. */
  configure(text: string): void {
    const of = (name: string) => Number(new RegExp(`${name} = (\\d+)`).exec(text)?.[1] ?? 60_000);
    this.idleMs = of("idle_in_transaction_session_timeout");
    this.lockMs = of("lock_timeout");
  }

  answer(reply: Reply, rows: readonly unknown[]): void {
    if (this.#isAwaited(reply)) reply.resolve({ rows: rows as never[] });
  }

  refuse(reply: Reply, error: unknown): void {
    if (this.#isAwaited(reply)) reply.reject(error);
  }

  /** A process that died hears of nothing any more. */
  #isAwaited(reply: Reply): boolean {
    return this.pending.delete(reply) && this.client.isAlive;
  }

  /** Nothing more comes over it. */
  fail(error: Error): void {
    const pending = [...this.pending];
    this.pending.clear();
    if (!this.client.isAlive) return;
    for (const { reject } of pending) reject(error);
    for (const listener of [...this.#listeners]) listener(error);
  }
}

function workOf({ text, values }: PgQuery): Work | undefined {
  return text === "COMMIT" ? (values?.[0] as Work | undefined) : undefined;
}

function labelOf(query: PgQuery): string {
  const { text, values = [] } = query;
  const work = workOf(query);
  if (work !== undefined) return work.label;
  if (text === LOCK) return `asks for its turn: ${String(values[0])}`;
  return text === READ ? `reads ${String(values[0])}` : `asks ${text.slice(0, 12)}`;
}

export function namesOf(changes: readonly Change[]): string {
  return changes.map(({ events }) => events.map(({ type }) => type).join("+")).join(" | ");
}

function cutLine(): Error {
  return lineError("ECONNRESET");
}

function lineError(code: string): Error {
  return Object.assign(new Error(`simulated: ${code}`), { code });
}

function serverError(code: string, severity = "ERROR"): Error {
  return Object.assign(new Error(`simulated: ${code}`), { code, severity });
}
