// I29: the same key is the same call. Another content under it is reported as a mistake and never gets the other's answer.

import { expect, test } from "vitest";
import { askUserTool } from "../../src/gate/inbox.ts";
import type { Session } from "../../src/gate/session.ts";
import type { CallAnswer, CallRequest } from "../../src/model/operation.ts";
import { AGENT, isIntent, request, rules } from "../support/port-world.ts";
import { type InboxWorld, onlyOpen, onStores, seen, set, yes } from "./inbox-world.ts";

const keyed = (value: number, key = "k"): CallRequest => ({ ...set("a", value), key });
const allowSet = rules({ id: "set", effect: "allow", tool: "world.set", reason: "a test" });
const isPreview = ({ steps }: Parameters<InboxWorld["tap"]["before"]>[0]) =>
  steps.some(({ op, table }) => op === "insert" && table.name === "interactions");

/** Both callers have looked for the key and found nothing, before either of them writes. */
async function atOnce(
  { tap }: InboxWorld,
  isWrite: InboxWorld["tap"]["before"] extends (change: infer Change) => unknown
    ? (change: Change) => boolean
    : never,
  calls: readonly (() => Promise<CallAnswer>)[],
): Promise<readonly CallAnswer[]> {
  let arrived = 0;
  const { promise: all, resolve } = Promise.withResolvers<void>();
  tap.before = async (change) => {
    if (!isWrite(change)) return;
    arrived += 1;
    if (arrived === calls.length) resolve();
    await all;
  };
  const answers = await Promise.all(calls.map((call) => call()));
  tap.before = () => {};
  expect(arrived).toBe(calls.length);
  return answers;
}

function sessions(world: InboxWorld, count: number): readonly Session[] {
  const session = { id: "s-1", agent: AGENT };
  return Array.from({ length: count }, () => world.again().sessions.open(session));
}

