// The task list over HTTP: claims, roles, sessions under a claim, batches, links, documents, and a list kept in a Markdown file.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { markdownTaskStore } from "../../src/tasks/markdown-task-store.ts";
import { manualClock } from "../../src/util/clock.ts";
import { openHttp } from "./http-world.ts";

const LEASE = 60_000;

async function openList(options: Parameters<typeof openHttp>[0] = {}) {
  const world = await openHttp(options);
  const one = await world.client("acme", "agent", "agent:one");
  const two = await world.client("acme", "agent", "agent:two");
  const operator = await world.client("acme", "operator");
  return { ...world, one, two, operator };
}

const refusal = (code: string) => expect.objectContaining({ code });

test("an agent adds, claims, renews and completes a task, and its result is kept [S4-33]", async () => {
  const { one, two } = await openList();
  const added = await one.tasks.add({ subject: "Count shirts" });
  const { task } = await two.tasks.claimNext({});
  expect(task).toMatchObject({ id: added.id, status: "claimed", claimer: "agent:two" });
  expect(task?.leaseUntil, "a claim without a lease is held for ever").toBeDefined();
  const held = { id: added.id, fence: task?.fence ?? 0 };
  await expect(one.tasks.complete({ ...held, result: "mine" })).rejects.toEqual(
    refusal("claim_lost"),
  );
  await expect(one.tasks.fail({ ...held, reason: "mine" })).rejects.toEqual(refusal("claim_lost"));
  await expect(one.tasks.release(held)).rejects.toEqual(refusal("claim_lost"));
  await expect(one.tasks.renew(held)).rejects.toEqual(refusal("claim_lost"));
  const renewed = await two.tasks.renew({ ...held, leaseMs: 2 * LEASE });
  expect(Date.parse(renewed.leaseUntil ?? "")).toBeGreaterThan(Date.parse(task?.leaseUntil ?? ""));
  await two.tasks.complete({ ...held, result: "39" });
  expect(await one.tasks.get({ id: added.id })).toMatchObject({
    status: "completed",
    result: "39",
  });
});

test("an operator ends the claim of another and reopens what failed; an agent may not", async () => {
  const { one, two, operator } = await openList();
  const { id } = await one.tasks.add({ subject: "Count hats" });
  const { fence = 0 } = await one.tasks.claim({ id });
  // A fence is a small number: who guesses it holds nothing by that.
  for (const guessed of ["any", fence] as const) {
    const failing = two.tasks.fail({ id, fence: guessed, reason: "no" });
    await expect(failing).rejects.toEqual(refusal("claim_lost"));
  }
  expect(await one.tasks.get({ id })).toMatchObject({ status: "claimed" });
  await operator.tasks.fail({ id, fence: "any", reason: "No access." });
  expect(await one.tasks.get({ id })).toMatchObject({
    status: "failed",
    failureReason: "No access.",
  });
  await expect(one.tasks.reopen({ id })).rejects.toEqual(refusal("not_allowed"));
  expect((await operator.tasks.reopen({ id })).status).toBe("pending");
});

test("a session under a claim works while the claim lasts, and changes nothing after it [T34]", async () => {
  const clock = manualClock(Date.parse("2026-11-18T08:00:00.000Z"));
  const { one, two, worlds, gates } = await openList({ clock });
  const { id } = await one.tasks.add({ subject: "Set a" });
  const { fence = 0 } = await one.tasks.claim({ id, leaseMs: LEASE });
  const session = await one.sessions.open({ id: "work", claim: { id, fence } });
  expect(session.claim).toEqual({ id, fence });
  const look = { id: session.id, callId: "l", tool: "world.look", input: { key: "a" } };
  expect((await one.sessions.call(look)).answer).toBe("done");
  const set = { id: session.id, tool: "world.set", input: { key: "a", value: 1 } };
  const waiting = await one.sessions.call({ ...set, callId: "s" });
  clock.advance(LEASE + 1);
  const late = await one.sessions.call({ ...look, callId: "l2" });
  expect(late).toMatchObject({ answer: "denied", findings: [{ policy: "task.claim" }] });
  // Approved while the task has no holder any more: it does not run either.
  if (waiting.answer !== "pending") throw new Error("not asked");
  const { interactionId } = waiting;
  const { hash } = await gates.acme.interactions.get(interactionId);
  const yes = await gates.acme.interactions.approve(interactionId, { hash, by: "person:ada" });
  expect(JSON.stringify(yes)).toContain("claim");
  await two.tasks.claim({ id, leaseMs: LEASE });
  expect((await one.sessions.call({ ...look, callId: "l3" })).answer).toBe("denied");
  expect(worlds.acme.effects).toEqual([]);
});

