import { SallyportError } from "../model/errors.ts";
import { isAgent, type Sender, senderKey } from "./connections.ts";

export interface StreamLimits {
  /** Open event streams of one agent. */
  readonly perAgent: number;
  /** Open event streams of all agents of one tenant. */
  readonly agentsPerTenant: number;
  /** Open event streams of one person or of a program of theirs. */
  readonly perPerson: number;
}

/** Counts open event streams: each holds a connection for as long as its listener likes. */
export class Streams {
  readonly #limits: StreamLimits;
  readonly #open = new Map<string, number>();

  constructor(limits: StreamLimits) {
    this.#limits = limits;
  }

  /** Gives back how to leave; call it once. Throws quota_exceeded. */
  enter(sender: Sender): () => void {
    const { perAgent, agentsPerTenant, perPerson } = this.#limits;
    const own = `sender ${senderKey(sender)}`;
    const counted = isAgent(sender)
      ? ([
          [own, perAgent],
          [`tenant ${sender.tenant}`, agentsPerTenant],
        ] as const)
      : ([[own, perPerson]] as const);
    for (const [key, limit] of counted) {
      if ((this.#open.get(key) ?? 0) < limit) continue;
      const hint = "Too many event streams are open. Close some, or follow all with one.";
      throw new SallyportError("quota_exceeded", { what: "event streams", limit, hint });
    }
    for (const [key] of counted) this.#open.set(key, (this.#open.get(key) ?? 0) + 1);
    return () => {
      for (const [key] of counted) {
        const rest = (this.#open.get(key) ?? 1) - 1;
        if (rest > 0) this.#open.set(key, rest);
        else this.#open.delete(key);
      }
    };
  }
}
