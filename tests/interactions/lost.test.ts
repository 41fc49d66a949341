// A lost connection is a question: what a person found out settles it, once, and the rest goes on from there.

import { expect, test } from "vitest";
import type { FoundOut } from "../../src/gate/inbox.ts";
import type { Interaction } from "../../src/model/interaction.ts";
import { AGENT, approve, decisionIdOf, PERSON, request, rules } from "../support/port-world.ts";
import {
  answers,
  codeOf,
  GIVE_UP,
  HAPPENED,
  type InboxWorld,
  lossy,
  type OpenWorld,
  OTHER,
  onlyOpen,
  onStores,
  REPEAT,
  seen,
  yes,
} from "./inbox-world.ts";

const send = (what: string) => ({ ...request("far.send", { what }, what), key: what });

async function settle(gate: InboxWorld["gate"], id: string, found: FoundOut, by = PERSON) {
  return gate.interactions.settle(id, { ...(await seen(gate, id, by)), ...found });
}

/** One call, approved or allowed by the rules, whose answer gets lost. */
async function lostOne(open: OpenWorld, lane: "approved" | "allowed") {
  const far = lossy();
  const policy = rules({ id: "f", effect: "allow", tool: "far.send", reason: "a test" });
  const world = await open({ tools: [far.tool], ...(lane === "allowed" ? { policy } : {}) });
  const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
  far.losses.left = 1;
  const first = await session.call(send("a"));
  const told =
    first.answer === "pending" ? (await approve(world.gate, first.decisionId))[0] : first;
  expect(told?.answer).toBe("unknown");
  const question = await onlyOpen(world.gate);
  return { world, far, session, question, decided: decided(first) };
}

function decided(answer: { answer: string; decisionId?: string }): string | undefined {
  return answer.answer === "pending" ? answer.decisionId : undefined;
}

/** Three calls as one decision, of which the second gets lost. */
async function lostInBundle(open: OpenWorld) {
  const far = lossy();
  const world = await open({ tools: [far.tool] });
  const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
  const id = decisionIdOf(await session.stage([send("a"), send("b"), send("c")]));
  world.tap.after = ({ steps }) => {
    const isSecond = steps.some((step) => step.op === "insert" && step.id === `${id}.1`);
    if (isSecond) far.losses.left = 1;
  };
  expect(answers((await yes(world.gate, id)).answers)).toEqual(["done", "unknown"]);
  world.tap.after = () => {};
  return { world, far, session, id, question: await onlyOpen(world.gate) };
}

function checkQuestion(question: Interaction): void {
  expect(question).toMatchObject({ type: "connection_lost", status: "open", decisionId: "" });
  expect(question.displayText).toContain("It is not known whether far.send happened");
  expect(question.pendingTool).toMatchObject({ tool_name: "far.send" });
}

