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
