import { expect, test } from "vitest";
import type { Inbox } from "../../../src/port/inbox.ts";
import { decisionIdOf, openPort, request } from "../../support/port-world.ts";

const ada = "person:ada";

/** What somebody may do who looked while it was theirs, and writes after it was handed to somebody else. */
const LATE: Readonly<Record<string, (inbox: Inbox, id: string, hash: string) => Promise<unknown>>> =
  {
    approve: (inbox, id, hash) => inbox.approve(id, { hash, by: ada }),
    reject: (inbox, id, hash) => inbox.reject(id, { hash, by: ada }),
    edit: (inbox, id, hash) =>
      inbox.edit(id, { hash, by: ada, inputs: { 0: { key: "b", value: 2 } } }),
    askBack: (inbox, id) => inbox.askBack(id, { by: ada, text: "Why?" }),
    cancel: (inbox, id) => inbox.cancel(id, { by: ada, reason: "not needed" }),
  };

test.each(Object.keys(LATE))("R12 %s: handed to somebody else between look and write, it is theirs alone", async (name) => {
  const { port, tap, effects } = openPort();
  const session = port.sessions.open({ id: "s-1", agent: "agent:one" });
  const call = request("world.set", { key: "a", value: 1 });
  const id = decisionIdOf(await session.call(call));
  const { hash } = await port.interactions.get(id);
  let isHanded = false;
  tap.before = async ({ steps }) => {
    const isAboutIt = steps.some((step) => step.op === "update" && step.table.name === "interactions");
    if (isHanded || !isAboutIt) return;
    isHanded = true;
    await port.interactions.handOver(id, { by: ada, to: "person:bob" });
  };
  await expect(LATE[name]?.(port.interactions, id, hash)).rejects.toThrow(/not_allowed|overtaken|handed to|concurrent_modification/);
  expect(isHanded).toBe(true);
  const asked = await port.interactions.get(id);
  expect([asked.status, asked.assignedTo, asked.votes, asked.remarks]).toEqual([
    "open",
    "person:bob",
    [],
    [],
  ]);
  expect(effects).toEqual([]);
  const done = await port.interactions.approve(id, { hash, by: "person:bob" });
  expect(done.answers.map(({ answer }) => answer)).toEqual(["done"]);
});
