// What one sender can take from the others: connections, event streams, look-ups of tokens.

import { type ClientRequest, request } from "node:http";
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createClient, signIn } from "../../src/client/index.ts";
import { memoryEngine } from "../../src/store/memory/index.ts";
import { systemClock } from "../../src/util/clock.ts";
import { systemRandom } from "../../src/util/random.ts";
import { scaled } from "../support/scale.ts";
import { bearer, openHttp, raw } from "./http-world.ts";

const STREAMS = scaled({ test: 600, proof: 4_200, full: 5_000 });

/** Opens one event stream on a connection of its own and returns the status; 0 when the connection broke. */
function stream(url: string, token: string, open: Set<ClientRequest>): Promise<number> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${token}` };
    const sent = request(`${url}/v1/events`, { agent: false, headers }, (answer) => {
      answer.on("error", () => {});
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    open.add(sent);
    sent.on("error", () => resolve(0));
    sent.end();
  });
}

function holding(): Set<ClientRequest> {
  const open = new Set<ClientRequest>();
  onTestFinished(() => {
    for (const one of open) one.destroy();
  });
  return open;
}

const NEVER_STOPPED = { stopped: false, by: "", reason: "", at: "" };

test(`event streams: ${STREAMS} streams of one agent leave the kill switch, approvals and health answering [H5]`, {
  timeout: 120_000,
}, async () => {
  const world = await openHttp();
  const { url } = world.server;
  const token = await world.token("acme", "agent");
  const agent = await world.client("acme", "agent");
  const reviewer = await world.client("acme", "reviewer");
  const operator = await world.client("acme", "operator");
  const { id } = await agent.sessions.open({});
  const asked = await agent.sessions.ask({ id, callId: "q", text: "Which shelf?" });
  if (asked.answer !== "pending") throw new Error("not asked");
  const open = holding();
  const counts: Record<string, number> = {};
  for (let n = 0; n < STREAMS; n += 100) {
    const statuses = await Promise.all(Array.from({ length: 100 }, () => stream(url, token, open)));
    for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
  }
  expect(counts).toEqual({ 200: 8, 429: STREAMS - 8 });
  const answersInTime = async (name: string, work: () => Promise<unknown>) => {
    const start = performance.now();
    await work();
    // One that waits for a stream to end waits for ever.
    expect(performance.now() - start, name).toBeLessThan(10_000);
  };
  await answersInTime("health", async () => expect((await raw(`${url}/healthz`)).status).toBe(200));
  await answersInTime("ready", async () => expect((await raw(`${url}/readyz`)).status).toBe(200));
  await answersInTime("answer", async () => {
    const { hash } = await reviewer.interactions.get({ id: asked.interactionId });
    await reviewer.interactions.answer({ id: asked.interactionId, hash, answer: "the upper one" });
  });
  await answersInTime("stop", () => operator.switch.stop({ reason: "flooded" }));
});

test("event streams: a stream that ends frees its place, and one agent cannot use up another's [H5]", async () => {
  const limits = { streams: { perAgent: 2, agentsPerTenant: 3, perPerson: 1 } };
  const world = await openHttp({ server: { limits } });
  const { url } = world.server;
  const [one, two, other, person] = await Promise.all([
    world.token("acme", "agent", "agent:one"),
    world.token("acme", "agent", "agent:two"),
    world.token("bolt", "agent", "agent:one"),
    world.token("acme", "auditor"),
  ]);
  const ones = holding();
  const twos = holding();
  expect([await stream(url, one, ones), await stream(url, one, ones)]).toEqual([200, 200]);
  expect(await stream(url, one, ones)).toBe(429);
  expect(await stream(url, two, twos)).toBe(200);
  expect(await stream(url, two, twos)).toBe(429);
  // Neither another tenant nor a person pays for it.
  expect(await stream(url, other, holding())).toBe(200);
  expect(await stream(url, person, holding())).toBe(200);
  for (const sent of ones) sent.destroy();
  await expect.poll(() => stream(url, two, twos), { timeout: 60_000 }).toBe(200);
});

const FEW = { total: 40, strangers: 10, perSender: 8, agents: 20 };

test("connections: agents and strangers cannot use those reserved for people [H5]", async () => {
  const world = await openHttp({ server: { limits: { connections: FEW } } });
  const { url } = world.server;
  const sockets: Socket[] = [];
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  const { port, host } = new URL(url);
  const knock = async (head: string) => {
    const socket = connect(Number(port), "127.0.0.1");
    sockets.push(socket);
    socket.on("error", () => {});
    const answer = new Promise<string>((resolve) => {
      socket.once("data", (text) => resolve(String(text).slice(9, 12)));
      socket.once("close", () => resolve("closed"));
    });
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.write(head);
    return answer;
  };
  const get = (token: string) =>
    `GET /v1/me HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  const counts: Record<string, number> = {};
  for (let agent = 0; agent < 6; agent += 1) {
    const token = await world.token("acme", "agent", `agent:${agent}`);
    for (let n = 0; n < 12; n += 1) {
      const status = await knock(get(token));
      counts[status] = (counts[status] ?? 0) + 1;
    }
  }
  // Eight for each of the first two, four for the third; then agents have all that they may.
  expect(counts).toEqual({ 200: 20, 503: 52 });
  // Strangers who say nothing: the oldest are closed for the newest.
  const silent = Array.from({ length: 50 }, () => knock("GET /v1/me HTTP/1.1\r\n"));
  // Sooner than the server ends requests that never come (10 s): that would be another reason to close them.
  await expect
    .poll(() => sockets.filter(({ destroyed }) => !destroyed).length, { timeout: 6_000 })
    .toBeLessThanOrEqual(FEW.agents + FEW.strangers);
  const operator = await world.client("acme", "operator");
  expect(await operator.switch.stop({ reason: "flooded" })).toEqual({ stopped: true });
  expect((await raw(`${url}/healthz`)).status).toBe(200);
  const reviewer = await world.client("acme", "reviewer");
  expect((await reviewer.interactions.list({})).items).toEqual([]);
  for (const socket of sockets) socket.destroy();
  await Promise.all(silent);
});

