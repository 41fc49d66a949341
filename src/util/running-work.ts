// The work that runs in this process, each piece under the name of its group and its own, so that others than the one who
// began it can cancel and follow it.

/** Shape: push, while the work runs. */
type Follower<Report> = (report: Report) => void;

/** Work that has begun; `end` must be called when it is over. */
interface Begun {
  readonly signal: AbortSignal;
  end(): void;
}

export class RunningWork<Report> {
  readonly #running = new Map<string, Set<AbortController>>();
  readonly #followers = new Map<string, Set<Follower<Report>>>();

  /** One signal for all of these. */
  begin(group: string, names: readonly string[]): Begun {
    const stop = new AbortController();
    const ends = names.map((name) => addTo(this.#running, keyOf(group, name), stop));
    return { signal: stop.signal, end: () => ends.forEach((end) => void end()) };
  }

  /** False when no such work runs here. */
  cancel(group: string, name: string, reason: string): boolean {
    const found = [...(this.#running.get(keyOf(group, name)) ?? [])];
    for (const stop of found) stop.abort(new Error(reason));
    return found.length > 0;
  }

  /** Until the returned function is called; also for work that has yet to begin. */
  follow(group: string, name: string, follower: Follower<Report>): () => void {
    return addTo(this.#followers, keyOf(group, name), follower);
  }

  /** Follows a piece of work while another runs. */
  async following<Result>(
    of: { readonly group: string; readonly name: string; readonly tell: Follower<Report> },
    work: () => Promise<Result>,
  ): Promise<Result> {
    const unfollow = this.follow(of.group, of.name, of.tell);
    try {
      return await work();
    } finally {
      unfollow();
    }
  }

  report(group: string, name: string, report: Report): void {
    for (const follower of this.#followers.get(keyOf(group, name)) ?? []) follower(report);
  }
}

/** Unambiguous, because the length of the group is part of it. */
function keyOf(group: string, name: string): string {
  return `${group.length}:${group}${name}`;
}

function addTo<Item>(to: Map<string, Set<Item>>, key: string, item: Item): () => void {
  const items = to.get(key) ?? new Set();
  to.set(key, items.add(item));
  return () => {
    items.delete(item);
    if (items.size === 0 && to.get(key) === items) to.delete(key);
  };
}
