import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { isIP, isIPv4, isIPv6, type Socket } from "node:net";
import type { Gate } from "../gate/create-gate.ts";
import { type OpenQuota, openQuota } from "../gate/propose.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Identity, Role } from "../model/identity.ts";
import type { Clock } from "../util/clock.ts";
import { proxyList } from "./exposure.ts";

export interface ConnectionLimits {
  /** All together. */
  readonly total: number;
  /** Connections without a valid token. When there are more, the oldest of them is closed. */
  readonly strangers: number;
  /** Connections of one sender. */
  readonly perSender: number;
  /** Connections of all agents together. The rest of `total` is reserved for people. */
  readonly agents: number;
}

/** The part of an identity that owns a connection or a stream. */
type Sender = Pick<Identity, "tenant" | "subject" | "roles">;

const PROGRAMS: readonly Role[] = ["agent", "subagent", "executor"];

function isAgent({ roles }: Sender): boolean {
  return roles.every((role) => PROGRAMS.includes(role));
}

export function senderKey({ tenant, subject }: Sender): string {
  return JSON.stringify([tenant, subject]);
}

interface Owner {
  readonly key: string;
  readonly isAgent: boolean;
}

/**
 * Who holds the server's connections. Agents and strangers together can never hold all of them, so people, the kill switch
 * and the health check always find one. A connection belongs to the sender of its last request: a proxy sends those
 * of many over one.
 */
export class Connections {
  readonly #limits: ConnectionLimits;
  /** Oldest first. */
  readonly #strangers = new Set<Socket>();
  readonly #owners = new Map<Socket, Owner>();
  readonly #bySender = new Map<string, number>();
  #agents = 0;

  constructor(limits: ConnectionLimits) {
    const { total, strangers, agents } = limits;
    if (strangers + agents >= total) {
      throw new TypeError("limits.connections: strangers and agents must leave some for people.");
    }
    this.#limits = limits;
  }

