// The feed over HTTP: every entry once and in order, also when the line breaks; nothing to whom it does not belong.

import { expect, test } from "vitest";
import { createClient, type FeedEvent } from "../../src/client/index.ts";
import { type HttpWorld, openHttp, raw, type Tenant } from "./http-world.ts";

const FULL = process.env["SCALE"] === "full";

async function write(world: HttpWorld, tenant: Tenant, count: number, agent = "agent:one") {
  const session = world.ports[tenant].sessions.open({ id: `s-${agent}`, agent });
  for (let i = 0; i < count; i += 1) {
    await session.call({ callId: `c-${i}`, tool: "world.look", input: { key: `k${i}` } });
  }
}

async function take(events: AsyncGenerator<FeedEvent>, count: number): Promise<FeedEvent[]> {
  const taken: FeedEvent[] = [];
  for await (const event of events) {
    taken.push(event);
    if (taken.length >= count) break;
  }
  return taken;
}

test("tells what was and what comes, in the order of the trail", async () => {
  const world = await openHttp();
  await write(world, "acme", 5);
  const auditor = await world.client("acme", "auditor");
  const stop = new AbortController();
  const listening = take(auditor.events({ after: 0, signal: stop.signal }), 24);
  await write(world, "acme", 7);
  const events = await listening;
  stop.abort();
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  const trail = await world.store.tenant("acme").audit.read({ after: 0, limit: 100 });
  expect(events.map(({ hash }) => hash)).toEqual(trail.slice(0, 24).map(({ hash }) => hash));
});

test("starts with what comes when nobody says where, and names the place at once", async () => {
  const world = await openHttp();
  await write(world, "acme", 3);
  const { seq } = await world.store.tenant("acme").audit.head();
  const auditor = await world.client("acme", "auditor");
  const stop = new AbortController();
  const { promise: isOpen, resolve } = Promise.withResolvers<void>();
  const onLine = (state: string) => state === "open" && resolve();
  const listening = take(auditor.events({ signal: stop.signal, onLine }), 2);
  await isOpen;
  await write(world, "acme", 1);
  const events = await listening;
  stop.abort();
  // Two tokens were made in between: one for the auditor, and one entry is its own.
  expect(events[0]!.seq).toBeGreaterThan(seq);
  expect(events[1]!.seq).toBe(events[0]!.seq + 1);
});

test("T21 no gap and no double across broken lines, while others write", async () => {
  const world = await openHttp();
  const breaks = FULL ? 10_000 : 60;
  const token = await world.token("acme", "auditor");
  let answers = 0;
  // The line breaks after some bytes, wherever that is: in the middle of an event too.
  const breaking: typeof fetch = async (...request) => {
    const response = await fetch(...request);
    answers += 1;
    const after = 1 + ((answers * 7919) % 900);
    let passed = 0;
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        const room = after - passed;
        passed += chunk.length;
        if (chunk.length <= room || answers > breaks) return controller.enqueue(chunk);
        controller.enqueue(chunk.subarray(0, room));
        controller.error(new Error("the line broke"));
      },
    });
    return new Response(response.body?.pipeThrough(cut), response);
  };
  const quick = { sleep: async () => {}, soon: setImmediate, after: () => () => {} };
  const client = createClient({ url: world.server.url, token, fetch: breaking, timers: quick });
  const stop = new AbortController();
  const seen: number[] = [];
  let end = Number.POSITIVE_INFINITY;
  const listening = (async () => {
    for await (const { seq } of client.events({ after: 0, signal: stop.signal })) {
      seen.push(seq);
      if (answers > breaks && seq >= end) break;
    }
  })();
  while (answers <= breaks) {
    // No faster than the listener gets on: otherwise each new line begins with a page that is cut off at once.
    const { seq } = await world.store.tenant("acme").audit.head();
    if (seen.length + 20 >= seq) await write(world, "acme", 2);
    // The store in memory never waits; the lines need a turn of their own to break.
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  end = (await world.store.tenant("acme").audit.head()).seq;
  await write(world, "acme", 1);
  await listening;
  stop.abort();
  expect(answers).toBeGreaterThan(breaks);
  expect(seen).toEqual(seen.map((_, index) => index + 1));
  expect(seen.length).toBeGreaterThanOrEqual(end);
}, 900_000);

