// Pains 6: a yes is bound to the exact action. One byte of arguments, schema, rules or tool less or more, and it is void.

import { expect, test } from "vitest";
import type { Gate } from "../../src/gate/create-gate.ts";
import type { GateOptions } from "../../src/gate/options.ts";
import { DECISIONS } from "../../src/model/decision.ts";
import type { CallAnswer } from "../../src/model/operation.ts";
import { NO_RULES, type Policy } from "../../src/policy/policy.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { AGENT, decisionIdOf, isApproval, PERSON, request } from "../support/port-world.ts";
import { type InboxWorld, onlyOpen, onStores, seen, yes } from "./inbox-world.ts";

const LIMIT = 1_000;

function bank(
  paid: string[],
  more: { limit?: number; version?: string; words?: string } = {},
): Tool {
  const { limit = LIMIT, version = "1", words = "Pays." } = more;
  return defineTool({
    name: "bank.pay",
    description: words,
    input: {
      type: "object",
      properties: { cents: { type: "integer", maximum: limit }, to: { type: "string" } },
      required: ["cents", "to"],
      additionalProperties: false,
    },
    safety: { effect: "external" },
    version,
    dryRun: ({ input }) => `pays ${String(input["cents"])}`,
    execute({ input }) {
      paid.push(String(input["cents"]));
      return "paid";
    },
  });
}

const asking: Policy = {
  version: "1",
  rules: [{ id: "pay", effect: "ask", tool: "bank.pay", reason: "Money moves." }],
};
const reworded: Policy = {
  version: "1",
  rules: [{ id: "pay", effect: "ask", tool: "bank.pay", reason: "Money moves!" }],
};

/** What a deploy brings, and what the reviewer must be told about it. */
const DEPLOYED: Readonly<
  Record<string, { over(paid: string[]): Partial<GateOptions>; told: RegExp }>
> = {
  "a digit of the schema": {
    over: (paid) => ({ tools: [bank(paid, { limit: LIMIT + 1 })] }),
    told: /inputSchema\.properties\.cents\.maximum was 1000, is 1001/,
  },
  "the tool's version": {
    over: (paid) => ({ tools: [bank(paid, { version: "2" })] }),
    told: /version was "1", is "2"/,
  },
  "a byte of its description": {
    over: (paid) => ({ tools: [bank(paid, { words: "Pays!" })] }),
    told: /description was "Pays\.", is "Pays!"/,
  },
  "a byte of a rule": {
    over: () => ({ policy: reworded }),
    told: /The rules were changed since: they were [0-9a-f]{12}, now they are [0-9a-f]{12}/,
  },
  "the version of the rules": {
    over: () => ({ policy: { ...asking, version: "2" } }),
    told: /version 2/,
  },
  "no rules any more": { over: () => ({ policy: NO_RULES }), told: /rules were changed/ },
  "who must say yes": {
    over: () => ({ review: [{ requires: [{ name: "review", count: 2 }] }] }),
    told: /Other people have to say yes now.*"count":1.*"count":2/,
  },
};

const PAY = { ...request("bank.pay", { cents: 100, to: "bob" }), key: "k" };

/** Approved by a process that goes away before it begins; answers what the next one makes of it. */
async function approvedThen(
  world: InboxWorld,
  over: Partial<GateOptions>,
): Promise<{ id: string; gate: Gate; recovered: readonly CallAnswer[] }> {
  const dying = world.again({
    at(point) {
      if (point === "S4.after") throw new Error("gone");
    },
  });
  const id = decisionIdOf(await dying.sessions.open({ id: "s-1", agent: AGENT }).call(PAY));
  world.tap.isApart = true;
  await expect(yes(dying, id)).rejects.toThrow("gone");
  world.tap.isApart = false;
  expect((await world.gate.decisions.get(id)).state).toBe("approved");
  world.clock.advance(60_000);
  const gate = await world.restart(over);
  const { decisions } = await gate.recover();
  return { id, gate, recovered: decisions.flatMap(({ answers }) => answers) };
}

