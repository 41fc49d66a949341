import type { Socket } from "node:net";
import { SallyportError } from "../model/errors.ts";
import type { Identity } from "../model/identity.ts";

export interface ConnectionLimits {
  /** All together. */
  readonly total: number;
  /** Those that have not shown a live token. When there are more, the oldest of them is closed. */
  readonly strangers: number;
  /** Those of one sender, whoever it is. */
  readonly perSender: number;
  /** Those of all agents together. What remains of `total` is kept free for people. */
  readonly agents: number;
}

/** What of an identity says whose a connection or a stream is. */
export type Sender = Pick<Identity, "tenant" | "subject" | "roles">;

export function isAgent({ roles }: Sender): boolean {
  return roles.every((role) => role === "agent");
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
 * and the health check always find one. A connection belongs to whoever sent the last request on it: a proxy sends those
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

  /** Throws overloaded; then the connection still counts as a stranger's and is to be closed. */
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
    this.#bySender.set(next.key, own + 1);
    if (next.isAgent) this.#agents += 1;
  }

  #leave(socket: Socket): void {
    const owner = this.#owners.get(socket);
    if (owner === undefined) return;
    this.#owners.delete(socket);
    const rest = (this.#bySender.get(owner.key) ?? 1) - 1;
    if (rest > 0) this.#bySender.set(owner.key, rest);
    else this.#bySender.delete(owner.key);
    if (owner.isAgent) this.#agents -= 1;
    if (!socket.destroyed) this.#strangers.add(socket);
  }
}

function full(limit: number, whose: string): SallyportError {
  const hint = `There are too many connections ${whose}. Close some, or use those that are open.`;
  return new SallyportError("overloaded", { limit, hint });
}