onStores("keyed calls", (open) => {
  test("same key, same answer: one question, one execution, in every process [I29]", async () => {
    const world = await open();
    const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    const first = await session.call(keyed(1));
    expect(await session.call(keyed(1))).toEqual(first);
    const later = await world.restart();
    const again = later.sessions.open({ id: "s-1", agent: AGENT });
    expect(await again.call(keyed(1))).toEqual(first);
    // As text, and with its members in another order, it is the same content.
    expect(await again.call({ ...keyed(1), input: '{"value":1, "key":"a"}' })).toEqual(first);
    await yes(later, (await onlyOpen(later)).id);
    const done = await session.call(keyed(1));
    expect(done).toMatchObject({ answer: "done", text: "set" });
    expect(await again.call(keyed(1))).toEqual(done);
    expect(world.effects).toHaveLength(1);
    // In another session the key is another one.
    const other = world.gate.sessions.open({ id: "s-2", agent: AGENT });
    expect((await other.call(keyed(1))).answer).toBe("pending");
  });

  test("an estimate is not part of the content, and a text that is no JSON is no reason to throw [I29]", async () => {
    const { gate, effects } = await open();
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const keen = (estimate: number, value = 1) => ({
      ...request("world.keen", { key: "a", value, _confidence: estimate }),
      key: "k",
    });
    const first = await session.call(keen(90));
    expect(first.answer).toBe("pending");
    expect(await session.call(keen(95))).toEqual(first);
    for (const other of [keen(95, 2), { ...keen(90), input: "{" }, { ...keen(90), input: "" }]) {
      expect(await session.call(other)).toMatchObject({ answer: "failed" });
    }
    await yes(gate, (await onlyOpen(gate)).id);
    expect(effects).toHaveLength(1);
  });

  for (const [lane, policy] of [
    ["asked about", undefined],
    ["allowed", allowSet],
  ] as const) {
    test(`other content under the same key is refused, before and after it was done (${lane}) [I29]`, async () => {
      const world = await open(policy === undefined ? {} : { policy });
      const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
      await session.call(keyed(1));
      const others: readonly CallRequest[] = [
        keyed(2),
        { ...keyed(1), input: { key: "b", value: 1 } },
        { ...keyed(1), tool: "world.blind" },
        { ...keyed(1), tool: "world.look", input: { key: "a" } },
      ];
      const refused = async () => {
        for (const other of others) {
          const answer = await session.call(other);
          expect(answer.answer).toBe("failed");
          expect(answer.text).toContain("this key was used for another call");
        }
      };
      await refused();
      for (const { id } of await world.gate.interactions.list()) await yes(world.gate, id);
      await refused();
      expect(world.effects).toEqual(['world.set {"key":"a","value":1}']);
      expect(world.reads).toEqual([]);
    });

    test(`the same call from four ports at once: once (${lane}) [I29]`, async () => {
      const world = await open(policy === undefined ? {} : { policy });
      const calls = sessions(world, 4).map((one) => () => one.call(keyed(1)));
      await atOnce(world, policy === undefined ? isPreview : isIntent, calls);
      if (policy === undefined) await yes(world.gate, (await onlyOpen(world.gate)).id);
      expect(world.effects).toEqual(['world.set {"key":"a","value":1}']);
      const answers = await Promise.all(calls.map((call) => call()));
      expect(new Set(answers.map(({ answer, text }) => `${answer} ${text}`))).toEqual(
        new Set(["done set"]),
      );
      // Nothing waits for a question that will not be asked.
      expect(await world.gate.interactions.list()).toEqual([]);
    });

    test(`different calls under one key at once: one of them, and the others are told (${lane}) [I29]`, async () => {
      const world = await open(policy === undefined ? {} : { policy });
      const calls = sessions(world, 3).map((one, n) => () => one.call(keyed(n + 1)));
      const answers = await atOnce(world, policy === undefined ? isPreview : isIntent, calls);
      const told = answers.filter(({ text }) => text.includes("this key was used for another"));
      expect(told).toHaveLength(2);
      expect(told.map(({ answer }) => answer)).toEqual(["failed", "failed"]);
      for (const { id } of await world.gate.interactions.list()) await yes(world.gate, id);
      expect(world.effects).toHaveLength(1);
    });
  }

  test("a bundle is the same only with all its keys; a key that is taken is not taken over [I29]", async () => {
    const world = await open();
    const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    const bundle = [keyed(1, "k1"), { ...set("b", 2), key: "k2" }];
    const first = await session.stage(bundle);
    expect(await session.stage(bundle)).toEqual(first);
    const mixed = [
      [{ ...set("c", 3), key: "new" }, bundle[1] as CallRequest],
      [bundle[0] as CallRequest, { ...set("c", 3), key: "new" }],
      [bundle[0] as CallRequest, { ...set("b", 3), key: "k2" }],
    ];
    for (const other of mixed) {
      expect(await session.stage(other)).toMatchObject({ answer: "failed" });
    }
    expect(await world.gate.interactions.list()).toHaveLength(1);
    await yes(world.gate, (await onlyOpen(world.gate)).id);
    expect(world.effects).toHaveLength(2);
    expect(await session.resultOf("k2")).toMatchObject({ answer: "done" });
    expect(await session.resultOf("new")).toBeUndefined();
  });

  test("a question and a call do not share a key: neither answers for the other [I29]", async () => {
    const world = await open();
    world.gate.tools.register(askUserTool());
    const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    const asked = await session.ask({ callId: "k", text: "How many?" });
    await world.gate.interactions.answer(asked.interactionId, {
      ...(await seen(world.gate, asked.interactionId)),
      answer: "do it",
    });
    const refused = await session.call(keyed(1));
    expect(refused).toMatchObject({ answer: "failed" });
    const tool = (question: string) => ({ ...request("ask_user", { question }, "c-9"), key: "k" });
    expect(await session.call(tool("How many?"))).toMatchObject({ answer: "done", text: "do it" });
    expect(await session.call(tool("Who?"))).toMatchObject({ answer: "failed" });
    const { key: _, ...unkeyed } = tool("Where?");
    expect(await session.call({ ...unkeyed, callId: "k" })).toMatchObject({ answer: "failed" });
    expect(world.effects).toEqual([]);
  });
});