onStores("a yes is bound to the action", (open) => {
  for (const [what, { over, told }] of Object.entries(DEPLOYED)) {
    test(`${what} changed after the yes: refused, and back to review with the difference [P6 I4]`, async () => {
      const paid: string[] = [];
      const world = await open({ tools: [bank(paid)], policy: asking });
      const { id, gate, recovered } = await approvedThen(world, over(paid));
      expect(recovered).toMatchObject([{ answer: "pending" }]);
      expect(recovered[0]?.text).toMatch(told);
      expect(paid).toEqual([]);
      // The old one is closed and leads to the new one, which shows what is different.
      const back = await onlyOpen(gate);
      expect(back.id).not.toBe(id);
      expect(back.metadata).toMatchObject({ cameBackFrom: id });
      expect(String(back.metadata["difference"])).toMatch(told);
      expect(await gate.decisions.get(id)).toMatchObject({ state: "failed" });
      expect((await gate.decisions.get(id)).executionError).toContain(back.id);
      const session = gate.sessions.open({ id: "s-1", agent: AGENT });
      expect(await session.call(PAY)).toMatchObject({ answer: "pending", decisionId: back.id });
      // The old yes is not a yes to the new one; a new one is.
      const { hash } = await gate.interactions.get(id);
      await expect(gate.interactions.approve(back.id, { hash, by: PERSON })).rejects.toMatchObject({
        code: "approval_void",
      });
      await yes(gate, back.id);
      if (what === "who must say yes") await yes(gate, back.id, "person:bob");
      expect(paid).toEqual(["100"]);
      expect(await session.resultOf("k")).toMatchObject({ answer: "done", text: "paid" });
    });
  }

  test("changed while the yes is on its way, in the same process: refused and back to review [P6]", async () => {
    const paid: string[] = [];
    const { gate, tap } = await open({ tools: [bank(paid)] });
    const id = decisionIdOf(await gate.sessions.open({ id: "s-1", agent: AGENT }).call(PAY));
    tap.isApart = true;
    tap.after = (change) => {
      if (!isApproval(change)) return;
      gate.tools.unregister("bank.pay");
      gate.tools.register(bank(paid, { limit: LIMIT - 1 }));
    };
    const { answers } = await yes(gate, id);
    expect(answers).toMatchObject([{ answer: "pending" }]);
    expect(answers[0]?.text).toContain("maximum was 1000, is 999");
    expect(paid).toEqual([]);
  });

  test("one byte of the stored arguments changed after the yes: refused for good, because nobody knows what was meant [P6 T3]", async () => {
    const paid: string[] = [];
    const { gate, tap } = await open({ tools: [bank(paid)] });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(PAY));
    tap.isApart = true;
    tap.after = async (change) => {
      if (!isApproval(change)) return;
      const raw = new TextDecoder().decode((await gate.decisions.get(id)).diff.raw);
      const forged = new TextEncoder().encode(raw.replace('"cents":100', '"cents":900'));
      await tap.tamper(DECISIONS, id, { raw: forged });
    };
    const { answers } = await gate.interactions.approve(id, await seen(gate, id));
    expect(answers).toMatchObject([{ answer: "failed" }]);
    expect(answers[0]?.text).toContain("not what was approved");
    expect(paid).toEqual([]);
    expect((await gate.decisions.get(id)).state).toBe("failed");
    expect(await gate.interactions.list()).toEqual([]);
  });

  test("nothing changed: it goes on, also in another process [P6]", async () => {
    const paid: string[] = [];
    const world = await open({ tools: [bank(paid)], policy: asking });
    const over = { tools: [bank(paid)], policy: structuredClone(asking) };
    const { recovered } = await approvedThen(world, over);
    expect(recovered).toMatchObject([{ answer: "done" }]);
    expect(paid).toEqual(["100"]);
  });
});
