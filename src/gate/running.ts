// The calls that run in this process, whoever began them: an agent, a person's yes, a recovery. So that somebody else than
// their caller can cancel and follow them.

import type { Progress } from "../tools/tool.ts";

/** Shape: push, while the call runs. */
type Follower = (report: Progress) => void;

/** A call that has begun; `end` must be called when it is over. */
export interface BegunCalls {
  readonly signal: AbortSignal;
  end(): void;
}

export class RunningCalls {
  readonly #running = new Map<string, Set<AbortController>>();
  readonly #followers = new Map<string, Set<Follower>>();

  /** One signal for all calls of a batch. */
  begin(sessionId: string, callIds: readonly string[]): BegunCalls {
    const stop = new AbortController();
    const ends = callIds.map((callId) => addTo(this.#running, keyOf(sessionId, callId), stop));
    return { signal: stop.signal, end: () => ends.forEach((end) => void end()) };
  }

  /** False when no such call runs here: it has ended, waits for a person, or runs elsewhere. */
  cancel(sessionId: string, callId: string, reason: string): boolean {
    const found = [...(this.#running.get(keyOf(sessionId, callId)) ?? [])];
    for (const stop of found) stop.abort(new Error(reason));
    return found.length > 0;
  }

  /** Until the returned function is called; also for a call that has yet to begin. */
  follow(sessionId: string, callId: string, follower: Follower): () => void {
    return addTo(this.#followers, keyOf(sessionId, callId), follower);
  }

  /** Follows a call while `work` goes on. */
  async following<Result>(
    of: { readonly sessionId: string; readonly callId: string; readonly tell: Follower },
    work: () => Promise<Result>,
  ): Promise<Result> {
    const unfollow = this.follow(of.sessionId, of.callId, of.tell);
    try {
      return await work();
    } finally {
      unfollow();
    }
  }

  report(sessionId: string, callId: string, report: Progress): void {
    for (const follower of this.#followers.get(keyOf(sessionId, callId)) ?? []) follower(report);
  }
}

function keyOf(sessionId: string, callId: string): string {
  return JSON.stringify([sessionId, callId]);
}

function addTo<Item>(to: Map<string, Set<Item>>, key: string, item: Item): () => void {
  const items = to.get(key) ?? new Set();
  to.set(key, items.add(item));
  return () => {
    items.delete(item);
    if (items.size === 0 && to.get(key) === items) to.delete(key);
  };
}
