import { expect, test, vi } from "vitest";
import { type Outlet, orchestrateQueue } from "./orchestrate.ts";

const DONE = { done: true, value: undefined };

function open() {
  const abandon = vi.fn();
  const { promise, resolve } = Promise.withResolvers<Outlet<number>>();
  const queue = orchestrateQueue<number>({ begin: resolve, abandon });
  return { queue, abandon, begun: promise };
}

test("keeps what nobody has asked for, also past the end, in order", async () => {
  const { queue, abandon, begun } = open();
  const first = queue.next();
  const outlet = await begun;
  for (const item of [1, 2, 3]) outlet.push(item);
  outlet.end();
  outlet.push(4);
  expect(await first).toEqual({ done: false, value: 1 });
  const rest: number[] = [];
  for await (const item of queue) rest.push(item);
  expect(rest).toEqual([2, 3]);
  expect(abandon, "read to the end").not.toHaveBeenCalled();
});

test("readers that wait are served in order and let go at the end", async () => {
  const { queue, begun } = open();
  const reading = [queue.next(), queue.next(), queue.next()];
  const outlet = await begun;
  outlet.push(1);
  outlet.push(2);
  outlet.end();
  expect(await Promise.all(reading)).toEqual([
    { done: false, value: 1 },
    { done: false, value: 2 },
    DONE,
  ]);
});

test("after the reader has left, nothing is kept and the source is told once", async () => {
  const { queue, abandon, begun } = open();
  const first = queue.next();
  const outlet = await begun;
  for (const item of [1, 2]) outlet.push(item);
  await first;
  expect(await queue.return?.()).toEqual(DONE);
  outlet.push(3);
  expect(await queue.next()).toEqual(DONE);
  await queue.return?.();
  expect(abandon).toHaveBeenCalledTimes(1);
});