test("no session opens under the claim of another, an old fence or a free task", async () => {
  const { one, two } = await openList();
  const { id } = await one.tasks.add({ subject: "Mine" });
  await expect(one.sessions.open({ claim: { id, fence: 1 } })).rejects.toEqual(
    refusal("claim_lost"),
  );
  const { fence = 0 } = await one.tasks.claim({ id });
  await expect(two.sessions.open({ claim: { id, fence } })).rejects.toEqual(refusal("claim_lost"));
  await one.sessions.open({ id: "s", claim: { id, fence } });
  await one.tasks.release({ id, fence });
  const again = await one.tasks.claim({ id });
  await expect(one.sessions.open({ claim: { id, fence } })).rejects.toEqual(refusal("claim_lost"));
  // The same name under the new claim would silently keep the old one.
  const next = { id: "s", claim: { id, fence: again.fence ?? 0 } };
  await expect(one.sessions.open(next)).rejects.toEqual(refusal("already_exists"));
  const gone = { id: "no-such-task", fence: 1 };
  await expect(one.sessions.open({ claim: gone })).rejects.toEqual(refusal("not_found"));
});

test("a task of a role is claimed only with a token that has the role, whatever the claimer says", async () => {
  const { server, one, operator } = await openList();
  const { id } = await operator.tasks.add({ subject: "Sign it", role: "writer" });
  await expect(one.tasks.claim({ id })).rejects.toEqual(refusal("not_claimable"));
  expect(await one.tasks.claimNext({})).toEqual({ task: null });
  const lie = one.tasks.claim({ id, ...{ roles: ["writer"] } });
  await expect(lie).rejects.toEqual(refusal("invalid_input"));
  const roles = ["agent"] as const;
  const terms = { tenant: "acme", subject: "agent:writer", roles, taskRoles: ["writer"] };
  const writer = createClient({ url: server.url, token: await server.makeToken(terms) });
  expect((await writer.tasks.claimNext({})).task).toMatchObject({ id, claimer: "agent:writer" });
});

test("an admin gives a program its task roles, and the list of tokens shows them", async () => {
  const { server, client, operator } = await openList();
  const { id } = await operator.tasks.add({ subject: "Sign it", role: "writer" });
  const admin = await client("acme", "admin");
  const given = { subject: "agent:pen", roles: ["agent" as const], taskRoles: ["writer"] };
  const { token, secret } = await admin.tokens.make(given);
  expect(token.taskRoles).toEqual(["writer"]);
  const { items } = await admin.tokens.list({ kind: "token" });
  expect(items.find(({ subject }) => subject === "agent:pen")?.taskRoles).toEqual(["writer"]);
  const pen = createClient({ url: server.url, token: secret });
  expect((await pen.tasks.claim({ id })).claimer).toBe("agent:pen");
});

test("a batch is added as a whole, its members block each other, and several are claimed at once", async () => {
  const { one, two, operator } = await openList();
  const { tasks } = await one.tasks.addAll({
    tasks: [
      { key: "count", subject: "Count" },
      { key: "order", subject: "Order", blockedBy: ["count"] },
      { subject: "Sweep", priority: 5 },
    ],
  });
  const [count, order, sweep] = tasks;
  expect(order?.blockedBy).toEqual([count?.id]);
  const circle = [
    { key: "a", subject: "A", blockedBy: ["b"] },
    { key: "b", subject: "B", blockedBy: ["a"] },
  ];
  await expect(one.tasks.addAll({ tasks: circle })).rejects.toEqual(refusal("invalid_input"));
  expect((await one.tasks.list({})).items).toHaveLength(3);
  await operator.tasks.block({ id: sweep?.id ?? "", blockedBy: [order?.id ?? ""] });
  await expect(one.tasks.block({ id: sweep?.id ?? "", blockedBy: [] })).rejects.toEqual(
    refusal("not_allowed"),
  );
  const first = await two.tasks.claimBatch({ limit: 10 });
  expect(first.tasks.map(({ subject }) => subject)).toEqual(["Count"]);
  const held = { id: count?.id ?? "", fence: first.tasks[0]?.fence ?? 0 };
  await two.tasks.complete({ ...held, result: "12" });
  const second = await two.tasks.claimBatch({ limit: 10, leaseMs: LEASE });
  expect(second.tasks.map(({ subject }) => subject)).toEqual(["Order"]);
});

test("one sender's quota counts every task of a batch", async () => {
  const { one } = await openList({
    server: { limits: { openTasks: { most: 3, mostBytes: 1e6 } } },
  });
  const tasks = ["a", "b"].map((subject) => ({ subject }));
  await one.tasks.addAll({ tasks });
  await expect(one.tasks.addAll({ tasks })).rejects.toEqual(refusal("quota_exceeded"));
  expect((await one.tasks.list({})).items).toHaveLength(2);
});

