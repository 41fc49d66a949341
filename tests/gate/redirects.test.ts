// A redirect is a new question for the gate: real servers, real rules, through a session.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { httpFetch } from "../../src/tools/index.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

async function listen(server: Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => new Promise<void>((done) => server.close(() => done())));
  return (server.address() as AddressInfo).port;
}

test("a host that a rule denies is not reached through a redirect from one that is allowed [B3] [I-23]", async () => {
  let reached = 0;
  const inside = await listen(
    createServer((_, response) => {
      reached += 1;
      response.end("INSIDE B");
    }),
  );
  const location = `http://b.example.org:${inside}/secret`;
  const front = await listen(
    createServer((_, response) => response.writeHead(302, { location }).end()),
  );
  const fetcher = httpFetch({
    resolver: async () => ["127.0.0.1"],
    unsafeAllowAddresses: [`127.0.0.1:${inside}`, `127.0.0.1:${front}`],
  });
  const rule = { tool: "http.fetch", class: "webfetch", reason: "test" } as const;
  const gate = createGate({
    store: memoryStore(),
    tenant: "acme",
    tools: [fetcher],
    validators: { tech: sampleVerdictValidator("t"), business: sampleVerdictValidator("b") },
    guard: allowAlways,
    policy: {
      version: "1",
      rules: [
        { ...rule, id: "a", effect: "allow", host: `a.example.org:${front}` },
        { ...rule, id: "b", effect: "deny", host: `b.example.org:${inside}` },
      ],
    },
  });
  const session = gate.sessions.open({ id: "s", agent: "agent:x" });
  const get = (callId: string, url: string) =>
    session.call({ callId, tool: "http.fetch", input: { url } });
  expect((await get("direct", location)).answer).toBe("denied");
  const redirected = await get("redirected", `http://a.example.org:${front}/`);
  expect(redirected.text).toContain(`call http.fetch with ${location}`);
  expect(reached).toBe(0);
});