test("T21 an agent hears of its own sessions only, and no data", async () => {
  const world = await openHttp();
  const [one, two] = await Promise.all([
    world.client("acme", "agent", "agent:one"),
    world.client("acme", "agent", "agent:two"),
  ]);
  const [a, b] = await Promise.all([one.sessions.open({}), two.sessions.open({})]);
  for (const [client, id] of [
    [one, a.id],
    [two, b.id],
  ] as const) {
    await client.sessions.call({ id, callId: "c", tool: "world.look", input: { key: "k" } });
  }
  const stop = new AbortController();
  const events = await take(two.events({ after: 0, signal: stop.signal }), 3);
  stop.abort();
  expect(new Set(events.map(({ session }) => session))).toEqual(new Set([b.id]));
  expect(events.every(({ data }) => data === null)).toBe(true);
});

test("R29 T21 a valid token of another tenant hears nothing of this one", async () => {
  const world = await openHttp();
  await write(world, "acme", 20, "agent:canary-acme");
  const token = await world.token("bolt", "auditor");
  const foreign = await raw(`${world.server.url}/v1/events?after=15`, {
    headers: { authorization: `Bearer ${token}` },
  });
  // Its own trail is shorter than that number: it is refused, not served from somebody else's.
  expect(foreign.status).toBe(422);
  const stop = new AbortController();
  const heard: FeedEvent[] = [];
  const listening = (async () => {
    const client = createClient({ url: world.server.url, token });
    for await (const event of client.events({ after: 0, signal: stop.signal })) heard.push(event);
  })();
  await write(world, "acme", 20, "agent:canary-acme");
  await write(world, "bolt", 1, "agent:bolt");
  while (heard.length < 3) await new Promise((resolve) => setTimeout(resolve, 10));
  stop.abort();
  await listening;
  expect(JSON.stringify(heard)).not.toContain("canary-acme");
});

test("T21 a revoked token's stream is closed within five seconds", async () => {
  const world = await openHttp();
  const admin = await world.client("acme", "admin");
  const made = await admin.tokens.make({ subject: "person:eve", roles: ["auditor"] });
  const response = await fetch(`${world.server.url}/v1/events`, {
    headers: { authorization: `Bearer ${made.secret}` },
  });
  const reader = response.body!.getReader();
  await reader.read();
  const start = performance.now();
  await admin.tokens.revoke({ id: made.token.id });
  const after: string[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    after.push(new TextDecoder().decode(value));
  }
  expect(performance.now() - start).toBeLessThan(5_000);
  expect(after.join("")).not.toContain("event: entry");
  const again = await raw(`${world.server.url}/v1/events`, {
    headers: { authorization: `Bearer ${made.secret}` },
  });
  expect(again.status).toBe(401);
});

test("a quiet feed is alive: heartbeats come", async () => {
  const world = await openHttp({ server: { limits: { heartbeatMs: 20 } } });
  const token = await world.token("acme", "auditor");
  const response = await fetch(`${world.server.url}/v1/events`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const reader = response.body!.getReader();
  let text = "";
  while (!/(: alive\n\n.*){3}/s.test(text)) {
    const { value } = await reader.read();
    text += new TextDecoder().decode(value);
  }
  await reader.cancel();
});

test("closing the server closes the streams, and a client goes on at the next one", async () => {
  const world = await openHttp();
  const token = await world.token("acme", "auditor");
  const response = await fetch(`${world.server.url}/v1/events`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const reader = response.body!.getReader();
  await reader.read();
  const start = performance.now();
  await world.server.close();
  expect(performance.now() - start).toBeLessThan(2_000);
});
