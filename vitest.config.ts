import { defaultServerConditions } from "vite";
import { defineConfig } from "vitest/config";

// `import "sallyport"` in a test means src/index.ts, as it does for tsc and Node.
const conditions = ["sallyport-source", ...defaultServerConditions];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["src/**/*.test.ts", "console/**/*.test.ts", "tests/**/*.test.ts"],
    globalSetup: ["tests/support/postgres-global.ts"],
    reporters: ["default", "./scripts/count-reporter.ts"],
    // Processes rather than threads: native addons and crashed children stay apart.
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
