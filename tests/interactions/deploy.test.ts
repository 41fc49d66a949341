// Pains 12: a pause on version 1 of a tool outlives the deploy of version 2. Nothing is lost, nothing runs unseen under new code.

import { expect, test } from "vitest";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { Tool } from "../../src/tools/tool.ts";
import type { JsonObject } from "../../src/util/json.ts";
import { AGENT, decisionIdOf, PERSON, request, rules } from "../support/port-world.ts";
import { answers, OTHER, onlyOpen, onStores, seen, yes } from "./inbox-world.ts";

interface Version {
  readonly version: string;
  readonly continues?: readonly string[];
  readonly properties?: JsonObject;
  readonly required?: readonly string[];
  readonly words?: string;
  readonly destructive?: boolean;
}
const PROPERTIES: JsonObject = { to: { type: "string" }, cents: { type: "integer" } };

function bank(paid: string[], version: Version): Tool {
  const { words = "Pays.", properties = PROPERTIES, required = ["to", "cents"] } = version;
  return defineTool({
    name: "bank.pay",
    description: words,
    input: { type: "object", properties, required: [...required], additionalProperties: false },
    safety: { effect: "external", destructive: version.destructive ?? false },
    version: version.version,
    ...(version.continues === undefined ? {} : { continues: version.continues }),
    execute({ input }) {
      paid.push(`${version.version} ${JSON.stringify(input)}`);
      return `paid by ${version.version}`;
    },
  });
}

const PAY = { ...request("bank.pay", { to: "bob", cents: 5 }), key: "k" };
const V1: Version = { version: "1" };
const PAID = '{"cents":5,"to":"bob"}';

/** Goes on under version 2 without being asked about again. */
const COMPATIBLE: Readonly<Record<string, Version>> = {
  "a field more that may be left out": {
    version: "2",
    continues: ["1"],
    properties: { ...PROPERTIES, note: { type: "string" } },
  },
  "other words": { version: "2", continues: ["0", "1"], words: "Pays somebody." },
  "a limit that the input keeps to": {
    version: "2",
    continues: ["1"],
    properties: { ...PROPERTIES, cents: { type: "integer", maximum: 10 } },
  },
};

/** Goes back to review, whatever its author declares. */
const INCOMPATIBLE: Readonly<Record<string, { next: Version; told: string; fits: boolean }>> = {
  "no word about continuing": {
    next: { version: "2" },
    told: 'version was "1", is "2"',
    fits: true,
  },
  "continues another version": {
    next: { version: "3", continues: ["2"] },
    told: 'version was "1", is "3"',
    fits: true,
  },
  "another effect": {
    next: { version: "2", continues: ["1"], destructive: true },
    told: "metadata.destructive was false, is true",
    fits: true,
  },
  "a field more that must be there": {
    next: {
      version: "2",
      continues: ["1"],
      properties: { ...PROPERTIES, currency: { type: "string" } },
      required: ["to", "cents", "currency"],
    },
    told: 'inputSchema.required.2 was not there, is "currency"',
    fits: false,
  },
  "a limit below the input": {
    next: {
      version: "2",
      continues: ["1"],
      properties: { ...PROPERTIES, cents: { type: "integer", maximum: 4 } },
    },
    told: "inputSchema.properties.cents.maximum was not there, is 4",
    fits: false,
  },
};

