/** Where results go in. Pushing never waits: what nobody has asked for yet is kept. */
export interface Outlet<Item> {
  push(item: Item): void;
  /** No more will come. What is kept can still be read. */
  end(): void;
}

export interface Source<Item> {
  /** Called once, when somebody first asks. */
  begin(outlet: Outlet<Item>): void;
  /** The reader went away before the end; nothing that comes now is kept. */
  abandon(): void;
}

const DONE = { done: true, value: undefined } as const;

/**
 * Results as they come, read once. An async generator would be shorter, but its `return` waits for a pending `next`: a
 * reader that gives up while it waits, as a destroyed stream does, could not stop what it waits for.
 */
export function orchestrateQueue<Item>(source: Source<Item>): AsyncIterableIterator<Item> {
  const kept: Item[] = [];
  const readers: ((result: IteratorResult<Item, undefined>) => void)[] = [];
  let state: "fresh" | "open" | "ended" = "fresh";

  function push(value: Item): void {
    if (state === "ended") return;
    const reader = readers.shift();
    if (reader === undefined) kept.push(value);
    else reader({ done: false, value });
  }

  function end(): void {
    state = "ended";
    for (const reader of readers.splice(0)) reader(DONE);
  }

  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      if (state === "fresh") {
        state = "open";
        source.begin({ push, end });
      }
      if (kept.length > 0) return { done: false, value: kept.shift() as Item };
      if (state === "ended") return DONE;
      return new Promise((resolve) => readers.push(resolve));
    },
    async return() {
      const wasOpen = state === "open";
      kept.length = 0;
      end();
      if (wasOpen) source.abandon();
      return DONE;
    },
  };
}
