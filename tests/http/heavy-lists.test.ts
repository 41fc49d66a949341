// Lists of large records: limited in bytes, read in parts, and what an agent can pile up is limited.

import { expect, test, vi } from "vitest";
import { createTaskList } from "../../src/tasks/create-task-list.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { watchLoop } from "../fuzz/loop-watch.ts";
import { createWorld } from "../support/port-world.ts";
import { bearer, openHttp, raw } from "./http-world.ts";

const MEGABYTE = 1024 * 1024;

test("inbox: 100 large proposals are listed as heads, in small pages, without stopping the process [M11]", {
  timeout: 100_000,
}, async () => {
  const quotas = { openBytes: 500 * MEGABYTE };
  const world = await openHttp({ port: { quotas } });
  const session = world.gates.acme.sessions.open({ id: "s", agent: "agent:one" });
  const value = "x".repeat(400_000);
  for (let n = 0; n < 100; n += 1) {
    const input = { key: `k${n}`, value };
    expect(await session.call({ callId: `c${n}`, tool: "world.set", input })).toMatchObject({
      answer: "pending",
    });
  }
  const headers = bearer(await world.token("acme", "reviewer"));
  const stopWatching = watchLoop();
  const items: { id: string; cut: unknown; pendingTool: { args_json: string } }[] = [];
  let largest = 0;
  for (let cursor = ""; ; ) {
    const query = cursor === "" ? "" : `&cursor=${cursor}`;
    const page = await raw(`${world.server.url}/v1/interactions?limit=500${query}`, { headers });
    largest = Math.max(largest, Buffer.byteLength(page.text));
    const { items: some, next } = JSON.parse(page.text);
    items.push(...some);
    if (next === null) break;
    cursor = next;
  }
  const { wall, own } = stopWatching();
  expect(largest).toBeLessThan(MEGABYTE + 64 * 1024);
  expect(new Set(items.map(({ id }) => id)).size).toBe(100);
  // Reading all of it in one step took more than three seconds.
  expect(Math.min(wall.longestMs, own.longestMs)).toBeLessThan(1_500);
  const [first] = items;
  expect(first?.cut).toContainEqual({
    field: "pendingTool.args_json",
    bytes: expect.any(Number),
  });
  expect(first?.pendingTool.args_json.length).toBeLessThan(5_000);
  const reviewer = await world.client("acme", "reviewer");
  const whole = await reviewer.interactions.get({ id: first?.id ?? "" });
  expect(whole.cut).toBe(undefined);
  expect(whole.pendingTool?.args_json).toContain(value);
  const decisions = await raw(`${world.server.url}/v1/decisions?limit=500`, { headers });
  expect(Buffer.byteLength(decisions.text)).toBeLessThan(4 * MEGABYTE);
  expect(JSON.parse(decisions.text).next).not.toBe(null);
});

test("decisions, sessions and replays: large decisions are read in parts, never all for one answer [M11]", {
  timeout: 100_000,
}, async () => {
  const world = await openHttp({ port: { quotas: { openBytes: 500 * MEGABYTE } } });
  const { decisions } = world.store.tenant("acme");
  const value = "x".repeat(400_000);
  for (let n = 0; n < 60; n += 1) {
    const session = world.gates.acme.sessions.open({ id: `s${n % 30}`, agent: "agent:one" });
    const input = { key: `k${n}`, value };
    await session.call({ callId: `c${n}`, tool: "world.set", input });
  }
  expect(await decisions.list({ limit: 100 })).toHaveLength(60);
  // The most that one read of the store is asked for, and what all pages together hold.
  const asked: number[] = [];
  const { list, listStuck } = world.gates.acme.decisions;
  const person = await world.client("acme", "operator");
  vi.spyOn(world.gates.acme.decisions, "list").mockImplementation((query) => {
    asked.push(query?.limit ?? 1_000);
    return list(query);
  });
  vi.spyOn(world.gates.acme.decisions, "listStuck").mockImplementation((state, ms, page) => {
    asked.push(page?.limit ?? 1_000);
    return listStuck(state, ms, page);
  });
  const idsOf = async (
    read: (cursor?: string) => Promise<{ items: readonly { id: string }[]; next: string | null }>,
  ) => {
    const ids: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const { items, next } = await read(cursor);
      ids.push(...items.map(({ id }) => id));
      if (next === null) return ids;
      cursor = next;
    }
  };
  const at = (cursor: string | undefined) => (cursor === undefined ? {} : { cursor });
  const listed = await idsOf((cursor) => person.decisions.list({ limit: 500, ...at(cursor) }));
  expect([listed.length, new Set(listed).size]).toEqual([60, 60]);
  const stuck = { state: "pending_ml", forAtLeastMs: 0, limit: 500 } as const;
  const waiting = await idsOf((cursor) => person.decisions.stuck({ ...stuck, ...at(cursor) }));
  expect(waiting).toEqual(listed);
  const sessions = await idsOf((cursor) => person.sessions.list({ limit: 500, ...at(cursor) }));
  expect(sessions).toEqual(Array.from({ length: 30 }, (_, n) => `s${n}`));
  expect(Math.max(...asked)).toBeLessThanOrEqual(32);

  const pattern = { key: { any: true }, value: { any: true } } as const;
  const stopWatching = watchLoop();
  const replay = await person.standingRules.replay({ tool: "world.set", pattern });
  const { wall, own } = stopWatching();
  expect([replay.looked, replay.open.length]).toEqual([60, 60]);
  expect(Math.min(wall.longestMs, own.longestMs)).toBeLessThan(1_000);
});

