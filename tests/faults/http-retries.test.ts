// Found by killing servers: a client that repeats a request must neither wait for long nor fail with a broken connection.

import { createServer } from "node:http";
import { setTimeout } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { credentials, openHttp, raw } from "../http/http-world.ts";

const KEY_LEASE_MS = 150;
const SLOW_MS = 700;

const slow = defineTool({
  name: "slow.work",
  description: "Takes longer than the lease of a key.",
  input: { type: "object" },
  safety: { effect: "external" },
  async execute() {
    await setTimeout(SLOW_MS);
    return "worked";
  },
});

test("a slow request keeps its key: a repeat gets still_running, and later the first answer [I29]", async () => {
  const limits = { keyLeaseMs: KEY_LEASE_MS };
  const world = await openHttp({ server: { limits }, port: { tools: [slow] } });
  const session = world.gates.acme.sessions.open({ id: "s", agent: "agent:one" });
  await session.call({ callId: "c", tool: "slow.work", input: {} });
  const [question] = await world.gates.acme.interactions.list();
  const { id, hash } = question!;
  const reviewer = await world.pass("acme", "reviewer");
  const approve = () =>
    raw(`${world.server.url}/v1/interactions/${id}/approve`, {
      method: "POST",
      headers: { ...credentials(reviewer), "idempotency-key": "k" },
      body: JSON.stringify({ hash }),
    });
  const first = approve();
  await setTimeout(3 * KEY_LEASE_MS);
  expect(JSON.parse((await approve()).text)).toMatchObject({ code: "still_running" });
  expect((await first).status).toBe(200);
  expect((await approve()).text).toBe((await first).text);
});

test("a request whose process died can be repeated after the lease of its key [I29]", async () => {
  const world = await openHttp({ server: { limits: { keyLeaseMs: KEY_LEASE_MS } } });
  const { httpKeys } = world.store.tenant("acme");
  const request = { id: "r", route: "x", contentHash: "h", actor: "person:ada" };
  const terms = { leaseMs: KEY_LEASE_MS, keepMs: 60_000 };
  const begun = await httpKeys.begin(request, terms);
  expect(await httpKeys.begin(request, terms)).toEqual({ found: "running" });
  expect(begun).toMatchObject({ found: "nothing", again: false });
  expect(await httpKeys.renew("r", 1, KEY_LEASE_MS, "person:ada")).toBe(true);
  await setTimeout(KEY_LEASE_MS + 20);
  expect(await httpKeys.begin(request, terms)).toMatchObject({ found: "nothing", again: true });
  // The one that was taken for gone learns that it is: neither its lease nor its answer counts any more.
  expect(await httpKeys.renew("r", 1, KEY_LEASE_MS, "person:ada")).toBe(false);
  expect(await httpKeys.answer("r", 1, { status: 200, body: "{}" }, "person:ada")).toBe(false);
});

test("the client repeats a request whose connection breaks in the middle of the answer", async () => {
  let answers = 0;
  const keys = new Set<unknown>();
  const server = createServer((request, response) => {
    answers += 1;
    keys.add(request.headers["idempotency-key"]);
    const body = JSON.stringify({ id: "t", subject: "whole" });
    response.writeHead(201, { "Content-Type": "application/json", "Content-Length": body.length });
    if (answers > 1) response.end(body);
    else response.write(body.slice(0, 5), () => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  const client = createClient({ url: `http://127.0.0.1:${port}`, token: "t" });
  expect(await client.tasks.add({ subject: "whole" })).toMatchObject({ subject: "whole" });
  expect(answers).toBe(2);
  expect(keys.size, "under the same key").toBe(1);
});
