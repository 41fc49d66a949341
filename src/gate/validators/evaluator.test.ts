import { expect, test, vi } from "vitest";
import { type ReplayEvent, type ReplayListener, replay } from "./adapters.ts";

const events: readonly ReplayEvent[] = [{ type: "a" }, { type: "b" }, { type: "c" }];

function recorder(name: string, failOn?: string): ReplayListener & { readonly seen: string[] } {
  const seen: string[] = [];
  return {
    name,
    seen,
    onEvent({ type }) {
      seen.push(type);
      if (type === failOn) throw new Error(`${name} fails on ${type}`);
    },
  };
}

test("every listener sees every event in order, from lists and from streams [I-12]", async () => {
  async function* stream() {
    yield* events;
  }
  for (const source of [events, stream()]) {
    const [one, two] = [recorder("one"), recorder("two")];
    expect(await replay(source, [one, two], { log: () => {} })).toEqual({ events: 3 });
    expect([one.seen, two.seen]).toEqual([
      ["a", "b", "c"],
      ["a", "b", "c"],
    ]);
  }
});

test("a listener that fails is logged and stops neither the replay nor the other listeners [I-12]", async () => {
  const log = vi.fn();
  const [broken, fine] = [recorder("broken", "b"), recorder("fine")];
  const rejecting: ReplayListener = {
    name: "async",
    onEvent: () => Promise.reject(new Error("no")),
  };
  await replay(events, [broken, rejecting, fine], { log });
  expect(broken.seen).toEqual(["a", "b", "c"]);
  expect(fine.seen).toEqual(["a", "b", "c"]);
  expect(log).toHaveBeenCalledTimes(4);
  expect(log).toHaveBeenCalledWith(new Error("broken fails on b"), {
    listener: "broken",
    event: events[1],
  });
});

test("a log that fails does not stop the replay either [I-12]", async () => {
  const logs = [
    () => {
      throw new Error("disk full");
    },
    () => Promise.reject(new Error("disk full")),
  ];
  for (const log of logs) {
    const fine = recorder("fine");
    await replay(events, [recorder("broken", "a"), fine], { log });
    expect(fine.seen).toEqual(["a", "b", "c"]);
  }
});

test("the caller can end a replay whose listener hangs; events that cannot be read end it too [I-12]", async () => {
  const stop = new AbortController();
  const log = vi.fn();
  const begun = Promise.withResolvers<void>();
  const hanging: ReplayListener = {
    name: "slow",
    onEvent() {
      begun.resolve();
      return new Promise(() => {});
    },
  };
  const running = replay(events, [hanging], { log, signal: stop.signal });
  await begun.promise;
  stop.abort(new Error("enough"));
  await expect(running).rejects.toThrow("enough");
  expect(log).not.toHaveBeenCalled();
  function* torn(): Generator<ReplayEvent> {
    yield { type: "a" };
    throw new Error("damaged trail");
  }
  await expect(replay(torn(), [], { log })).rejects.toThrow("damaged trail");
});

test("a replay without a log or with half a listener does not start [I-08]", async () => {
  const log = () => {};
  await expect(replay(events, [], {} as never)).rejects.toThrow(TypeError);
  await expect(replay(events, [{ name: "x" } as never], { log })).rejects.toThrow(TypeError);
});
