// What a process had only begun when it went away: finished by the next one, and asked about once.

import { expect, test } from "vitest";
import type { AtPoint } from "../../src/gate/options.ts";
import type { Validator } from "../../src/model/decision.ts";
import { AGENT, decisionIdOf, PERSON } from "../support/port-world.ts";
import { sampleVerdictValidator, slowReview } from "../support/validators.ts";
import { codeOf, type InboxWorld, onlyOpen, onStores, seen, set, yes } from "./inbox-world.ts";

const BEFORE_THE_QUESTION = [
  "S1.after",
  "S2a.before",
  "S2a.after",
  "S2b.before",
  "S2b.after",
  "S3.before",
];
const LEASE = 30_000;

function goneAt(at: string): AtPoint {
  return (point) => {
    if (point === at) throw new Error("gone");
  };
}

/** A process that ends here. */
function dying({ again }: InboxWorld, at: string) {
  return again({ at: goneAt(at) });
}

/** The same, with a review that takes so long that the proposal is stored before its verdict. */
function slowlyDying({ again }: InboxWorld, at: string) {
  return again(slowReview(goneAt(at)));
}

onStores("cut off", (open) => {
  for (const at of BEFORE_THE_QUESTION) {
    test(`a proposal that was cut off at ${at} is asked about by the next process, once`, async () => {
      const world = await open();
      const session = { id: "s-1", agent: AGENT, owner: "person:olga" };
      const call = { ...set("a", 1), key: "k" };
      await expect(slowlyDying(world, at).sessions.open(session).call(call)).rejects.toThrow(
        "gone",
      );
      expect(await world.gate.interactions.list()).toEqual([]);
      // Too young to be given up: its process may still be working on it.
      expect((await world.gate.recover()).proposals).toEqual([]);
      world.clock.advance(LEASE);
      const other = await world.restart();
      await Promise.all([world.gate.recover(), other.recover()]);
      const { id, chain } = await onlyOpen(other);
      expect(chain).toEqual([AGENT, "person:olga"]);
      // The agent that comes back finds its call, and does not make a second one.
      const again = other.sessions.open(session);
      expect(await again.call(call)).toMatchObject({ answer: "pending", decisionId: id });
      expect(await codeOf(yes(other, id, "person:olga"))).toBe("not_allowed");
      await yes(other, id);
      expect(world.effects).toHaveLength(1);
      expect(await again.call(call)).toMatchObject({ answer: "done" });
      world.clock.advance(LEASE);
      expect(await other.recover()).toEqual({
        operations: [],
        decisions: [],
        proposals: [],
        left: [],
      });
    });
  }

  for (const at of ["S1.before", "S2b.before", "S2b.after", "S3.before"]) {
    test(`a proposal that is reviewed promptly and cut off at ${at} leaves nothing, and is made once by whoever asks again`, async () => {
      const world = await open();
      const session = { id: "s-1", agent: AGENT };
      const call = { ...set("a", 1), key: "k" };
      await expect(dying(world, at).sessions.open(session).call(call)).rejects.toThrow("gone");
      expect(await world.gate.decisions.listBySession("s-1")).toEqual([]);
      expect(await world.gate.audit.read({ after: 0, limit: 10 })).toEqual([]);
      const other = await world.restart();
      const id = decisionIdOf(await other.sessions.open(session).call(call));
      expect((await onlyOpen(other)).id).toBe(id);
      await yes(other, id);
      expect(world.effects).toHaveLength(1);
    });
  }

  test("a proposal that was cut off right after its one write is the answer to whoever asks again", async () => {
    const world = await open();
    const session = { id: "s-1", agent: AGENT };
    const call = { ...set("a", 1), key: "k" };
    const gone = dying(world, "S3.after").sessions.open(session).call(call);
    await expect(gone).rejects.toThrow("gone");
    const { id } = await onlyOpen(world.gate);
    const other = await world.restart();
    expect(await other.sessions.open(session).call(call)).toMatchObject({ decisionId: id });
    await yes(other, id);
    expect(world.effects).toHaveLength(1);
  });

  test("a process without the tools leaves a proposal that was cut off to one that has them", async () => {
    const world = await open();
    const session = { id: "s-1", agent: AGENT };
    await expect(
      slowlyDying(world, "S1.after").sessions.open(session).call(set("a", 1)),
    ).rejects.toThrow("gone");
    world.clock.advance(LEASE);
    const no: Validator = {
      name: "nobody",
      async review(diff, context) {
        return {
          ...(await sampleVerdictValidator("nobody").review(diff, context)),
          approved: false,
        };
      },
    };
    const bare = world.again({ tools: [], validators: { tech: no, business: no } });
    const [begun] = await world.gate.decisions.listBySession("s-1");
    expect(await bare.recover()).toMatchObject({ proposals: [], left: [{ id: begun?.id }] });
    expect((await world.gate.recover()).proposals).toEqual([{ id: begun?.id, asked: true }]);
    expect((await onlyOpen(world.gate)).id).toBe(begun?.id);
  });

  test("an agent that comes back before the recovery asks once: the half of it is called off", async () => {
    const world = await open();
    const session = { id: "s-1", agent: AGENT };
    const call = { ...set("a", 1), key: "k" };
    await expect(
      slowlyDying(world, "S3.before").sessions.open(session).call(call),
    ).rejects.toThrow();
    const id = decisionIdOf(await world.gate.sessions.open(session).call(call));
    world.clock.advance(LEASE);
    await world.gate.recover();
    expect((await onlyOpen(world.gate)).id).toBe(id);
    const states = (await world.gate.decisions.listBySession("s-1")).map(({ state }) => state);
    expect(states.toSorted()).toEqual(["pending_ml", "rejected_ml"]);
    await yes(world.gate, id);
    expect(world.effects).toHaveLength(1);
  });

  test("a proposal that the next process's review refuses is refused, and nobody is asked", async () => {
    const world = await open();
    const call = { ...set("a", 1), key: "k" };
    const gone = slowlyDying(world, "S2a.before").sessions.open({ id: "s-1", agent: AGENT });
    await expect(gone.call(call)).rejects.toThrow("gone");
    world.clock.advance(LEASE);
    const verdict = { approved: false, score: 0, severity: "block", reason: "no" } as const;
    const tech = {
      ...sampleVerdictValidator("t"),
      review: () => ({ ...verdict, validator: "t", policyVersion: "1" }),
    };
    const strict = await world.restart({
      validators: { tech, business: sampleVerdictValidator("b") },
    });
    expect((await strict.recover()).proposals).toMatchObject([{ asked: false }]);
    expect(await strict.interactions.list()).toEqual([]);
    const [decision] = await strict.decisions.listBySession("s-1");
    expect(decision?.state).toBe("rejected_tech");
  });

  for (const at of ["S1.after", "S2a.after", "S2b.after", "S3.before", "S3.after"]) {
    test(`an edit that was cut off at ${at} leaves one question, and it can be answered`, async () => {
      const world = await open();
      const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
      const call = { ...set("a", 1), key: "k" };
      const id = decisionIdOf(await session.call(call));
      const inputs = { 0: { key: "a", value: 2 } };
      const edit = { ...(await seen(world.gate, id)), inputs };
      await expect(slowlyDying(world, at).interactions.edit(id, edit)).rejects.toThrow("gone");
      world.clock.advance(LEASE);
      await world.gate.recover();
      const left = await onlyOpen(world.gate);
      // Until the transaction that asks anew, the old question is as it was.
      expect(left.id === id).toBe(at !== "S3.after");
      // A person who edited a call does not approve it.
      await yes(world.gate, left.id, "person:ben");
      expect(world.effects).toEqual([`world.set {"key":"a","value":${at === "S3.after" ? 2 : 1}}`]);
      expect(await session.call(call)).toMatchObject({ answer: "done" });
    });
  }

  for (const at of ["S4.after", "S5.before"]) {
    test(`cut off between the yes and the execution (${at}): the next process carries it out, once [R17]`, async () => {
      const world = await open();
      const call = { ...set("a", 1), key: "k" };
      const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
      const id = decisionIdOf(await session.call(call));
      // Where decisions are counted, a yes is written before its intent.
      const counting = world.again({ at: goneAt(at), attention: { onProblem: () => {} } });
      await expect(yes(counting, id)).rejects.toThrow("gone");
      expect(world.effects).toEqual([]);
      // Told as what it is: approved, not done, and not to be repeated.
      const told = await session.call(call);
      expect(told).toMatchObject({ answer: "pending", decisionId: id });
      expect(told.text).toContain("Approved");
      world.clock.advance(LEASE);
      const other = await world.restart();
      await Promise.all([world.gate.recover(), other.recover(), world.again().recover()]);
      expect(world.effects).toHaveLength(1);
      expect(await session.call(call)).toMatchObject({ answer: "done" });
      expect(await codeOf(yes(other, id, PERSON))).toBe("already_answered");
    });
  }

  test("cut off before the yes is written with its intent: the question is open, and a second yes counts", async () => {
    const world = await open();
    const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(set("a", 1)));
    await expect(yes(dying(world, "S5.before"), id)).rejects.toThrow("gone");
    expect((await onlyOpen(world.gate)).id).toBe(id);
    expect((await world.gate.decisions.get(id)).state).toBe("pending_ml");
    await yes(await world.restart(), id);
    expect(world.effects).toHaveLength(1);
  });

  for (const at of ["S4.after", "S5.after"]) {
    test(`cut off right after the yes was written with its intent (${at}): nothing runs until somebody finds out`, async () => {
      const world = await open();
      const call = { ...set("a", 1), key: "k" };
      const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
      const id = decisionIdOf(await session.call(call));
      await expect(yes(dying(world, at), id)).rejects.toThrow("gone");
      expect(world.effects).toEqual([]);
      expect((await world.gate.decisions.get(id)).state).toBe("approved");
      expect((await world.gate.operations.get(`${id}.0`)).status).toBe("started");
      world.clock.advance(LEASE + 1);
      const other = await world.restart();
      await Promise.all([world.gate.recover(), other.recover()]);
      // Without a key or a probe only a person can find out that it did not happen.
      expect(world.effects).toEqual([]);
      expect(await session.call(call)).toMatchObject({ answer: "unknown" });
      expect((await onlyOpen(other)).type).toBe("connection_lost");
    });
  }
});