test("a task linked to a decision is completed only when that is executed", async () => {
  const { one, gates } = await openList();
  const { id } = await one.tasks.add({ subject: "Set a" });
  const { fence = 0 } = await one.tasks.claim({ id });
  const session = await one.sessions.open({ claim: { id, fence } });
  const set = { callId: "s", tool: "world.set", input: { key: "a", value: 1 } };
  const asked = await one.sessions.call({ id: session.id, ...set });
  if (asked.answer !== "pending") throw new Error("not asked");
  const linked = { id, fence, sessionId: session.id, decisionIds: [asked.decisionId] };
  expect((await one.tasks.link(linked)).decisionIds).toEqual([asked.decisionId]);
  const done = { id, fence, result: "set" };
  await expect(one.tasks.complete(done)).rejects.toEqual(refusal("dependency_denied"));
  const { hash } = await gates.acme.interactions.get(asked.interactionId);
  await gates.acme.interactions.approve(asked.interactionId, { hash, by: "person:ada" });
  expect((await one.tasks.complete(done)).status).toBe("completed");
});

test.each(["json", "markdown"] as const)(
  "a list is exported as %s and imported elsewhere with its claimers and reasons [S4-08]",
  async (format) => {
    const from = await openList();
    const failed = await from.one.tasks.add({ subject: "Broken", description: "All of it." });
    await from.one.tasks.claim({ id: failed.id });
    await from.operator.tasks.fail({ id: failed.id, fence: "any", reason: "No access." });
    const held = await from.one.tasks.add({ subject: "Held", blockedBy: [], priority: 3 });
    await from.two.tasks.claim({ id: held.id, leaseMs: LEASE });
    const pages: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await from.operator.tasks.export({
        format,
        limit: 1,
        ...(cursor ? { cursor } : {}),
      });
      if (page.count > 0) pages.push(page.text);
      if (page.next === null) break;
      cursor = page.next;
    }
    expect(pages).toHaveLength(2);
    for (const name of ["fail_reason", "claimed_by"]) {
      if (format === "json") expect(pages.join("")).toContain(`"${name}"`);
    }
    expect(pages.join("")).toContain("claimed_by");
    const to = await openList();
    const seen: string[] = [];
    for (const text of pages) {
      const { added, skipped } = await to.operator.tasks.import({ format, text });
      expect(skipped).toEqual([]);
      seen.push(...added);
    }
    expect(seen).toEqual([failed.id, held.id]);
    const again = await to.operator.tasks.import({ format, text: pages[0] ?? "" });
    expect(again).toEqual({ added: [], skipped: [failed.id] });
    expect(await to.one.tasks.get({ id: failed.id })).toMatchObject({
      status: "failed",
      claimer: "agent:one",
      failureReason: "No access.",
      description: "All of it.",
    });
    const moved = await to.one.tasks.get({ id: held.id });
    expect(moved).toMatchObject({ status: "claimed", claimer: "agent:two", priority: 3, fence: 1 });
    // The claimer continues under the new fence; no other caller gets the task meanwhile.
    await expect(to.one.tasks.claim({ id: held.id })).rejects.toEqual(refusal("not_claimable"));
    const done = await to.two.tasks.complete({ id: held.id, fence: 1, result: "done" });
    expect(done.status).toBe("completed");
  },
);

test("an import with a wrong task, a circle or too many tasks adds nothing", async () => {
  const { operator, one } = await openList();
  const good = { id: "a", subject: "A" };
  const many = Array.from({ length: 1_001 }, (_, nth) => ({ id: `t${nth}`, subject: "x" }));
  const cases = [
    ["not json", "invalid_input"],
    [JSON.stringify(good), "invalid_input"],
    [JSON.stringify([good, { subject: "no id" }]), "damaged_record"],
    [JSON.stringify([good, { id: "b", subject: "x".repeat(81) }]), "invalid_input"],
    [JSON.stringify([good, { id: "b", subject: "B", blocked_by: ["b"] }]), "invalid_input"],
    [JSON.stringify(many), "payload_too_large"],
  ] as const;
  for (const [text, code] of cases) {
    await expect(operator.tasks.import({ format: "json", text })).rejects.toEqual(refusal(code));
  }
  await expect(one.tasks.import({ format: "json", text: "[]" })).rejects.toEqual(
    refusal("not_allowed"),
  );
  expect((await one.tasks.list({})).items).toEqual([]);
});

test("a Markdown list behind the server: its claims bind sessions, and people read the file [S4-70]", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-list-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, "tasks.md");
  const { one, two } = await openList({ port: { tasks: markdownTaskStore({ path: file }) } });
  const { id } = await one.tasks.add({ subject: "Count shirts" });
  const { fence = 0 } = await one.tasks.claim({ id, leaseMs: LEASE });
  expect(readFileSync(file, "utf8")).toContain("- claimed_by: agent:one");
  const session = await one.sessions.open({ claim: { id, fence } });
  const look = { id: session.id, tool: "world.look", input: { key: "a" } };
  expect((await one.sessions.call({ ...look, callId: "1" })).answer).toBe("done");
  await one.tasks.release({ id, fence });
  await two.tasks.claim({ id });
  expect((await one.sessions.call({ ...look, callId: "2" })).answer).toBe("denied");
  const held = await two.tasks.get({ id });
  await two.tasks.complete({ id, fence: held.fence ?? 0, result: "39" });
  expect(readFileSync(file, "utf8")).toContain("- status: completed");
});