test("operations: a page of large ones is limited in bytes, and the pages together hold all of them [M11]", {
  timeout: 60_000,
}, async () => {
  const world = createWorld();
  const large = defineTool({
    name: "world.large",
    description: "Tells much.",
    input: { type: "object", properties: { n: { type: "integer" } }, additionalProperties: false },
    safety: { effect: "read", concurrencySafe: true },
    permissionClass: "readonly",
    execute: () => "x".repeat(300_000),
  });
  const { server, gates, token } = await openHttp({
    port: { tools: [...Object.values(world.tools), large] },
  });
  const session = gates.acme.sessions.open({ id: "s", agent: "agent:one" });
  for (let n = 0; n < 41; n += 1) {
    const tool = n % 8 === 0 ? "world.look" : "world.large";
    const input = n % 8 === 0 ? { key: "k" } : { n };
    expect(await session.call({ callId: `c${n}`, tool, input })).toMatchObject({ answer: "done" });
  }
  const headers = bearer(await token("acme", "operator"));
  for (const limit of [500, 5, 1]) {
    const callIds: string[] = [];
    for (let cursor = ""; ; ) {
      const query = cursor === "" ? "" : `&cursor=${cursor}`;
      const address = `${server.url}/v1/operations?sessionId=s&limit=${limit}${query}`;
      const { text } = await raw(address, { headers });
      expect(Buffer.byteLength(text)).toBeLessThan(MEGABYTE + 512 * 1024);
      const { items, next } = JSON.parse(text) as { items: { callId: string }[]; next: string };
      expect(items.length).toBeLessThanOrEqual(limit);
      callIds.push(...items.map(({ callId }) => callId));
      if (next === null) break;
      cursor = next;
    }
    expect(callIds).toEqual(Array.from({ length: 41 }, (_, n) => `c${40 - n}`));
  }
});

test("tasks: stuck ones are listed up to a limit, and the answer says that there are more [M11 L6]", async () => {
  const world = await openHttp();
  const agent = await world.client("acme", "agent");
  const { id } = await agent.tasks.add({ subject: "first" });
  await agent.tasks.fail({ id, reason: "broken" });
  const drafts = Array.from({ length: 300 }, (_, n) => ({ subject: `task ${n}`, blockedBy: [id] }));
  await world.tasks.acme.addAll(drafts);
  const operator = await world.client("acme", "operator");
  const few = await operator.tasks.stuck({ claimedForMs: 0 });
  expect([few.items.length, few.more]).toEqual([300, false]);
  await world.tasks.acme.addAll(drafts);
  const many = await operator.tasks.stuck({ claimedForMs: 0 });
  expect([many.items.length, many.more]).toEqual([500, true]);
});

