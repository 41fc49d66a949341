// More than one has to say yes: how many, who, and each of them once.

import { expect, test } from "vitest";
import type { Requirement } from "../../src/model/interaction.ts";
import { AGENT, decisionIdOf, openGate, PERSON } from "../support/port-world.ts";
import { answers, codeOf, no, OTHER, onStores, seen, set, yes } from "./inbox-world.ts";

const EVE = "person:eve";
const requiring = (requires: Requirement) => ({ review: [{ requires }] });
const TWO = requiring([{ name: "review", count: 2 }]);

onStores("n of m", (open) => {
  test("two have to say yes: nothing happens before the second, also across a restart", async () => {
    const world = await open(TWO);
    const session = world.gate.sessions.open({ agent: AGENT });
    const id = decisionIdOf(await session.stage([set("a", 1), set("b", 2)]));
    const first = await yes(world.gate, id, PERSON);
    expect(first.interaction.status).toBe("open");
    expect(first.missing).toEqual([{ name: "review", count: 1 }]);
    expect(answers(first.answers)).toEqual(["pending", "pending"]);
    // The same person on another screen is still one person.
    expect((await yes(world.gate, id, PERSON)).missing).toEqual([{ name: "review", count: 1 }]);
    expect(world.effects).toEqual([]);
    expect((await world.gate.decisions.get(id)).state).toBe("pending_ml");
    const later = await world.restart();
    const second = await yes(later, id, OTHER);
    expect(second.missing).toEqual([]);
    expect(answers(second.answers)).toEqual(["done", "done"]);
    expect(world.effects).toHaveLength(2);
    expect((await later.interactions.get(id)).votes.map(({ by }) => by)).toEqual([PERSON, OTHER]);
    expect(await codeOf(yes(later, id, EVE))).toBe("already_answered");
  });

  test("one no is a no, whatever was said before", async () => {
    const { gate, effects } = await open(TWO);
    const id = decisionIdOf(await gate.sessions.open({ agent: AGENT }).call(set("a", 1)));
    await yes(gate, id, PERSON);
    await no(gate, id, OTHER);
    expect(await codeOf(yes(gate, id, EVE))).toBe("already_answered");
    expect((await gate.decisions.get(id)).state).toBe("rejected_ml");
    expect(effects).toEqual([]);
  });

  test("distinct people per factor, from those who may give it, and nobody counts twice", async () => {
    const { gate, effects } = await open(
      requiring([
        { name: "security", count: 1, from: [PERSON, OTHER] },
        { name: "business", count: 1, from: [OTHER, EVE] },
      ]),
    );
    const session = gate.sessions.open({ agent: AGENT });
    const id = decisionIdOf(await session.call(set("a", 1)));
    expect(await codeOf(yes(gate, id, "person:max"))).toBe("not_allowed");
    const given = { ...(await seen(gate, id, EVE)), factor: "security" };
    expect(await codeOf(gate.interactions.approve(id, given))).toBe("not_allowed");
    // Bob could give either; he gives one, and the other one is not his any more.
    const bob = { ...(await seen(gate, id, OTHER)), factor: "business" };
    expect((await gate.interactions.approve(id, bob)).missing).toMatchObject([
      { name: "security" },
    ]);
    const again = { ...bob, factor: "security" };
    expect((await gate.interactions.approve(id, again)).interaction.status).toBe("open");
    expect(await codeOf(yes(gate, id, EVE))).toBe("not_allowed");
    expect(effects).toEqual([]);
    await yes(gate, id, PERSON);
    expect(effects).toHaveLength(1);
    const { votes } = await gate.interactions.get(id);
    expect(votes).toEqual([
      { by: OTHER, factor: "business" },
      { by: PERSON, factor: "security" },
    ]);
  });

  test("votes at the same moment from two processes are all counted, and executed once", async () => {
    const world = await open(requiring([{ name: "review", count: 6 }]));
    const other = await world.restart();
    const session = world.gate.sessions.open({ agent: AGENT });
    const id = decisionIdOf(await session.call(set("a", 1)));
    const { hash } = await other.interactions.get(id);
    const voters = Array.from({ length: 9 }, (_, n) => `person:${n}`);
    const all = await Promise.allSettled(
      voters.map((by, n) =>
        (n % 2 === 0 ? world.gate : other).interactions.approve(id, { hash, by }),
      ),
    );
    expect(all.filter(({ status }) => status === "fulfilled")).toHaveLength(6);
    expect((await other.interactions.get(id)).votes).toHaveLength(6);
    expect(world.effects).toHaveLength(1);
  });
});

test("rules that nobody can meet are told at the start, not to the first agent", () => {
  const impossible = requiring([{ name: "review", count: 2, from: [PERSON] }]);
  expect(() => openGate(impossible)).toThrow(/needs 2 people and names only 1/);
});
