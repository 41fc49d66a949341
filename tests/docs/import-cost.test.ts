// What `import "sallyport"` costs, measured with the package as users have it.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { packedProject } from "./packed.ts";

const MOST_FILES = 60;
/** Of an idle machine. Under load both figures grow, so it is compared with a bare Node of the same moment. */
const MOST_MS = 120;
const BARE_MS = 40;
const TRIES = 15;

const scratch = mkdtempSync(path.join(tmpdir(), "sallyport-cost-"));
let project = "";
beforeAll(async () => {
  project = await packedProject(scratch);
}, 240_000);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const COUNT = `
import { registerHooks } from "node:module";
const files = [];
registerHooks({
  load(url, context, next) {
    if (url.startsWith("file:")) files.push(url);
    return next(url, context);
  },
});
await import("sallyport");
console.log(JSON.stringify(files));
`;

test(`import "sallyport" loads at most ${MOST_FILES} files, and none of a database, a parser or a schema library`, () => {
  writeFileSync(path.join(project, "count.mjs"), COUNT);
  const out = execFileSync(process.execPath, ["count.mjs"], { cwd: project, encoding: "utf8" });
  const files: string[] = JSON.parse(out);
  expect(files.some((file) => file.endsWith("/sallyport/dist/index.js"))).toBe(true);
  expect(files.length, files.join("\n")).toBeLessThanOrEqual(MOST_FILES);
  expect(files.filter((file) => !file.includes("/sallyport/dist/"))).toEqual([]);
});

test(`import "sallyport" takes at most ${MOST_MS} ms from the start of a process`, () => {
  writeFileSync(path.join(project, "bare.mjs"), "");
  writeFileSync(path.join(project, "cold.mjs"), 'import "sallyport";\n');
  // As users start it: without what a whole run of the tests preloads and caches.
  const { NODE_OPTIONS: _preload, NODE_COMPILE_CACHE: _cache, ...env } = process.env;
  const took = (file: string) => {
    const started = performance.now();
    execFileSync(process.execPath, [file], { cwd: project, env });
    return performance.now() - started;
  };
  // In turns, so that both see the same load; the best of each is the one least disturbed.
  const pairs = Array.from({ length: TRIES }, () => [took("bare.mjs"), took("cold.mjs")] as const);
  const bare = Math.min(...pairs.map(([ms]) => ms));
  const cold = Math.min(...pairs.map(([, ms]) => ms));
  console.log(`cold start: ${bare.toFixed(0)} ms bare, ${cold.toFixed(0)} ms with the package`);
  const load = Math.max(1, bare / BARE_MS);
  expect(cold).toBeLessThanOrEqual(MOST_MS * load);
}, 120_000);
