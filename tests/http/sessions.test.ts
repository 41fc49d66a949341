// Sessions that programs opened by themselves, what a call would touch, and who a person is: facts that the server reports.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { defineTool } from "../../src/tools/define-tool.ts";
import { createWorld } from "../support/port-world.ts";
import { openHttp } from "./http-world.ts";

async function whole<Item>(items: AsyncGenerator<Item>): Promise<readonly Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

test("a session's id begins with the name of its caller, so that nobody opens the session of another first", async () => {
  const world = await openHttp();
  const [one, two] = [
    await world.client("acme", "agent", "agent:one"),
    await world.client("acme", "agent", "agent:two"),
  ];
  const squatted = await one.sessions.open({ id: "agent:two:work" });
  expect(squatted.id).toBe("agent:one:agent:two:work");
  expect(await two.sessions.open({ id: "work" })).toMatchObject({ id: "agent:two:work" });
  await expect(one.sessions.get({ id: "agent:two:work" })).rejects.toMatchObject({
    code: "not_found",
  });
});

test("sessions opened inside the server's program are listed too, each once, for any page size", async () => {
  const world = await openHttp();
  const auditor = await world.client("acme", "auditor");
  const agent = await world.client("acme", "agent");
  const ids: string[] = [];
  for (let i = 0; i < 7; i += 1) {
    const id = i % 2 === 0 ? (await agent.sessions.open()).id : `inside-${i}`;
    ids.push(id);
    const owner = i % 2 === 0 ? "" : "person:owner";
    const session = world.gates.acme.sessions.open({ id, agent: `agent:${i}`, owner });
    for (const callId of ["a", "b", "c"]) {
      await session.call({ callId, tool: "world.set", input: { key: callId, value: i } });
    }
  }
  for (const limit of [1, 2, 3, 4, 100]) {
    const listed = await whole(
      auditor.all((cursor) => auditor.sessions.list({ limit, ...(cursor ? { cursor } : {}) })),
    );
    expect(listed.map(({ id }) => id).toSorted(), `limit ${limit}`).toEqual(ids.toSorted());
    const first = await auditor.sessions.list({ limit });
    expect(first.items.length).toBeLessThanOrEqual(limit);
  }
  expect(await auditor.sessions.get({ id: "inside-1" })).toMatchObject({
    agent: "agent:1",
    owner: "person:owner",
  });
  // One that was only ever allowed to look has no decision, but it did something.
  const looking = world.gates.acme.sessions.open({ id: "looking", agent: "agent:eye" });
  await looking.call({ callId: "l", tool: "world.look", input: { key: "a" } });
  expect(await auditor.sessions.get({ id: "looking" })).toMatchObject({ agent: "agent:eye" });
  await expect(auditor.sessions.get({ id: "nobody" })).rejects.toMatchObject({ code: "not_found" });
  const later = new Date(Date.now() + 60_000).toISOString();
  const recent = await auditor.sessions.list({ since: later });
  expect(recent.items.every(({ id }) => !id.startsWith("inside"))).toBe(true);
  // An agent sees its own and nothing of the others.
  const own = await whole(agent.all((cursor) => agent.sessions.list(cursor ? { cursor } : {})));
  expect(own.map(({ id }) => id)).toEqual(ids.filter((id) => !id.startsWith("inside")));
  const { next } = await auditor.sessions.list({ limit: 5 });
  await expect(agent.sessions.list({ cursor: next ?? "" })).rejects.toMatchObject({
    code: "invalid_input",
  });
});

test("a decision shows the resolved targets of its calls: links and relative paths [R8]", async () => {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), "sallyport-targets-")));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(path.join(folder, "secret"));
  symlinkSync(path.join(folder, "secret"), path.join(folder, "harmless"));
  const write = defineTool({
    name: "notes.write",
    description: "Writes a note.",
    input: { type: "object", properties: { file: { type: "string" } }, required: ["file"] },
    safety: { effect: "write", reversible: true },
    permissionClass: "file",
    resources: ({ input }) => [
      { kind: "file", path: String(input["file"]), access: "write" },
      { kind: "url", url: "https://notes.example/" },
    ],
    execute: () => "written",
    undo: () => ({ tool: "notes.write", input: { file: "x" } }),
  });
  const tools = [...Object.values(createWorld().tools), write];
  const world = await openHttp({ port: { tools } });
  const session = world.gates.acme.sessions.open({
    id: "s",
    agent: "agent:w",
    workingDirectory: folder,
  });
  const ask = async (tool: string, input: object) => {
    const answer = await session.call({ callId: tool, tool, input: input as never });
    if (answer.answer !== "pending") throw new Error(answer.text);
    return answer.decisionId;
  };
  const reviewer = await world.client("acme", "reviewer");
  const id = await ask("notes.write", { file: "harmless/../harmless/plan.txt" });
  const { targets } = await reviewer.decisions.get({ id });
  expect(targets).toEqual([
    [
      { kind: "file", target: path.join(folder, "secret", "plan.txt"), access: "write" },
      { kind: "url", target: "https://notes.example/" },
    ],
  ]);
  const other = await ask("world.set", { key: "a", value: 1 });
  expect((await reviewer.decisions.get({ id: other })).targets).toEqual([null]);
  // What the machine said at the business door is kept with the question, also after a person has spoken.
  const { metadata, hash } = await reviewer.interactions.get({ id: other });
  const machine = { approved: true, validator: "limits" };
  expect(metadata["machine"]).toMatchObject(machine);
  await reviewer.interactions.reject({ id: other, hash, reason: "no" });
  expect((await reviewer.interactions.get({ id: other })).metadata["machine"]).toMatchObject(
    machine,
  );
  expect((await reviewer.decisions.get({ id: other })).bizVerdict.reason).toBe("no");
});

test("GET /v1/me returns the person's groups", async () => {
  const people = [{ id: "person:reviewer", groups: ["night-shift"] }, { id: "person:admin" }];
  const world = await openHttp({ port: { people } });
  const [reviewer, admin, auditor] = await Promise.all([
    world.client("acme", "reviewer"),
    world.client("acme", "admin"),
    world.client("acme", "auditor"),
  ]);
  expect((await reviewer.me.get()).groups).toEqual(["night-shift"]);
  expect((await admin.me.get()).groups).toEqual([]);
  expect((await auditor.me.get()).groups).toEqual([]);
});