onStores("lost outcomes", (open) => {
  for (const lane of ["approved", "allowed"] as const) {
    test(`${lane} and lost: it happened, as a person found out`, async () => {
      const { world, far, session, question, decided: id } = await lostOne(open, lane);
      checkQuestion(question);
      expect(await session.call(send("a"))).toMatchObject({ answer: "unknown" });
      const gate = await world.restart();
      const found = { ...HAPPENED, output: "receipt 7" };
      expect(await settle(gate, question.id, found)).toMatchObject({
        answer: "done",
        text: "receipt 7",
      });
      expect(await session.call(send("a"))).toMatchObject({ answer: "done", text: "receipt 7" });
      expect(far.sent).toEqual(["a"]);
      if (id !== undefined) expect((await gate.decisions.get(id)).state).toBe("executed");
      expect(await gate.interactions.list()).toEqual([]);
    });

    test(`${lane} and lost: it did not happen and is repeated, once`, async () => {
      const { world, far, session, question, decided: id } = await lostOne(open, lane);
      const gate = await world.restart();
      expect(await settle(gate, question.id, REPEAT)).toMatchObject({ answer: "done" });
      expect(far.sent).toEqual(["a", "a"]);
      expect(await session.call(send("a"))).toMatchObject({ answer: "done", text: "sent" });
      if (id !== undefined) expect((await gate.decisions.get(id)).state).toBe("executed");
      const [operation] = await gate.operations.listBySession("s-1");
      expect(operation).toMatchObject({ attempt: 2, status: "success" });
    });

    test(`${lane} and lost: given up, and the agent is told that it did not happen`, async () => {
      const { world, far, session, question, decided: id } = await lostOne(open, lane);
      const gate = await world.restart();
      expect(await settle(gate, question.id, GIVE_UP)).toMatchObject({ answer: "failed" });
      const told = await session.call(send("a"));
      expect(told.answer).toBe("failed");
      expect(told.text).toContain(`It did not happen: ${PERSON} looked`);
      expect(far.sent).toEqual(["a"]);
      if (id !== undefined) expect((await gate.decisions.get(id)).state).toBe("failed");
    });

    test(`${lane} and lost: settled twice or on another hash changes nothing`, async () => {
      const { world, far, question } = await lostOne(open, lane);
      const { gate } = world;
      for (const found of [HAPPENED, REPEAT, GIVE_UP]) {
        const wrong = { hash: "0".repeat(64), by: PERSON, ...found };
        expect(await codeOf(gate.interactions.settle(question.id, wrong))).toBe("approval_void");
      }
      expect(await onlyOpen(gate)).toEqual(question);
      expect(far.sent).toEqual(["a"]);
      await settle(gate, question.id, HAPPENED);
      for (const found of [HAPPENED, REPEAT, GIVE_UP]) {
        await expect(settle(gate, question.id, found, OTHER)).rejects.toMatchObject({
          code: "already_answered",
          details: { by: PERSON, outcome: "answered" },
        });
      }
      expect(far.sent).toEqual(["a"]);
      expect(await gate.interactions.get(question.id)).toMatchObject({ answer: "happened" });
    });
  }

  test("two people settle it at the same moment, in every mixture: one answer counts, at most one repeat", async () => {
    const found = [HAPPENED, REPEAT, GIVE_UP];
    for (const mine of found) {
      for (const theirs of found) {
        const { world, far, question } = await lostOne(open, "approved");
        const other = await world.restart();
        const both = await Promise.allSettled([
          settle(world.gate, question.id, mine),
          settle(other, question.id, theirs, OTHER),
        ]);
        expect(both.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
        const won = both[0]?.status === "fulfilled" ? mine : theirs;
        expect(far.sent).toEqual(won === REPEAT ? ["a", "a"] : ["a"]);
        expect(await other.interactions.list()).toEqual([]);
      }
    }
  });

  test("repeated and lost again: a new question, and the old answer does not fit it", async () => {
    const { world, far, question } = await lostOne(open, "approved");
    const { gate } = world;
    far.losses.left = 1;
    expect(await settle(gate, question.id, REPEAT)).toMatchObject({ answer: "unknown" });
    const second = await onlyOpen(gate);
    expect(second.id).not.toBe(question.id);
    expect(second.hash).not.toBe(question.hash);
    const stale = { hash: question.hash, by: PERSON, ...REPEAT };
    expect(await codeOf(gate.interactions.settle(second.id, stale))).toBe("approval_void");
    expect(far.sent).toEqual(["a", "a"]);
    expect(await settle(gate, second.id, HAPPENED)).toMatchObject({ answer: "done" });
    expect(far.sent).toEqual(["a", "a"]);
  });

  test("in a bundle, it happened: the rest goes on from there, and what was done is not done again", async () => {
    const { world, far, session, id, question } = await lostInBundle(open);
    checkQuestion(question);
    expect(far.sent).toEqual(["a", "b"]);
    // Neither a recovery nor time goes past an open question.
    world.clock.advance(3_600_000);
    const gate = await world.restart();
    await gate.recover();
    expect(far.sent).toEqual(["a", "b"]);
    await settle(gate, question.id, HAPPENED);
    expect(far.sent).toEqual(["a", "b", "c"]);
    expect((await gate.decisions.get(id)).state).toBe("executed");
    const results = await Promise.all(["a", "b", "c"].map((key) => session.resultOf(key)));
    expect(results.map((result) => result?.answer)).toEqual(["done", "done", "done"]);
  });

  test("in a bundle, repeated: that call once more, then the rest", async () => {
    const { world, far, id, question } = await lostInBundle(open);
    const gate = await world.restart();
    await settle(gate, question.id, REPEAT);
    expect(far.sent).toEqual(["a", "b", "b", "c"]);
    expect((await gate.decisions.get(id)).state).toBe("executed");
  });

  test("in a bundle, given up: what was done before is undone, and the whole has failed", async () => {
    const { world, far, session, id, question } = await lostInBundle(open);
    const gate = await world.restart();
    await settle(gate, question.id, GIVE_UP);
    expect(far.sent).toEqual(["a", "b", "back a"]);
    expect((await gate.decisions.get(id)).state).toBe("failed");
    const results = await Promise.all(["a", "b", "c"].map((key) => session.resultOf(key)));
    expect(results.map((result) => result?.answer)).toEqual(["failed", "failed", "failed"]);
  });

  test("while everything is stopped nothing is repeated, and the question stays", async () => {
    const { world, far, question } = await lostOne(open, "approved");
    const { gate } = world;
    await gate.killSwitch.stop("wait", { actor: PERSON });
    expect(await codeOf(settle(gate, question.id, REPEAT))).toBe("approval_void");
    expect(far.sent).toEqual(["a"]);
    expect(await onlyOpen(gate)).toEqual(question);
  });

  test("a tool that is gone, refused by now or changed is not repeated; what a person found out still counts", async () => {
    const policy = rules({ id: "no", effect: "deny", tool: "far.*", reason: "closed" });
    const changed = { ...lossy().tool, version: "2" };
    for (const over of [{ tools: [] }, { policy }, { tools: [changed] }]) {
      const { world, far, question } = await lostOne(open, "approved");
      const gate = await world.restart(over);
      const repeating = settle(gate, question.id, REPEAT);
      if (over.tools?.[0] === changed) expect(await repeating).toMatchObject({ answer: "failed" });
      else expect(await codeOf(repeating)).toBe("illegal_transition");
      expect(far.sent).toEqual(["a"]);
      expect(await onlyOpen(gate)).toEqual(question);
      expect(await settle(gate, question.id, HAPPENED)).toMatchObject({ answer: "done" });
    }
  });
});
