import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Rarely } from "./task-claims.ts";

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

test("what is slow for good is not looked at again at once, unless somebody wants to be sure", async () => {
  let looks = 0;
  const rarely = new Rarely(async () => {
    looks += 1;
    await sleep(10);
    return [looks];
  });
  for (let n = 1; n <= 16; n += 1) expect(await rarely.do(1, false)).toEqual([n]);
  expect(await rarely.do(1, false)).toEqual([]);
  expect(await rarely.do(1, true)).toEqual([17]);
  expect(looks).toBe(17);
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
