// The way to the MCP gateway: who may take it is decided before anything of the gateway is asked.

import { expect, test } from "vitest";
import { credentials, openHttp, raw } from "./http-world.ts";

async function openMcp() {
  const agents: string[] = [];
  const world = await openHttp({
    server: {
      mcp: {
        acme: {
          async handle(_, response, { agent }) {
            agents.push(agent);
            response.end("{}");
          },
        },
      },
    },
  });
  const post = (headers: Readonly<Record<string, string>>) =>
    raw(`${world.server.url}/mcp`, { method: "POST", headers, body: "{}" });
  return { ...world, post, agents };
}

test("mcp over HTTP: a person's sign-in and tokens of people's work reach no upstream, and another tenant has no gateway [H3]", async () => {
  const { post, agents, pass, token, server } = await openMcp();
  const origin = new URL(server.url).origin;
  for (const role of ["operator", "reviewer", "admin"] as const) {
    const signedIn = credentials(await pass("acme", role));
    expect((await post({ ...signedIn, origin })).status, role).toBe(403);
  }
  for (const role of ["auditor", "executor", "local"] as const) {
    const sent = credentials(await token("acme", role, `bot:${role}`));
    expect((await post(sent)).status, role).toBe(403);
  }
  expect((await post(credentials(await token("bolt", "agent")))).status).toBe(404);
  expect(agents).toEqual([]);
  expect((await post(credentials(await token("acme", "agent")))).status).toBe(200);
  expect(agents).toEqual(["agent:one"]);
});

test("mcp over HTTP: made-up tokens are limited before they are looked up, and known ones still pass [L11]", async () => {
  const { post, agents, token, store } = await openMcp();
  const known = credentials(await token("acme", "agent"));
  const counts: Record<number, number> = {};
  for (let n = 0; n < 600; n += 1) {
    const half = Buffer.from(String(n).padStart(32, "k")).toString("base64url").slice(0, 43);
    const { status } = await post({ authorization: `Bearer sallyport_YWNtZQ.${half}` });
    counts[status] = (counts[status] ?? 0) + 1;
  }
  expect(Object.keys(counts)).toEqual(["401", "429"]);
  expect((await post(known)).status).toBe(200);
  expect(agents).toEqual(["agent:one"]);
  expect(await store.tenant("acme").sessions.list({ limit: 10 })).toEqual([]);
});
