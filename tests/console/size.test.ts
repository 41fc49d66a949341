// What a browser has to fetch before the first question can be decided, and in all.

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { builtConsole } from "./built-console.ts";

const MOST_BYTES = 220_000;

test("the JavaScript of the console is at most 220 kB compressed, all pages together [W13]", async () => {
  const folder = await builtConsole();
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".js"),
  );
  expect(files.length, "void: no scripts").toBeGreaterThan(3);
  const bytes = files.map((file) => gzipSync(readFileSync(path.join(folder, file))).length);
  const total = bytes.reduce((sum, size) => sum + size, 0);
  console.info(`console: ${files.length} scripts, ${total} bytes compressed`);
  expect(total).toBeLessThanOrEqual(MOST_BYTES);
});
