import { expect, test } from "vitest";
import { untilAborted } from "../review.ts";

test("work that answers in time is handed on, and nothing stays attached to the signal [I-01]", async () => {
  const { signal } = new AbortController();
  expect(await untilAborted(signal, () => 1)).toBe(1);
  expect(await untilAborted(signal, async () => 2)).toBe(2);
  await expect(untilAborted(signal, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  const broken = () => {
    throw new Error("at once");
  };
  await expect(untilAborted(signal, broken)).rejects.toThrow("at once");
});

test("work that hangs is left behind, work that was not begun is not begun [I-01]", async () => {
  const stop = new AbortController();
  const hanging = untilAborted(stop.signal, () => new Promise(() => {}));
  stop.abort(new Error("enough"));
  await expect(hanging).rejects.toThrow("enough");
  let begun = false;
  const late = untilAborted(stop.signal, () => {
    begun = true;
  });
  await expect(late).rejects.toThrow("enough");
  expect(begun).toBe(false);
});

test("an answer that arrives in the turn of the abort is too late, and a late error bothers nobody [I-01]", async () => {
  const stop = new AbortController();
  const work = () => {
    stop.abort(new Error("enough"));
    return "yes";
  };
  await expect(untilAborted(stop.signal, work)).rejects.toThrow("enough");
  const second = new AbortController();
  const { promise, reject } = Promise.withResolvers<string>();
  const waiting = untilAborted(second.signal, () => promise);
  second.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  reject(new Error("nobody listens any more"));
  await new Promise((resolve) => setImmediate(resolve));
});