/** A memory store that counts how often a token is looked up. */
function counting() {
  const engine = memoryEngine({ clock: systemClock, random: systemRandom });
  const looked = { count: 0 };
  const counted: typeof engine = Object.create(engine, {
    find: {
      value: (...asked: Parameters<typeof engine.find>) => {
        if (asked[1].name === "tokens") looked.count += 1;
        return engine.find(...asked);
      },
    },
  });
  return { engine: counted, looked };
}

test("invalid tokens: a flood costs few lookups, and valid tokens pass meanwhile [L11]", {
  timeout: 120_000,
}, async () => {
  const { engine, looked } = counting();
  const world = await openHttp({ engine });
  const { url } = world.server;
  const operator = await world.client("acme", "operator");
  await operator.switch.get();
  const before = looked.count;
  const started = performance.now();
  const statuses = new Set<number>();
  const genuine = await world.token("acme", "operator");
  const madeUp = (n: number) => `${genuine.slice(0, -8)}${String(n).padStart(8, "0")}`;
  let nth = 0;
  const flood = Array.from({ length: 16 }, async () => {
    for (let n = 0; n < 200; n += 1) {
      nth += 1;
      statuses.add((await raw(`${url}/v1/switch`, { headers: bearer(madeUp(nth)) })).status);
    }
  });
  for (let n = 0; n < 50; n += 1) expect(await operator.switch.get()).toEqual(NEVER_STOPPED);
  await Promise.all(flood);
  const seconds = (performance.now() - started) / 1_000;
  expect([...statuses].toSorted()).toEqual([401, 429]);
  // The burst, the rate, and the operator's own token once a second.
  expect(looked.count - before).toBeGreaterThan(0);
  expect(looked.count - before).toBeLessThan(200 + 52 * (seconds + 1));
});

test("invalid tokens: the same one is not looked up twice in a row [L11]", async () => {
  const { engine, looked } = counting();
  const world = await openHttp({ engine });
  const genuine = await world.token("acme", "operator");
  const headers = bearer(`${genuine.slice(0, -4)}0000`);
  const before = looked.count;
  for (let n = 0; n < 20; n += 1) {
    expect((await raw(`${world.server.url}/v1/switch`, { headers })).status).toBe(401);
  }
  expect(looked.count - before).toBe(1);
});

