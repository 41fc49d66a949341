// A lost outcome waits as long as it takes: silence does not say what happened.

import { expect, test } from "vitest";
import { INTERACTIONS } from "../../src/model/interaction.ts";
import { AGENT, approve, decisionIdOf, PERSON, request } from "../support/port-world.ts";
import {
  codeOf,
  counted,
  DAY,
  GIVE_UP,
  HAPPENED,
  lossy,
  type OpenWorld,
  OTHER,
  onlyOpen,
  onStores,
  REPEAT,
  seen,
} from "./inbox-world.ts";

async function lostFor(open: OpenWorld, days: number) {
  const far = lossy();
  const world = await open({ tools: [far.tool] });
  const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
  const id = decisionIdOf(await session.call(request("far.send", { what: "a" }, "a")));
  far.losses.left = 1;
  expect((await approve(world.gate, id))[0]?.answer).toBe("unknown");
  const question = await onlyOpen(world.gate);
  await world.gate.interactions.handOver(question.id, { by: PERSON, to: OTHER });
  world.clock.advance(days * DAY);
  return { world, far, session, id, question };
}

onStores("lost for long", (open) => {
  for (const found of [HAPPENED, GIVE_UP, REPEAT]) {
    for (const swept of [true, false]) {
      const when = swept ? "asked again" : "not asked again yet";
      test(`a person says after 31 days "${JSON.stringify(found)}", ${when}, and the session is undone [SH11]`, async () => {
        const { world, far, session, id, question } = await lostFor(open, 31);
        const { gate } = world;
        const by = swept ? PERSON : OTHER;
        if (swept) {
          const { expired, askedAgain } = await gate.interactions.sweep();
          expect({ expired, askedAgain }).toEqual({ expired: [], askedAgain: [question.id] });
          // It goes to everybody who may answer: the one it was handed to has not.
          expect(await onlyOpen(gate)).toMatchObject({ id: question.id, assignedTo: "" });
          expect((await counted(gate))["interaction.asked_again"]).toBe(1);
          expect(await gate.interactions.sweep()).toMatchObject({ askedAgain: [] });
        }
        await gate.interactions.settle(question.id, {
          ...(await seen(gate, question.id, by)),
          ...found,
        });
        const state = found === GIVE_UP ? "failed" : "executed";
        expect((await gate.decisions.get(id)).state).toBe(state);
        const report = await session.rollback(PERSON);
        expect(report.failed).toEqual([]);
        expect(far.sent).toEqual(found === REPEAT ? ["a", "a", "back a"] : ["a"]);
        expect(await gate.interactions.list()).toEqual([]);
      });
    }
  }

  test("after a year of silence it has been asked again and again, and is still open [SH11]", async () => {
    const { world, question } = await lostFor(open, 31);
    for (let months = 0; months < 12; months += 1) {
      expect((await world.gate.interactions.sweep()).askedAgain).toEqual([question.id]);
      world.clock.advance(31 * DAY);
    }
    expect(await onlyOpen(world.gate)).toMatchObject({ id: question.id, type: "connection_lost" });
  });

  test("a question about a lost outcome cannot be called off, only answered [SH11]", async () => {
    const { world, question } = await lostFor(open, 1);
    const off = world.gate.interactions.cancel(question.id, { by: OTHER, reason: "no time" });
    expect(await codeOf(off)).toBe("illegal_transition");
    expect((await onlyOpen(world.gate)).id).toBe(question.id);
  });

  test("one that expired under an earlier version can still be settled, once [SH11]", async () => {
    const { world, id, question } = await lostFor(open, 31);
    const { gate, tap } = world;
    const before = { status: "canceled", outcome: "expired", assigned_to: "" };
    await tap.tamper(INTERACTIONS, question.id, before);
    await tap.tamper(INTERACTIONS, question.id, { due_at: null });
    const answer = { ...(await seen(gate, question.id)), ...HAPPENED };
    expect((await gate.interactions.settle(question.id, answer)).answer).toBe("done");
    expect((await gate.decisions.get(id)).state).toBe("executed");
    expect(await codeOf(gate.interactions.settle(question.id, answer))).toBe("already_answered");
  });
});
