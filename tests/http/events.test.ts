// The feed over HTTP: every entry once and in order, also when the line breaks; nothing to whom it does not belong.

import { expect, test } from "vitest";
import { createClient, type FeedEvent } from "../../src/client/index.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { type HttpWorld, openHttp, raw, type Tenant } from "./http-world.ts";

const LISTENERS = scaled({ test: 2, proof: 20, full: 100 });
const BREAKS = scaled({ test: 60, proof: 200, full: 10_000 });

async function write(world: HttpWorld, tenant: Tenant, count: number, agent = "agent:one") {
  const session = world.gates[tenant].sessions.open({ id: `s-${agent}`, agent });
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

test("feed: past and new entries arrive in the order of the trail", async () => {
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

test("feed: without a position it starts with new entries and sends its position immediately", async () => {
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

test(`${LISTENERS} listeners, ${BREAKS} broken connections, concurrent writes: no gap, no duplicate, no foreign entry [G18 T21]`, async () => {
  const world = await openHttp();
  const token = await world.token("acme", "auditor");
  const stop = new AbortController();
  const listeners = Array.from({ length: LISTENERS }, () =>
    breakingListener(world.server.url, token, Math.ceil(BREAKS / LISTENERS), stop.signal),
  );
  const { audit } = world.store.tenant("acme");
  for (;;) {
    const behind = listeners.filter(({ isBroken }) => !isBroken());
    if (behind.length === 0) break;
    // No faster than the listeners get on: otherwise each new line begins with a page that is cut off immediately.
    const { seq } = await audit.head();
    if (Math.min(...behind.map(({ seen }) => seen.length)) + 20 >= seq) {
      await write(world, "acme", 2);
      await write(world, "bolt", 1, "agent:bolt");
    }
    // The store in memory never waits; the lines need a turn of their own to break.
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const end = (await audit.head()).seq;
  for (const listener of listeners) listener.endAt(end);
  await write(world, "acme", 1);
  await Promise.all(listeners.map(({ listening }) => listening));
  stop.abort();
  const all = listeners.flatMap(({ seen }) => seen.map((event, index) => ({ ...event, index })));
  const figures = {
    listeners: LISTENERS,
    reconnects: listeners.reduce((sum, { breaks }) => sum + breaks(), 0),
    events: all.length,
    "out of order, missing or double": all.filter(({ seq, index }) => seq !== index + 1).length,
    foreign: all.filter(({ session }) => session.includes("bolt")).length,
    "cut short": listeners.filter(({ seen }) => seen.length < end).length,
  };
  record({ goal: "G18", what: "listeners whose lines break", figures });
  expect(figures.reconnects, "void: too few breaks").toBeGreaterThanOrEqual(BREAKS);
  for (const { seen } of listeners) {
    expect(seen.map(({ seq }) => seq)).toEqual(seen.map((_, index) => index + 1));
    expect(seen.length).toBeGreaterThanOrEqual(end);
  }
  expect(figures.foreign).toBe(0);
}, 900_000);

/** Hears the feed over lines that break after some bytes, wherever that is: in the middle of an event too. */
function breakingListener(url: string, token: string, breaks: number, signal: AbortSignal) {
  let answers = 0;
  let end = Number.POSITIVE_INFINITY;
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
  const quick = {
    sleep: async () => {},
    soon: setImmediate,
    after: () => () => {},
    elapsedMs: () => 0,
  };
  const client = createClient({ url, token, fetch: breaking, timers: quick });
  const seen: { readonly seq: number; readonly session: string }[] = [];
  const listening = (async () => {
    for await (const { seq, session } of client.events({ after: 0, signal })) {
      seen.push({ seq, session });
      if (answers > breaks && seq >= end) break;
    }
  })();
  const endAt = (seq: number) => {
    end = seq;
  };
  return { seen, listening, endAt, breaks: () => answers - 1, isBroken: () => answers > breaks };
}

test("feed: an agent receives entries of its own sessions only, without data [T21]", async () => {
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

test("feed: a valid token of another tenant receives nothing of this one [R29 T21]", async () => {
  const world = await openHttp();
  await write(world, "acme", 20, "agent:canary-acme");
  const token = await world.token("bolt", "auditor");
  const foreign = await raw(`${world.server.url}/v1/events?after=15`, {
    headers: { authorization: `Bearer ${token}` },
  });
  // Its own trail is shorter than that number: it is refused, not served from another tenant's trail.
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

test("a revoked token's stream is closed within five seconds [T21]", async () => {
  const world = await openHttp();
  const admin = await world.client("acme", "admin");
  const made = await admin.tokens.make({ subject: "audit:eve", roles: ["auditor"] });
  const response = await fetch(`${world.server.url}/v1/events`, {
    headers: { authorization: `Bearer ${made.secret}` },
  });
  const reader = response.body!.getReader();
  await reader.read();
  const start = performance.now();
  await admin.tokens.revoke({ id: made.token.id });
  const giveUp = setTimeout(() => void reader.cancel(), 6_000);
  const after: string[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    after.push(new TextDecoder().decode(value));
  }
  clearTimeout(giveUp);
  expect(performance.now() - start).toBeLessThan(5_000);
  expect(after.join("")).not.toContain("event: entry");
  const again = await raw(`${world.server.url}/v1/events`, {
    headers: { authorization: `Bearer ${made.secret}` },
  });
  expect(again.status).toBe(401);
});

test("feed: a HEAD request gets the headers and ends", async () => {
  const world = await openHttp();
  const response = await fetch(`${world.server.url}/v1/events`, {
    method: "HEAD",
    headers: { authorization: `Bearer ${await world.token("acme", "auditor")}` },
    signal: AbortSignal.timeout(5_000),
  });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  expect(await response.text()).toBe("");
});

test("feed: an idle stream sends heartbeats", async () => {
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

test("feed: closing the server closes the streams, and a client resumes at the next server", async () => {
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