test("invalid sign-in links: a flood costs few lookups, and people can sign in and work meanwhile [L11 H5]", {
  timeout: 30_000,
}, async () => {
  const { engine, looked } = counting();
  const limits = { strangerRate: { perSecond: 1, burst: 20 } };
  const world = await openHttp({ engine, server: { limits } });
  const { url } = world.server;
  const link = new URL(await world.server.signInLink({ subject: "person:late" }));
  const genuine = link.searchParams.get("link") ?? "";
  const madeUp = (n: number) => `${genuine.slice(0, -8)}${String(n).padStart(8, "0")}`;
  const token = await world.token("acme", "operator");
  const before = looked.count;
  const started = performance.now();
  const statuses = new Set<number>();
  let nth = 0;
  const flood = Array.from({ length: 16 }, async (_, number) => {
    for (let n = 0; n < 30; n += 1) {
      nth += 1;
      // Half invalid links, half invalid tokens: neither may use up the capacity for people.
      const { status } =
        number % 2 === 0
          ? await raw(`${url}/signin`, {
              method: "POST",
              headers: { "content-type": "application/x-www-form-urlencoded", origin: url },
              body: `link=${madeUp(nth)}`,
            })
          : await raw(`${url}/v1/switch`, {
              headers: bearer(`${token.slice(0, -8)}${String(nth).padStart(8, "0")}`),
            });
      statuses.add(status);
    }
  });
  // While it lasts: a link that was just made, the session it gives, a link of that person's own, and a token just made.
  await expect.poll(() => statuses.has(429), { timeout: 20_000 }).toBe(true);
  for (let n = 0; n < 5; n += 1) {
    const made = await world.server.signInLink({ subject: `person:late-${n}` });
    const { session } = await signIn({ link: made });
    const person = createClient({ url, session });
    expect(await person.switch.get()).toEqual(NEVER_STOPPED);
    const again = await signIn({ link: (await person.me.link()).link });
    expect((await createClient({ url, session: again.session }).me.get()).kind).toBe("session");
    const fresh = await world.server.makeToken({ subject: `agent:${n}`, roles: ["agent"] });
    expect((await createClient({ url, token: fresh }).me.get()).kind).toBe("token");
  }
  await Promise.all(flood);
  const seconds = (performance.now() - started) / 1_000;
  expect([...statuses].toSorted()).toEqual([401, 429]);
  expect(looked.count - before).toBeLessThan(20 + 2 * (seconds + 1) + 100);
});

test("invalid sign-in links: a used link is reported each time, as a page and to programs [L11]", async () => {
  const world = await openHttp();
  const link = await world.server.signInLink({ subject: "person:once" });
  await signIn({ link });
  const secret = new URL(link).searchParams.get("link") ?? "";
  for (let n = 0; n < 3; n += 1) {
    const headers = {
      "content-type": "application/x-www-form-urlencoded",
      origin: world.server.url,
    };
    const again = { method: "POST", headers, body: `link=${secret}` };
    const { status, text } = await raw(`${world.server.url}/signin`, again);
    expect([status, text.includes("The link was already used")]).toEqual([401, true]);
    await expect(signIn({ link })).rejects.toMatchObject({ code: "unauthenticated" });
  }
});

test("responses: one that does not match its schema is reported and not sent [L12]", async () => {
  const world = await openHttp();
  const agent = await world.client("acme", "agent");
  const { id } = await agent.sessions.open({});
  const asked = await agent.sessions.ask({ id, callId: "q", text: "Which shelf?" });
  if (asked.answer !== "pending") throw new Error("not asked");
  const { acme } = world.gates;
  const whole = await acme.interactions.get(asked.interactionId);
  const get = async () => ({ ...whole, version: "1", note: "s3cret" });
  Object.assign(acme, { interactions: { get } });
  const headers = bearer(await world.token("acme", "reviewer"));
  const read = await raw(`${world.server.url}/v1/interactions/${asked.interactionId}`, { headers });
  expect(read.status).toBe(500);
  expect(JSON.parse(read.text)).toMatchObject({ code: "internal_error" });
  const { tasks } = world;
  const add = async (draft: never) => {
    return { ...(await tasks.acme.add(draft)), version: "1", note: "s3cret" };
  };
  Object.assign(acme, { tasks: { add } });
  const working = { ...bearer(await world.token("acme", "agent")), "idempotency-key": "k" };
  const post = () =>
    raw(`${world.server.url}/v1/tasks`, {
      method: "POST",
      headers: working,
      body: '{"subject":"x"}',
    });
  const [added, again] = [await post(), await post()];
  for (const sent of [added, again]) {
    expect(sent.status).toBe(500);
    expect(JSON.parse(sent.text)).toMatchObject({
      code: "internal_error",
      detail: expect.stringContaining("It was executed"),
    });
  }
  expect([read, added, again].map(({ text }) => text).join()).not.toContain("s3cret");
  expect(await world.tasks.acme.list()).toHaveLength(1);
  expect(world.problems).toHaveLength(2);
});
