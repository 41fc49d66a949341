import path from "node:path";
import { defaultServerConditions } from "vite";
import { defineConfig } from "vitest/config";
import { plantingPlugin } from "./proof/planted/vite-plugin.ts";

// `import "sallyport"` in a test means src/index.ts, as it does for tsc and Node.
const conditions = ["sallyport-source", ...defaultServerConditions];

/** Set while `npm run proof` looks whether a planted bug is noticed. */
const isPlanted = process.env["PLANTED"] !== undefined;

/** Tests that measure what other tests beside them would change (times, shared commits): they run last, one file at a time. */
const MEASURED = [
  "tests/adapters/import-cost.test.ts",
  "tests/audit/verify-speed.test.ts",
  "tests/console/first-paint.test.ts",
  "tests/docs/import-cost.test.ts",
  "tests/gate/bytes.test.ts",
  "tests/gate/woken.test.ts",
  "tests/http/flood/flood.test.ts",
  "tests/http/limits.test.ts",
];

const UNITS = ["src/**/*.test.ts", "console/**/*.test.ts"];

export default defineConfig({
  plugins: isPlanted ? [plantingPlugin()] : [],
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    // What was loaded with a bug in it must never be met again.
    ...(isPlanted ? { fsModuleCache: false } : {}),
    projects: [
      // Beside the code, without processes or settings of the machine: one worker runs many files.
      { extends: true, test: { name: "units", include: UNITS, isolate: false } },
      // One worker runs many of these too: what a helper sets up, it sets up for a test or a file, not when it is imported.
      {
        extends: true,
        test: { name: "whole", include: ["tests/**/*.test.ts"], exclude: MEASURED, isolate: false },
      },
      {
        extends: true,
        test: { name: "measured", include: MEASURED, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
    globalSetup: [
      "tests/support/postgres-global.ts",
      "tests/support/state-global.ts",
      "tests/support/prepare-global.ts",
    ],
    reporters: ["default", "./scripts/count-reporter.ts"],
    // Processes rather than threads: native addons and crashed children stay apart.
    pool: "forks",
    // Two more than the machine has cores at least: many tests wait for leases and processes most of the time.
    maxWorkers: 4,
    // Hundreds of child processes compile the same files.
    env: { NODE_COMPILE_CACHE: path.resolve("node_modules/.compile-cache") },
    // What never comes is noticed all the same; a second, as it would be, is short on a busy machine.
    expect: { poll: { timeout: 30_000 } },
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
