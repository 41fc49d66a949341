// T38 over HTTP: the switch answers while agents flood the server, and after its answer nothing starts.

import { expect, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { credentials, openHttp, raw } from "./http-world.ts";

const FULL = process.env["SCALE"] === "full";

test("kill switch under full load: no effect starts after the answer, and the answer is immediate [T38]", async () => {
  const flips = FULL ? 100 : 8;
  const started: number[] = [];
  const tool = defineTool({
    name: "load.look",
    description: "Counts when it starts.",
    input: { type: "object", additionalProperties: false },
    safety: { effect: "read", concurrencySafe: true },
    permissionClass: "readonly",
    async execute() {
      started.push(performance.now());
      await new Promise((resolve) => setTimeout(resolve, 3));
      return "looked";
    },
  });
  const world = await openHttp({ port: { tools: [tool] }, server: { limits: { inFlight: 4 } } });
  const token = await world.pass("acme", "agent");
  const agent = createClient({ url: world.server.url, token });
  const { id } = await agent.sessions.open({});
  const operator = await world.client("acme", "operator");
  let over = false;
  let refused = 0;
  let calls = 0;
  // More agents than the server serves concurrently: without a lane of its own the switch would wait behind them.
  const flood = Array.from({ length: 24 }, async (_, n) => {
    while (!over) {
      const body = JSON.stringify({ callId: `c-${n}-${calls}`, tool: "load.look", input: {} });
      const { status } = await raw(`${world.server.url}/v1/sessions/${id}/calls`, {
        method: "POST",
        headers: credentials(token),
        body,
      });
      calls += 1;
      if (status === 503) refused += 1;
    }
  });
  const times: number[] = [];
  const late: number[] = [];
  for (let flip = 0; flip < flips; flip += 1) {
    while (started.length < (flip + 1) * 20) await new Promise((resolve) => setTimeout(resolve, 1));
    const asked = performance.now();
    await operator.switch.stop({ reason: `drill ${flip}` });
    const stopped = performance.now();
    times.push(stopped - asked);
    await new Promise((resolve) => setTimeout(resolve, 20));
    late.push(...started.filter((at) => at > stopped));
    expect(await operator.switch.get()).toMatchObject({ stopped: true, reason: `drill ${flip}` });
    await operator.switch.resume({ reason: "over" });
  }
  over = true;
  await Promise.all(flood);
  const slowest = Math.max(...times);
  console.info(
    `kill switch: ${flips} flips among ${calls} calls (${refused} refused for load), slowest answer ${slowest.toFixed(0)} ms`,
  );
  expect(late).toEqual([]);
  expect(slowest).toBeLessThan(1_000);
  expect(refused, "the server was not overloaded").toBeGreaterThan(0);
  const entries = await world.store.tenant("acme").audit.read({ after: 0, limit: 100_000 });
  expect(entries.filter(({ type }) => type === "switch.stopped").map(({ actor }) => actor)).toEqual(
    Array(flips).fill("person:operator"),
  );
}, 120_000);
