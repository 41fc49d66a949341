// The typed client: what it repeats and what it does not, what it sends in a browser, and that it needs nothing but fetch.

import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { openHttp } from "./http-world.ts";

const noWait = {
  sleep: async () => {},
  soon: setImmediate,
  after: () => () => {},
  elapsedMs: () => 0,
};

interface Sent {
  readonly url: string;
  readonly method: string;
  readonly headers: Record<string, string>;
}

/** Answers from a list, and remembers what was sent. */
function scripted(answers: readonly (() => Response)[]) {
  const sent: Sent[] = [];
  const fake = (async (url: string, init: RequestInit) => {
    sent.push({
      url,
      method: init.method ?? "GET",
      headers: init.headers as Record<string, string>,
    });
    const answer = answers[sent.length - 1] ?? answers.at(-1);
    if (answer === undefined) throw new Error("no answer");
    return answer();
  }) as unknown as typeof fetch;
  return { sent, fake };
}

const ok = () => Response.json({ stopped: true });
const problem = (status: number, code: string) => () =>
  Response.json({ code, details: {} }, { status });
const broken = () => {
  throw new TypeError("fetch failed");
};

test.each([
  ["a broken line", broken],
  ["a store that is away", problem(503, "store_unavailable")],
  ["too much load", problem(503, "overloaded")],
  ["a request that is still worked on", problem(409, "still_running")],
])("after %s it tries again, with the same key", async (_, failure) => {
  const { sent, fake } = scripted([failure, failure, ok]);
  const client = createClient({ url: "http://x", token: "t", fetch: fake, timers: noWait });
  expect(await client.switch.stop({ reason: "r" })).toEqual({ stopped: true });
  expect(sent).toHaveLength(3);
  expect(new Set(sent.map(({ headers }) => headers["Idempotency-Key"])).size).toBe(1);
  expect(sent[0]?.headers["Idempotency-Key"]).toMatch(/^[0-9a-f]{32}$/);
});

test.each([
  ["illegal_transition", 409],
  ["not_allowed", 403],
  ["commit_unknown", 503],
  ["outcome_unknown", 502],
  ["internal_error", 500],
  ["key_reused", 422],
  ["circuit_open", 503],
] as const)("%s is thrown without a retry, as the library would throw it", async (code, status) => {
  const { sent, fake } = scripted([problem(status, code)]);
  const client = createClient({ url: "http://x", token: "t", fetch: fake, timers: noWait });
  await expect(client.switch.stop({ reason: "r" })).rejects.toMatchObject({
    code,
    name: "SallyportError",
  });
  expect(sent).toHaveLength(1);
});

test("client: it stops after a number of attempts, and immediately when aborted", async () => {
  const { sent, fake } = scripted([broken]);
  const client = createClient({
    url: "http://x",
    token: "t",
    fetch: fake,
    timers: noWait,
    retries: 2,
  });
  await expect(client.switch.get()).rejects.toMatchObject({ code: "store_unavailable" });
  expect(sent).toHaveLength(3);
  const stop = new AbortController();
  stop.abort(new Error("enough"));
  await expect(client.switch.get({}, { signal: stop.signal })).rejects.toThrow("enough");
  expect(sent).toHaveLength(3);
});

test("client: a response of something else than Sallyport is reported as such", async () => {
  const { fake } = scripted([() => new Response("<html>proxy</html>", { status: 502 })]);
  const client = createClient({ url: "http://x", token: "t", fetch: fake, timers: noWait });
  await expect(client.switch.get()).rejects.toMatchObject({ code: "internal_error" });
});

test("client: in a browser it sends no token but the page key, also for reads, and reads the key each time [H1]", async () => {
  const { sent, fake } = scripted([ok, ok, ok]);
  let key: string | undefined = "k-1";
  const client = createClient({ fetch: fake, timers: noWait, pageKey: () => key });
  await client.switch.get();
  key = "k-2";
  await client.switch.stop({ reason: "a" });
  key = undefined;
  await client.switch.get();
  expect(sent.map(({ url }) => url)).toEqual(["/v1/switch", "/v1/switch/stop", "/v1/switch"]);
  expect(sent.map(({ headers }) => headers["X-Sallyport-Key"])).toEqual(["k-1", "k-2", undefined]);
  expect(sent.every(({ headers }) => !("Authorization" in headers))).toBe(true);
});

test("client: names in the path are escaped, and other fields go into the query", async () => {
  const { sent, fake } = scripted([() => Response.json({})]);
  const client = createClient({ url: "http://x", token: "t", fetch: fake });
  await client.decisions.get({ id: "a/b?c#d" });
  await client.decisions.list({ state: ["approved", "failed"], limit: 3 });
  expect(sent.map(({ url }) => url)).toEqual([
    "http://x/v1/decisions/a%2Fb%3Fc%23d",
    "http://x/v1/decisions?state=approved&state=failed&limit=3",
  ]);
});

test("client: a duplicate event is delivered once, and a broken stream resumes after the last one", async () => {
  const event = (seq: number) => `id: ${seq}\nevent: entry\ndata: {"seq":${seq}}\n\n`;
  const { sent, fake } = scripted([
    () => new Response(`id: 3\n\n${event(4)}${event(4)}${event(5)}data: half`),
    () => new Response(`${event(5)}${event(6)}: alive\n\nid: 9\n\n`),
    () => new Response(event(10)),
  ]);
  const client = createClient({ url: "http://x", token: "t", fetch: fake, timers: noWait });
  const seen: number[] = [];
  for await (const { seq } of client.events({ after: 3 })) {
    seen.push(seq);
    if (seq === 10) break;
  }
  expect(seen).toEqual([4, 5, 6, 10]);
  expect(sent.map(({ headers }) => headers["Last-Event-ID"])).toEqual(["3", "5", "9"]);
});

test("client: a call is executed once although every second response is lost", async () => {
  const world = await openHttp();
  let count = 0;
  const lossy: typeof fetch = async (...request) => {
    const response = await fetch(...request);
    count += 1;
    if (count % 2 === 1) throw new TypeError("lost");
    return response;
  };
  const token = await world.token("acme", "agent");
  const agent = createClient({ url: world.server.url, token, fetch: lossy, timers: noWait });
  const { id } = await agent.sessions.open({});
  for (let i = 0; i < 10; i += 1) {
    const answer = await agent.sessions.call({
      id,
      callId: `c-${i}`,
      tool: "world.look",
      input: { key: "k" },
    });
    expect(answer.answer).toBe("done");
  }
  expect(world.worlds.acme.reads).toHaveLength(10);
  expect(count).toBeGreaterThanOrEqual(20);
});

test("client: it loads neither Node modules nor packages", () => {
  const root = path.resolve(import.meta.dirname, "../..");
  const seen = new Set<string>();
  const outside: string[] = [];
  const walk = (file: string) => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = readFileSync(file, "utf8");
    for (const [, target = ""] of text.matchAll(
      /^(?:import|export) (?!type\b)[^;]*?from "([^"]+)";/gm,
    )) {
      if (target.startsWith(".")) walk(path.resolve(path.dirname(file), target));
      else outside.push(`${path.relative(root, file)} loads ${target}`);
    }
    if (/\b(?:Buffer|process)\.\w/.test(text))
      outside.push(`${path.relative(root, file)} uses a global of Node`);
  };
  walk(path.join(root, "src/client/index.ts"));
  expect(outside).toEqual([]);
  expect(seen.size).toBeGreaterThan(5);
});
