import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Rarely } from "./rarely.ts";

test("who asks while a look is under way shares the next one, which begins after they asked", async () => {
  let begun = 0;
  const gates: (() => void)[] = [];
  const rarely = new Rarely(async () => {
    begun += 1;
    const mine = begun;
    await new Promise<void>((resolve) => gates.push(resolve));
    return [mine];
  });
  const first = rarely.do(1, false);
  const others = [rarely.do(1, false), rarely.do(1, true), rarely.do(1, false)];
  expect(begun).toBe(1);
  gates[0]?.();
  expect(await first).toEqual([1]);
  await sleep(0);
  gates[1]?.();
  expect(await Promise.all(others)).toEqual([[2], [2], [2]]);
  expect(begun).toBe(2);
});

test("a slow look is not repeated at once, unless somebody wants to be sure", async () => {
  let looks = 0;
  const rarely = new Rarely(async () => {
    looks += 1;
    await sleep(30);
    return [looks];
  });
  expect(await rarely.do(1, false)).toEqual([1]);
  expect(await rarely.do(1, false)).toEqual([]);
  expect(await rarely.do(1, true)).toEqual([2]);
});

test("a look that failed fails those who shared it, and not the next", async () => {
  let broken = true;
  const oops = new Error("oops");
  const rarely = new Rarely(async () => {
    if (broken) throw oops;
    return [1];
  });
  const first = rarely.do(1, false);
  const second = rarely.do(1, false).then(
    (found) => found,
    (error) => error,
  );
  await expect(first).rejects.toBe(oops);
  expect(await second).toBe(oops);
  broken = false;
  expect(await rarely.do(1, false)).toEqual([1]);
});