test("questions: more than 16 KiB of metadata is refused [M11]", async () => {
  const world = await openHttp();
  const agent = await world.client("acme", "agent");
  const { id } = await agent.sessions.open({});
  const asking = (callId: string, length: number) =>
    agent.sessions.ask({ id, callId, text: "?", metadata: { note: "x".repeat(length) } });
  expect(await asking("small", 16_000)).toMatchObject({ answer: "pending" });
  await expect(asking("large", 17_000)).rejects.toMatchObject({ code: "payload_too_large" });
});

test("questions: one agent may have a limited number and size open; an answer makes room [M11]", async () => {
  const clock = { ms: 1_800_000_000_000, now: () => clock.ms };
  const world = await openHttp({
    clock,
    port: { quotas: { openQuestions: 3, openBytes: 20_000 } },
  });
  const agent = await world.client("acme", "agent");
  const other = await world.client("acme", "agent", "agent:two");
  const reviewer = await world.client("acme", "reviewer");
  const { id } = await agent.sessions.open({});
  const ask = (callId: string, text = "?") => agent.sessions.ask({ id, callId, text });
  const first = await ask("one");
  await ask("two");
  const input = { key: "k", value: "v" };
  const call = (callId: string, key?: string) =>
    agent.sessions.call({ id, callId, tool: "world.set", input, ...(key ? { key } : {}) });
  expect(await call("three", "third")).toMatchObject({ answer: "pending" });
  await expect(ask("four")).rejects.toMatchObject({ code: "quota_exceeded" });
  await expect(call("five")).rejects.toMatchObject({ code: "quota_exceeded" });
  // What was asked before is no new question, reading is none at all, and others have a quota of their own.
  expect(await ask("one")).toMatchObject({ answer: "pending" });
  expect(await call("three", "third")).toMatchObject({ answer: "pending" });
  const look = { id, callId: "look", tool: "world.look", input: { key: "k" } };
  expect(await agent.sessions.call(look)).toMatchObject({ answer: "done" });
  const { id: theirs } = await other.sessions.open({});
  const asked = await other.sessions.ask({ id: theirs, callId: "q", text: "?" });
  expect(asked).toMatchObject({ answer: "pending" });
  if (first.answer !== "pending") throw new Error("not asked");
  const { hash } = await reviewer.interactions.get({ id: first.interactionId });
  await reviewer.interactions.answer({ id: first.interactionId, hash, answer: "yes" });
  clock.ms += 6_000;
  expect(await ask("six", "x".repeat(9_000))).toMatchObject({ answer: "pending" });
});

test("tasks: listing a page reads one page from the store, also when an agent added many [L6]", async () => {
  const world = await openHttp();
  const tasks = createTaskList({ store: world.store.tenant("acme").tasks });
  const counted = { read: 0 };
  const { page } = tasks;
  Object.assign(world.tasks.acme, {
    page: async (query: Parameters<typeof page>[0]) => {
      const found = await page(query);
      counted.read += found.tasks.length;
      return found;
    },
    list: () => Promise.reject(new Error("the whole list was read")),
  });
  const drafts = Array.from({ length: 500 }, (_, n) => ({ subject: `task ${n}` }));
  for (let n = 0; n < 4; n += 1) await tasks.addAll(drafts);
  const agent = await world.client("acme", "agent");
  const { items, next } = await agent.tasks.list({ limit: 1 });
  expect(items).toMatchObject([{ subject: "task 0" }]);
  expect(counted.read).toBe(1);
  const second = await agent.tasks.list({ limit: 2, cursor: next ?? "" });
  expect(second.items.map(({ subject }) => subject)).toEqual(["task 1", "task 2"]);
  expect(world.problems).toEqual([]);
});

test("tasks: one agent may have a limited number open; a completed one makes room [L6]", async () => {
  const limits = { openTasks: { most: 2, mostBytes: MEGABYTE } };
  const world = await openHttp({ server: { limits } });
  const agent = await world.client("acme", "agent");
  const other = await world.client("acme", "agent", "agent:two");
  const first = await agent.tasks.add({ subject: "one" });
  await agent.tasks.add({ subject: "two" });
  await agent.tasks.complete({ id: first.id, result: "done" });
  await agent.tasks.add({ subject: "three" });
  await expect(agent.tasks.add({ subject: "four" })).rejects.toMatchObject({
    code: "quota_exceeded",
  });
  expect(await other.tasks.add({ subject: "theirs" })).toMatchObject({ status: "pending" });
});