onStores("a pause that survives deploys", (open) => {
  for (const [what, next] of Object.entries(COMPATIBLE)) {
    test(`version 2 that continues version 1 goes on: ${what} [P12]`, async () => {
      const paid: string[] = [];
      const world = await open({ tools: [bank(paid, V1)] });
      const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
      const id = decisionIdOf(await session.call(PAY));
      const later = await world.restart({ tools: [bank(paid, next)] });
      expect(answers((await yes(later, id)).answers)).toEqual(["done"]);
      expect(paid).toEqual([`2 ${PAID}`]);
      // What was executed is on record as what it was: version 2.
      const [operation] = await later.operations.listBySession("s-1");
      expect(operation?.input).toBe(PAID);
    });
  }

  for (const [what, { next, told, fits }] of Object.entries(INCOMPATIBLE)) {
    test(`an incompatible version 2 sends it back to review with the difference: ${what} [P12]`, async () => {
      const paid: string[] = [];
      const world = await open({ tools: [bank(paid, V1)] });
      const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
      const id = decisionIdOf(await session.call(PAY));
      const gate = await world.restart({ tools: [bank(paid, next)] });
      const { answers: given } = await yes(gate, id);
      expect(given).toMatchObject([{ answer: "pending" }]);
      expect(given[0]?.text).toContain(told);
      expect(paid).toEqual([]);
      const back = await onlyOpen(gate);
      expect(back.metadata).toMatchObject({ cameBackFrom: id });
      expect(String(back.metadata["difference"])).toContain(told);
      const agent = gate.sessions.open({ id: "s-1", agent: AGENT });
      expect(await agent.resultOf("k")).toMatchObject({ answer: "pending", decisionId: back.id });
      const { answers: second } = await yes(gate, back.id);
      // An approval of the new version runs it; an input that does not fit never runs, even if approved.
      expect(answers(second)).toEqual([fits ? "done" : "failed"]);
      expect(paid).toEqual(fits ? [`${next.version} ${PAID}`] : []);
    });
  }

  test("a schema that no longer accepts the input: back to review, edited to fit, and executed [P12]", async () => {
    const paid: string[] = [];
    const world = await open({ tools: [bank(paid, V1)] });
    const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(PAY));
    const next = INCOMPATIBLE["a field more that must be there"]?.next ?? V1;
    const gate = await world.restart({ tools: [bank(paid, next)] });
    await yes(gate, id);
    const back = await onlyOpen(gate);
    const shown = await gate.interactions.shown(back.id);
    expect(JSON.stringify(shown?.preview.dryRun)).toContain("the input does not fit");
    const inputs = { 0: { to: "bob", cents: 5, currency: "EUR" } };
    const edit = { ...(await seen(gate, back.id)), inputs };
    const edited = await gate.interactions.edit(back.id, edit);
    if (!edited.edited) throw new Error(edited.text);
    await yes(gate, edited.interaction.id, OTHER);
    expect(paid).toEqual(['2 {"cents":5,"currency":"EUR","to":"bob"}']);
    // Three decisions, one execution; the agent asks with its old key and gets the end of it.
    const agent = gate.sessions.open({ id: "s-1", agent: AGENT });
    expect(await agent.resultOf("k")).toMatchObject({
      answer: "done",
      text: expect.stringMatching(/^paid by 2\nNote: person:ada changed your call/),
    });
    const states = (await gate.decisions.listBySession("s-1")).map(({ state }) => state);
    expect(states).toEqual(["failed", "rejected_ml", "executed"]);
  });

  test("the tool is gone: the pending call is not lost, and goes on where the tool is [P12]", async () => {
    const paid: string[] = [];
    const world = await open({ tools: [bank(paid, V1)] });
    const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(PAY));
    const without = await world.restart({ tools: [] });
    expect(await onlyOpen(without)).toMatchObject({ id, status: "open" });
    const { answers: given, outcome } = await yes(without, id);
    expect([outcome, given]).toMatchObject(["held", [{ answer: "pending", decisionId: id }]]);
    expect(given[0]?.text).toContain('This process does not have "bank.pay"');
    expect((await without.decisions.get(id)).state).toBe("approved");
    world.clock.advance(60_000);
    expect(await without.recover()).toMatchObject({ left: [{ id }], decisions: [] });
    // The process that has it carries it on, once.
    const back = await world.restart({ tools: [bank(paid, V1)] });
    await Promise.all([back.recover(), world.gate.recover()]);
    expect(paid).toEqual([`1 ${PAID}`]);
    expect((await back.decisions.get(id)).state).toBe("executed");
  });

  test("the rules became stricter: a denial binds what is pending, and is told with its reason [P12]", async () => {
    const paid: string[] = [];
    const world = await open({ tools: [bank(paid, V1)] });
    const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(PAY));
    const denying = rules({ id: "no", effect: "deny", tool: "bank.*", reason: "closed for now" });
    const gate = await world.restart({ policy: denying });
    const { answers: given } = await yes(gate, id);
    expect(given).toMatchObject([{ answer: "failed" }]);
    expect(given[0]?.text).toContain("closed for now");
    expect(paid).toEqual([]);
    expect((await gate.decisions.get(id)).state).toBe("failed");
    expect(await gate.interactions.list()).toEqual([]);
    const agent = gate.sessions.open({ id: "s-1", agent: AGENT });
    expect((await agent.resultOf("k"))?.text).toContain("closed for now");
  });

  test("a bundle with one denied call does not begin [P12]", async () => {
    const world = await open();
    const { effects } = world;
    const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(
      await session.stage([
        request("world.set", { key: "a", value: 1 }),
        request("world.blind", { key: "b" }),
      ]),
    );
    const denying = rules({ id: "no", effect: "deny", tool: "world.blind", reason: "closed" });
    const gate = await world.restart({ policy: denying });
    expect(answers((await yes(gate, id, PERSON)).answers)).toEqual(["failed", "failed"]);
    expect(effects).toEqual([]);
  });

  test("stricter about who must say yes: one yes under the old rules is asked about under the new ones [P12]", async () => {
    const world = await open();
    const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call({ ...request("world.blind", { a: 1 }), key: "k" }));
    const review = [{ requires: [{ name: "review", count: 2 }] }];
    const gate = await world.restart({ review });
    expect(answers((await yes(gate, id)).answers)).toEqual(["pending"]);
    const back = await onlyOpen(gate);
    expect(back.requires).toMatchObject([{ count: 2 }]);
    await yes(gate, back.id, PERSON);
    expect(world.effects).toEqual([]);
    await yes(gate, back.id, "person:bob");
    expect(world.effects).toHaveLength(1);
  });
});
