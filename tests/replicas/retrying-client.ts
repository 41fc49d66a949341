import { setTimeout } from "node:timers/promises";
import { type Client, isSallyportError } from "../../src/client/index.ts";
import { clientOf } from "../http/passes.ts";

/** Why a request is sent again: it was not reached, or it says itself that nothing is decided yet. */
const AGAIN = [
  "store_unavailable",
  "store_busy",
  "overloaded",
  "too_fast",
  "still_running",
] as const;

export interface Retries {
  count: number;
}

/**
 * A client that knows the addresses of all replicas and nothing else: what did not get through is sent again, with the same
 * key, to the next one. Throws what a server really answered.
 */
export function retryingClient(urls: readonly string[], pass: string, retries: Retries) {
  const clients = urls.map((url) => clientOf(url, pass, { retries: 0 }));
  let next = 0;
  return async function send<Answer>(
    ask: (client: Client, how: { idempotencyKey: string; signal: AbortSignal }) => Promise<Answer>,
    idempotencyKey: string = crypto.randomUUID(),
  ): Promise<Answer> {
    for (;;) {
      const client = clients[next % clients.length];
      if (client === undefined) throw new Error("no address was given");
      try {
        return await ask(client, { idempotencyKey, signal: AbortSignal.timeout(10_000) });
      } catch (error) {
        const isTimeout = error instanceof DOMException && error.name === "TimeoutError";
        if (!isTimeout && !AGAIN.some((code) => isSallyportError(error, code))) throw error;
        retries.count += 1;
        next += 1;
        await setTimeout(20 + Math.random() * 80);
      }
    }
  };
}

export type Send = ReturnType<typeof retryingClient>;
