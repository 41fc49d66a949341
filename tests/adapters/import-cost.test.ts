// What an adapter adds to importing its framework, measured with the package as users have it.

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { install } from "../../scripts/install.mjs";
import { packedProject } from "../docs/packed.ts";
import { root } from "../docs/pages.ts";
import { SCALE } from "../support/scale.ts";

/** The best of the tries, each a new process that imports the framework first: the one least disturbed by other load. */
const MOST_MS = 20;
const TRIES = 12;

/** Each with its framework and the place from which the tests have it; Claude Code's SDK is only there for the proof. */
const ADAPTERS = [
  ["ai", "ai", "node_modules"],
  ["openai-agents", "@openai/agents", "tools/frameworks/node_modules"],
  ["langchain", "langchain", "tools/frameworks/node_modules"],
  ["mastra", "@mastra/core/agent", "tools/frameworks/node_modules"],
  ["claude-agent", "zod", "node_modules"],
] as const;

const scratch = mkdtempSync(path.join(tmpdir(), "sallyport-adapter-cost-"));
let project = "";
beforeAll(async () => {
  await install(path.join(root, "tools/frameworks"), "agent frameworks", process.env);
  project = await packedProject(scratch);
  for (const [, framework, from] of ADAPTERS) {
    const [name = ""] = framework.split("/");
    const link = path.join(project, "node_modules", name);
    if (!existsSync(link)) symlinkSync(path.join(root, from, name), link);
  }
}, 300_000);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** One by one on a quiet machine, so `npm test` measures only the first; the proof measures all. */
const measured = SCALE === "test" ? ADAPTERS.slice(0, 1) : ADAPTERS;

test.each(measured)(
  `importing sallyport/%s after %s takes at most ${MOST_MS} ms more`,
  (adapter, framework) => {
    const file = path.join(project, `${adapter}.mjs`);
    writeFileSync(
      file,
      `const started = performance.now();
await import("${framework}");
const between = performance.now();
await import("sallyport/${adapter}");
console.log(JSON.stringify([between - started, performance.now() - between]));
process.exit();
`,
    );
    // As users start it: without what a whole run of the tests preloads and caches.
    const { NODE_OPTIONS: _preload, NODE_COMPILE_CACHE: _cache, ...env } = process.env;
    const tries = Array.from({ length: TRIES }, (): readonly [number, number] =>
      JSON.parse(execFileSync(process.execPath, [file], { cwd: project, env, encoding: "utf8" })),
    );
    const least = Math.min(...tries.map(([, ms]) => ms));
    const alone = Math.min(...tries.map(([ms]) => ms));
    console.log(
      `${framework} ${alone.toFixed(0)} ms, sallyport/${adapter} +${least.toFixed(1)} ms`,
    );
    expect(alone, "void: the framework was not loaded").toBeGreaterThan(1);
    expect(least).toBeLessThanOrEqual(MOST_MS);
  },
  120_000,
);
