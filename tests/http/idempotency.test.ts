// I29 over HTTP: the same key with the same content gets the same answer, with other content an error; and nothing twice.

import { expect, test } from "vitest";
import { createServer } from "../../src/http/index.ts";
import { credentials, openHttp, raw } from "./http-world.ts";

async function opened() {
  const world = await openHttp();
  const token = await world.pass("acme", "operator");
  const post = (path: string, body: object, key: string, by = token) =>
    raw(`${world.server.url}${path}`, {
      method: "POST",
      headers: { ...credentials(by), "idempotency-key": key },
      body: JSON.stringify(body),
    });
  const entries = async (type: string) =>
    (await world.store.tenant("acme").audit.read({ after: 0, limit: 1_000 })).filter(
      (entry) => entry.type === type,
    );
  return { ...world, post, entries };
}

test("the same key and content: executed once, with the same answer", async () => {
  const { post, entries } = await opened();
  const first = await post("/v1/tasks", { subject: "one" }, "k-1");
  const again = await post("/v1/tasks", { subject: "one" }, "k-1");
  expect(first.status).toBe(201);
  expect(again).toMatchObject({ status: 201, text: first.text });
  expect(first.headers["idempotency-replayed"]).toBeUndefined();
  expect(again.headers["idempotency-replayed"]).toBe("true");
  expect(await entries("request.answered")).toHaveLength(1);
});

test("the same key with other content or another route: an error, and nothing is executed", async () => {
  const { post, tasks } = await opened();
  await post("/v1/tasks", { subject: "one" }, "k-1");
  for (const [path, body] of [
    ["/v1/tasks", { subject: "two" }],
    ["/v1/tasks", { subject: "one", priority: 1 }],
    ["/v1/switch/stop", { reason: "x" }],
  ] as const) {
    const other = await post(path, body, "k-1");
    expect(other.status).toBe(422);
    expect(JSON.parse(other.text)).toMatchObject({ code: "key_reused" });
  }
  expect(await tasks.acme.list()).toHaveLength(1);
});

test("the order of fields does not matter", async () => {
  const { post } = await opened();
  const first = await post("/v1/tasks", { subject: "one", priority: 1 }, "k");
  const again = await post("/v1/tasks", { priority: 1, subject: "one" }, "k");
  expect(again.text).toBe(first.text);
});

test("a refusal is stored as the answer; a temporary failure is not", async () => {
  const { post, store } = await opened();
  const missing = await post("/v1/tasks/none/complete", { result: "x" }, "k-1");
  expect(missing.status).toBe(404);
  const again = await post("/v1/tasks/none/complete", { result: "x" }, "k-1");
  expect(again.headers["idempotency-replayed"]).toBe("true");
  expect(again.text).toBe(missing.text);
  expect(
    (await store.tenant("acme").audit.read({ after: 0, limit: 100 })).map(({ type }) => type),
  ).toContain("request.answered");
});

test("keys are separate for each sender and tenant", async () => {
  const { post, pass, tasks } = await opened();
  await post("/v1/tasks", { subject: "mine" }, "k");
  const agent = await pass("acme", "agent");
  const other = await pass("bolt", "operator");
  expect((await post("/v1/tasks", { subject: "theirs" }, "k", agent)).status).toBe(201);
  expect((await post("/v1/tasks", { subject: "elsewhere" }, "k", other)).status).toBe(201);
  expect(await tasks.acme.list()).toHaveLength(2);
  expect(await tasks.bolt.list()).toHaveLength(1);
});

test("fifty concurrent requests with one key: one executes, the others wait or get its answer", async () => {
  const { post, tasks } = await opened();
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => post("/v1/tasks", { subject: "one" }, "k")),
  );
  expect(await tasks.acme.list()).toHaveLength(1);
  const kinds = new Set(answers.map(({ status }) => status));
  for (const status of kinds) expect([201, 409]).toContain(status);
  const done = answers.filter(({ status }) => status === 201);
  expect(new Set(done.map(({ text }) => text)).size).toBe(1);
});

test("a keyed call is executed once, also across processes and senders", async () => {
  const { store, gates, worlds, server, pass } = await opened();
  const agent = await pass("acme", "agent");
  const second = await createServer({ store, gates });
  try {
    const open = await raw(`${server.url}/v1/sessions`, {
      method: "POST",
      headers: credentials(agent),
      body: "{}",
    });
    const { id } = JSON.parse(open.text) as { id: string };
    const body = JSON.stringify({ callId: "c", tool: "world.look", input: { key: "k" } });
    const call = (url: string, key: string) =>
      raw(`${url}/v1/sessions/${id}/calls`, {
        method: "POST",
        headers: { ...credentials(agent), "idempotency-key": key },
        body,
      });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => call(n % 2 === 0 ? server.url : second.url, "k-1")),
    );
    expect(worlds.acme.reads).toHaveLength(1);
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    await call(second.url, "k-2");
    expect(worlds.acme.reads).toHaveLength(2);
  } finally {
    await second.close();
  }
});

test("a call's key with another input or tool, or for a question: an error, and nothing runs", async () => {
  const { server, pass, worlds } = await opened();
  const agent = await pass("acme", "agent");
  const send = (path: string, body: object, key: string) =>
    raw(`${server.url}${path}`, {
      method: "POST",
      headers: { ...credentials(agent), "idempotency-key": key },
      body: JSON.stringify(body),
    });
  const { id } = JSON.parse((await send("/v1/sessions", {}, "open")).text) as { id: string };
  const call = (input: object, tool = "world.look") =>
    send(`/v1/sessions/${id}/calls`, { callId: "c", tool, input }, "k");
  const first = await call({ key: "a" });
  expect((await call({ key: "a" })).text).toBe(first.text);
  const blind = await call({ key: "a" }, "world.blind");
  for (const other of [await call({ key: "b" }), blind]) {
    expect(other.status).toBe(422);
    expect(JSON.parse(other.text)).toMatchObject({ code: "key_reused" });
  }
  expect(worlds.acme.reads).toHaveLength(1);
  expect(worlds.acme.effects).toEqual([]);
});

test("the secret of a new token is shown once and stored nowhere, not even for its idempotency key [T19]", async () => {
  const { post, pass, store } = await opened();
  const admin = await pass("acme", "admin");
  const body = { subject: "agent:new", roles: ["agent"] };
  const first = JSON.parse((await post("/v1/tokens", body, "k", admin)).text) as { secret: string };
  const again = JSON.parse((await post("/v1/tokens", body, "k", admin)).text) as { secret: string };
  expect(first.secret).toMatch(/^sallyport_/);
  expect(again).toMatchObject({ secret: "" });
  const trail = JSON.stringify(await store.tenant("acme").audit.read({ after: 0, limit: 100 }));
  expect(trail).not.toContain(first.secret.slice(-20));
});

test.each([
  ["empty", ""],
  ["too long", "a".repeat(256)],
  ["with a space", "a b"],
  ["not ASCII", "\u00fc"],
])("a key that is %s is refused, and nothing is done", async (_, key) => {
  const { post, tasks } = await opened();
  const sent = await post("/v1/tasks", { subject: "x" }, key);
  expect(sent.status).toBe(422);
  expect(JSON.parse(sent.text)).toMatchObject({ details: { what: "Idempotency-Key" } });
  expect(await tasks.acme.list()).toHaveLength(0);
});
