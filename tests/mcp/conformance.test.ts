// The same server directly and through the gateway: the suite must not see a difference. `npm run conformance` makes the table
// of docs/reference/mcp-conformance.md from the same runs.

import { expect, test } from "vitest";
import { install } from "../../scripts/install.mjs";
import { record } from "../support/record.ts";
import { SCALE } from "../support/scale.ts";
import {
  CHAINS,
  type Chain,
  ERAS,
  fixtureServer,
  gatewayServer,
  MCP_TOOLS,
  ONLY_HTTP,
  runSuite,
  total,
} from "./conformance-run.ts";

if (SCALE !== "test") await install(MCP_TOOLS, "MCP servers (once, ~60 s)", process.env);
// skip: eight runs of the suite take a minute; the proof and `npm run conformance` make them
const atScale = test.skipIf(SCALE === "test");

atScale(
  "mcp conformance: through the gateway a server passes every check that it passes directly, over HTTP and stdio, in both eras",
  async () => {
    const fixture = await fixtureServer();
    const worse: string[] = [];
    let checks = 0;
    try {
      const direct = new Map<string, Awaited<ReturnType<typeof runSuite>>>();
      for (const era of ERAS) direct.set(era, await runSuite(fixture.url, era));
      expect(total(direct.get("2025-11-25") ?? new Map())).toEqual([84, 0]);
      expect(total(direct.get("2026-07-28") ?? new Map())[0]).toBe(164);
      for (const chain of Object.keys(CHAINS) as Chain[]) {
        const target = await gatewayServer(chain, fixture.url);
        try {
          for (const era of ERAS) {
            const scores = await runSuite(target.url, era);
            for (const [scenario, [passed, failed]] of direct.get(era) ?? []) {
              const [p = -1, f = -1] = scores.get(scenario) ?? [];
              checks += passed;
              const isComparable = !(chain.includes("stdio") && ONLY_HTTP.includes(scenario));
              if (isComparable && (p < passed || f > failed)) worse.push(`${chain}: ${scenario}`);
            }
          }
        } finally {
          await target.close();
        }
      }
    } finally {
      await fixture.close();
    }
    const figures = { checks, differences: worse.length };
    record({ goal: "MCP-conformance", what: "the way through the gateway", figures });
    expect(worse).toEqual([]);
  },
  600_000,
);
