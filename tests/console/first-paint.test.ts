// How long a reviewer waits for an inbox with a thousand questions, and how much is sent to them.

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { builtConsole } from "./built-console.ts";
import { type ConsoleWorld, openConsole, propose } from "./console-world.ts";

const WAITING = 1_000;
let world: ConsoleWorld;

beforeAll(async () => {
  world = await openConsole();
  const sessions = await Promise.all([1, 2, 3, 4].map((n) => world.session(`agent:${n}`)));
  for (let i = 0; i < WAITING; i += 50) {
    await Promise.all(
      Array.from({ length: 50 }, (_, at) =>
        propose(sessions[at % 4]!, "stock.set", { sku: `part-${i + at}`, quantity: i + at }),
      ),
    );
  }
}, 120_000);

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  expect(world.problems).toEqual([]);
});

test("an inbox of 1,000 questions is shown within a second, and complete soon after", async () => {
  const page = await world.signIn();
  const times: number[] = [];
  // Other tests share the processor, so up to ten tries count, and the best one is judged.
  for (let run = 0; run < 10 && (run < 3 || Math.min(...times) > 1_000); run += 1) {
    await page.goto("about:blank");
    await page.goto(`${world.server.url}/inbox`, { waitUntil: "commit" });
    // From the start of the navigation to the first frame with rows in it, by the browser's own clock.
    const ms = await page.evaluate(
      () =>
        new Promise<number>((resolve) => {
          const look = () => {
            if (document.querySelector("li[data-id]") === null) requestAnimationFrame(look);
            else requestAnimationFrame(() => resolve(performance.now()));
          };
          look();
        }),
    );
    times.push(ms);
    await page.getByText("1,000 waiting").waitFor();
  }
  expect(await page.locator("li[data-id]").count()).toBe(WAITING);
  console.log(
    `first paint of the inbox, ${WAITING} waiting: ${times.map(Math.round).join(", ")} ms`,
  );
  expect(Math.min(...times)).toBeLessThanOrEqual(1_000);
});

test("Approve is enabled within 150 ms of opening a question, in the median, with 1,000 waiting", async () => {
  const page = await world.signIn();
  await page.getByText("1,000 waiting").waitFor();
  await page.getByRole("button", { name: "Approve" }).and(page.locator(":enabled")).waitFor();
  const medians: number[] = [];
  // Other tests share the processor, so up to six rounds count, and the best one is judged.
  for (let round = 0; round < 6 && (round < 2 || Math.min(...medians) > 150); round += 1) {
    const times: number[] = [];
    for (let one = 0; one < 11; one += 1) {
      times.push(await page.evaluate(openNext));
    }
    medians.push(times.toSorted((a, b) => a - b)[5] ?? Number.POSITIVE_INFINITY);
  }
  console.log(`opened until Approve is enabled, medians: ${medians.map(Math.round).join(", ")} ms`);
  expect(Math.min(...medians)).toBeLessThanOrEqual(150);
});

/** Runs in the page: from the key that opens the next question to the first frame in which it can be approved. */
function openNext(): Promise<number> {
  const shown = () => document.querySelector("article[data-item]")?.getAttribute("data-item");
  const before = shown();
  const began = performance.now();
  dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
  return new Promise((resolve) => {
    const look = () => {
      const approve = document.querySelector<HTMLButtonElement>("[data-actions] button");
      const isReady = shown() !== before && approve?.disabled === false;
      if (isReady && approve.textContent?.startsWith("Approve")) resolve(performance.now() - began);
      else requestAnimationFrame(look);
    };
    look();
  });
}

test("the whole console is at most 200 kB, compressed", async () => {
  const folder = await builtConsole();
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) =>
    file.isFile(),
  );
  const sizes = files.map(
    (file) => gzipSync(readFileSync(path.join(file.parentPath, file.name))).length,
  );
  const sum = sizes.reduce((all, size) => all + size, 0);
  console.log(`console: ${Math.round(sum / 1_000)} kB compressed in ${files.length} files`);
  expect(sum).toBeLessThanOrEqual(200_000);
});
