// Pains 4: equal calls that wait at the same time are different questions.

import { expect, test } from "vitest";
import { defineTool } from "../../src/tools/define-tool.ts";
import { createDice } from "../support/dice.ts";
import { AGENT, decisionIdOf, PERSON, request } from "../support/port-world.ts";
import { counted, FULL, no, OTHER, onStores, yes } from "./inbox-world.ts";

const EQUAL = 20;
const SEEDS = FULL ? 50 : 3;

/** Every call is alike; only the call id that it is made under tells them apart. */
function stamp() {
  const stamped: string[] = [];
  const tool = defineTool({
    name: "office.stamp",
    description: "Stamps a form.",
    input: { type: "object", properties: { form: { type: "string" } }, required: ["form"] },
    safety: { effect: "external" },
    execute({ callId }) {
      stamped.push(callId);
      return `stamped ${callId}`;
    },
  });
  return { stamped, tool };
}

onStores("twenty equal calls", (open) => {
  test("answered in any order by two people, partly, across restarts: each answer hits its own [P4]", async () => {
    for (let seed = 0; seed < SEEDS; seed += 1) {
      const dice = createDice(`equal ${seed}`);
      const { stamped, tool } = stamp();
      const world = await open({ tools: [tool] });
      const keys = Array.from({ length: EQUAL }, (_, n) => `call-${n}`);
      const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
      const asked = await Promise.all(
        keys.map((key) => session.call({ ...request(tool.name, { form: "A" }, key), key })),
      );
      const ids = asked.map(decisionIdOf);
      expect(new Set(ids).size).toBe(EQUAL);
      const hashes = await Promise.all(ids.map((id) => world.gate.interactions.get(id)));
      expect(new Set(hashes.map(({ hash }) => hash)).size).toBe(EQUAL);

      const said = new Map<string, "done" | "denied" | "pending">();
      let gate = world.gate;
      const waiting = [...keys.entries()];
      /** In rounds; between them the process goes away. Some are never answered. */
      while (waiting.length > 4) {
        const round = Array.from({ length: 1 + dice.below(4) }, () => {
          const [taken = [0, ""] as [number, string]] = waiting.splice(
            dice.below(waiting.length),
            1,
          );
          return taken;
        });
        const persons = [PERSON, OTHER];
        const rounds = round.map(([place, key]) => {
          const id = ids[place] ?? "";
          const isYes = dice.below(3) > 0;
          said.set(key, isYes ? "done" : "denied");
          return isYes ? yes(gate, id, dice.pick(persons)) : no(gate, id, dice.pick(persons), key);
        });
        await Promise.all(rounds);
        gate = dice.below(4) === 0 ? await world.restart() : world.again();
      }
      for (const [, key] of waiting) said.set(key, "pending");

      const expected = keys.filter((key) => said.get(key) === "done");
      expect(stamped.toSorted()).toEqual(expected.toSorted());
      const agent = gate.sessions.open({ id: "s-1", agent: AGENT });
      for (const key of keys) {
        const result = await agent.resultOf(key);
        expect(result?.answer, key).toBe(said.get(key));
        if (result?.answer === "done") expect(result.text).toBe(`stamped ${key}`);
        // The reason of this very no, not of its neighbour's.
        if (result?.answer === "denied") expect(result.text).toContain(` ${key} `);
      }
      const open_ = await gate.interactions.list();
      expect(open_.map(({ callId }) => callId)).toEqual(waiting.map(([, key]) => key));
    }
  });

  test("a no to one call leaves its siblings of the same message waiting [P4]", async () => {
    const { stamped, tool } = stamp();
    const { gate } = await open({ tools: [tool] });
    const session = gate.sessions.open({ agent: AGENT });
    const ids: string[] = [];
    for await (const { answer } of session.callAll(
      ["a", "b", "c"].map((id) => request(tool.name, { form: "A" }, id)),
    )) {
      ids.push(decisionIdOf(answer));
    }
    await no(gate, ids[1] ?? "");
    await yes(gate, ids[2] ?? "");
    expect(stamped).toEqual(["c"]);
    expect(await gate.interactions.list()).toMatchObject([{ id: ids[0], status: "open" }]);
    await yes(gate, ids[0] ?? "");
    expect(stamped).toEqual(["c", "a"]);
  });

  test("whoever comes back sees the whole list, page by page, and nobody was told twice [R14]", async () => {
    const { tool } = stamp();
    const world = await open({ tools: [tool] });
    const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    const ids: string[] = [];
    for (let n = 0; n < 130; n += 1) {
      ids.push(decisionIdOf(await session.call(request(tool.name, { form: "A" }, `c-${n}`))));
    }
    for (const gate of [world.gate, await world.restart()]) {
      const first = await gate.interactions.list({ limit: 100 });
      const rest = await gate.interactions.list({ after: first.at(-1)?.ord ?? 0 });
      expect(first).toHaveLength(100);
      expect([...first, ...rest].map(({ id }) => id)).toEqual(ids);
      expect((await counted(gate))["interaction.opened"]).toBe(ids.length);
    }
  });
});