  accept(socket: Socket): void {
    this.#strangers.add(socket);
    socket.once("close", () => {
      this.#strangers.delete(socket);
      this.#leave(socket);
    });
    if (this.#strangers.size <= this.#limits.strangers) return;
    const [oldest] = this.#strangers;
    if (oldest === undefined) return;
    this.#strangers.delete(oldest);
    oldest.destroy();
  }

  /** Throws overloaded; the connection then still counts as unauthenticated and must be closed. */
  claim(socket: Socket, sender: Sender): void {
    const next: Owner = { key: senderKey(sender), isAgent: isAgent(sender) };
    const before = this.#owners.get(socket);
    if (before?.key === next.key && before.isAgent === next.isAgent) return;
    if (socket.destroyed) return;
    this.#leave(socket);
    const { perSender, agents } = this.#limits;
    const own = this.#bySender.get(next.key) ?? 0;
    if (own >= perSender) throw full(perSender, "of this sender");
    if (next.isAgent && this.#agents >= agents) throw full(agents, "of agents");
    this.#strangers.delete(socket);
    this.#owners.set(socket, next);
    count(this.#bySender, next.key, 1);
    if (next.isAgent) this.#agents += 1;
  }

  #leave(socket: Socket): void {
    const owner = this.#owners.get(socket);
    if (owner === undefined) return;
    this.#owners.delete(socket);
    count(this.#bySender, owner.key, -1);
    if (owner.isAgent) this.#agents -= 1;
    if (!socket.destroyed) this.#strangers.add(socket);
  }
}

function count(counts: Map<string, number>, key: string, change: 1 | -1): void {
  const next = (counts.get(key) ?? 0) + change;
  if (next > 0) counts.set(key, next);
  else counts.delete(key);
}

function full(limit: number, whose: string): SallyportError {
  const hint = `Too many connections ${whose}. Close some, or reuse open ones.`;
  return new SallyportError("overloaded", { limit, hint });
}

/** Sustained rate per second, and burst after a pause. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** Idle senders are forgotten when this many are remembered. */
const SWEEP_EVERY = 10_000;

/** Rate limit per sender: a sender above its rate gets the time to wait; others are not affected. */
/** The calls that run in this server, so that others than their sender can abort them. */
export class RunningCalls {
  readonly #running = new Map<string, Set<AbortController>>();

  /** One signal for all of these; call `end` when they are over. */
  begin(keys: readonly string[]): { readonly signal: AbortSignal; end(): void } {
    const stop = new AbortController();
    for (const key of keys) {
      const known = this.#running.get(key) ?? new Set();
      this.#running.set(key, known.add(stop));
    }
    const end = () => {
      for (const key of keys) {
        const known = this.#running.get(key);
        known?.delete(stop);
        if (known?.size === 0) this.#running.delete(key);
      }
    };
    return { signal: stop.signal, end };
  }

  /** False when there is none. */
  cancel(key: string, reason: string): boolean {
    const found = [...(this.#running.get(key) ?? [])];
    for (const stop of found) stop.abort(new Error(reason));
    return found.length > 0;
  }
}

export class Turnstile {
  /** The cost of one request and the allowed burst, in milliseconds. */
  readonly #costMs: number;
  readonly #aheadMs: number;
  readonly #stopwatch: Clock;
  /** Until when each sender has used up its share. */
  readonly #usedUntil = new Map<string, number>();
  #sweepAt = SWEEP_EVERY;

  constructor({ perSecond, burst }: Rate, stopwatch: Clock) {
    this.#costMs = 1_000 / perSecond;
    this.#aheadMs = burst * this.#costMs;
    this.#stopwatch = stopwatch;
  }

  /** How many senders it remembers. */
  get size(): number {
    return this.#usedUntil.size;
  }

  /** 0 if the request may pass, otherwise the milliseconds to wait. */
  pass(sender: string): number {
    const now = this.#stopwatch.now();
    const until = Math.max(now, this.#usedUntil.get(sender) ?? now) + this.#costMs;
    const tooFar = until - now - this.#aheadMs;
    if (tooFar > 0) return Math.ceil(tooFar);
    this.#usedUntil.set(sender, until);
    if (this.#usedUntil.size > this.#sweepAt) this.#sweep(now);
    return 0;
  }

  /** Gives one request back to this sender. */
  giveBack(sender: string): void {
    const until = this.#usedUntil.get(sender);
    if (until !== undefined) this.#usedUntil.set(sender, until - this.#costMs);
  }

  #sweep(now: number): void {
    for (const [sender, until] of this.#usedUntil) {
      if (until <= now) this.#usedUntil.delete(sender);
    }
    this.#sweepAt = this.#usedUntil.size + SWEEP_EVERY;
  }
}

export interface StreamLimits {
  /** Open event streams of one agent. */
  readonly perAgent: number;
  /** Open event streams of all agents of one tenant. */
  readonly agentsPerTenant: number;
  /** Open event streams of one person or of a program of theirs. */
  readonly perPerson: number;
}

/** Limits open event streams: each holds a connection until its listener leaves. */
export class Streams {
  readonly #limits: StreamLimits;
  readonly #open = new Map<string, number>();

  constructor(limits: StreamLimits) {
    this.#limits = limits;
  }

  /** Returns a function to leave; call it once. Throws quota_exceeded. */
  enter(sender: Sender): () => void {
    const { perAgent, agentsPerTenant, perPerson } = this.#limits;
    const own = `sender ${senderKey(sender)}`;
    const counted = new Map([[own, isAgent(sender) ? perAgent : perPerson]]);
    if (isAgent(sender)) counted.set(`tenant ${sender.tenant}`, agentsPerTenant);
    for (const [key, limit] of counted) {
      if ((this.#open.get(key) ?? 0) < limit) continue;
      const hint = "Too many event streams are open. Close some, or use one stream for everything.";
      throw new SallyportError("quota_exceeded", { what: "event streams", limit, hint });
    }
    for (const [key] of counted) count(this.#open, key, 1);
    return () => {
      for (const [key] of counted) count(this.#open, key, -1);
    };
  }
}

/** Counts the unfinished tasks that each sender added. */
export type TaskQuota = (tenant: string, tasks: Gate["tasks"]) => OpenQuota;

export interface TaskQuotaLimits {
  readonly most: number;
  readonly mostBytes: number;
}

export function taskQuotas(limits: TaskQuotaLimits, stopwatch: Clock): TaskQuota {
  const made = new Map<string, OpenQuota>();
  return (tenant, tasks) => {
    const quota = made.get(tenant) ?? openQuota({ ...limits, ...WORDS, isOpen, now });
    made.set(tenant, quota);
    return quota;

    async function isOpen(id: string): Promise<boolean> {
      try {
        const { status } = await tasks.get(id);
        return status === "pending" || status === "claimed";
      } catch (error) {
        if (isSallyportError(error, "not_found")) return false;
        throw error;
      }
    }
  };

  function now(): number {
    return stopwatch.now();
  }
}

const WORDS = {
  what: "open tasks",
  hint: "Wait until some of the tasks that you added are completed.",
};

/** Files that are kept for the store, the tools and the console. */
const MOST_KEPT = 256;

/**
 * The same limits, smaller in proportion where this process may not open so many files: the system
 * refuses connections without regard to whether an agent or a person opens them.
 */
export function withinOpenFiles(
  limits: ConnectionLimits,
  files: number | undefined = openFileLimit(),
): ConnectionLimits {
  if (files === undefined) return limits;
  const total = Math.ceil(files - Math.min(MOST_KEPT, files / 4));
  if (limits.total <= total) return limits;
  const share = (count: number) => Math.max(1, Math.floor((count * total) / limits.total));
  const { strangers, perSender, agents } = limits;
  return {
    total,
    strangers: share(strangers),
    perSender: share(perSender),
    agents: share(agents),
  };
}

/** How many files this process may have open, connections included; undefined where the system does not report it. */
function openFileLimit(): number | undefined {
  // Elsewhere Node raises its limit to what the system allows, which is far more.
  if (process.platform !== "linux") return undefined;
  const limits = readFileSync("/proc/self/limits", "utf8");
  const found = /^Max open files +(\d+)/m.exec(limits)?.[1];
  return found === undefined ? undefined : Number(found);
}

/** Whose request it is, as an address. */
export type CallerAddress = (request: IncomingMessage) => string;

/**
 * The address of the caller: that of the connection, unless a trusted proxy made it. Then it is the last address in
 * `X-Forwarded-For` that is not itself a trusted proxy: what stands before it was written by the caller.
 */
export function callerAddress(trusted: readonly string[]): CallerAddress {
  const list = proxyList(trusted);
  const isTrusted = (address: string) =>
    isIP(address) !== 0 && list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
  return ({ socket, headers }) => {
    let address = plainAddress(socket.remoteAddress ?? "");
    if (trusted.length === 0) return address;
    const header = headers["x-forwarded-for"];
    const hops = (typeof header === "string" ? header : "").split(",").map((hop) => hop.trim());
    while (isTrusted(address) && hops.length > 0) {
      const before = plainAddress(hops.pop() ?? "");
      // A proxy that appends something else than an address says nothing about its caller.
      if (isIP(before) === 0) break;
      address = before;
    }
    return address;
  };
}

/** An IPv4 address on a socket for both families has a prefix. */
function plainAddress(address: string): string {
  return address.startsWith("::ffff:") && isIPv4(address.slice(7)) ? address.slice(7) : address;
}
