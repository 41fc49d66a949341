// R3, R28: every path that a sub-agent's call can take hits the same scope, and ends with the delegation.

import { describe, expect, onTestFinished, test } from "vitest";
import type { Session } from "../../src/gate/session.ts";
import type { DelegationId } from "../../src/model/delegation.ts";
import type { CallAnswer } from "../../src/model/operation.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { systemTimers } from "../../src/util/timers.ts";
import { approve, collected, decisionIdOf, isIntent, openGate } from "../support/port-world.ts";
import { type BoxWorld, child, codes, openBox, put, startRun } from "./port-delegation.ts";
import { ADA, asks } from "./world.ts";

/** A machine that is busy with other things may be late; one that is not on time three times in a row is too late. */
const BUSY = { retry: 2 };

interface Scene {
  readonly world: BoxWorld;
  readonly session: Session;
  readonly id: DelegationId;
  readonly parentId: DelegationId;
}

/** A sub-agent of a sub-agent that may write slot a, in a run whose plan lists a and b. */
async function scene(): Promise<Scene> {
  const world = openBox();
  const { session: lead } = await startRun(world.gate, ["a", "b"]);
  const tools = ["box.*"];
  const parent = await child(
    world.gate,
    lead,
    codes({ agent: "agent:p", depth: 1, tools, calls: 6 }),
  );
  const own = codes({ agent: "agent:c", planFiles: ["slot:a"], calls: 5 });
  const { session, id } = await child(world.gate, parent.session, own);
  return { world, session, id, parentId: parent.id };
}

/** Something that happens between what begins a path and what would end it with an effect. */
type Meanwhile = (scene: Scene) => Promise<void>;
const nothing: Meanwhile = async () => {};

/** Each gives what became of a call to this slot, with `meanwhile` in the middle where there is a middle. */
const PATHS: Readonly<
  Record<string, (scene: Scene, slot: string, meanwhile: Meanwhile) => Promise<CallAnswer>>
> = {
  async call(given, slot, meanwhile) {
    await meanwhile(given);
    return given.session.call(put(slot));
  },
  async "call, stopped right before the intent"(given, slot, meanwhile) {
    let done = false;
    given.world.tap.before = async (change) => {
      if (done || !isIntent(change)) return;
      done = true;
      await meanwhile(given);
    };
    return given.session.call(put(slot));
  },
  async callAll(given, slot, meanwhile) {
    await meanwhile(given);
    const [result] = await collected(given.session.callAll([put(slot)]));
    return result!.answer;
  },
  async "staged and approved later"(given, slot, meanwhile) {
    const answer = await given.session.stage([put(slot)]);
    if (answer.answer !== "pending") return answer;
    await meanwhile(given);
    const [run] = await approve(given.world.gate, decisionIdOf(answer));
    return run!;
  },
  async "asked about and approved later, by another process"(given, slot, meanwhile) {
    const answer = await given.session.call(put(slot, "box.asked"));
    if (answer.answer !== "pending") return answer;
    await meanwhile(given);
    const [run] = await approve(given.world.again(), decisionIdOf(answer));
    return run!;
  },
  async "approved, then recovered by another process"(given, slot, meanwhile) {
    const answer = await given.session.call(put(slot, "box.asked"));
    if (answer.answer !== "pending") return answer;
    const id = decisionIdOf(answer);
    const { tap, clock } = given.world;
    // The process dies between the yes and what it leads to.
    tap.isApart = true;
    tap.before = (change) => {
      if (isIntent(change)) throw new Error("gone");
    };
    await expect(approve(given.world.gate, id)).rejects.toThrow("gone");
    tap.before = () => {};
    await meanwhile(given);
    clock.advance(31_000);
    const { decisions, left } = await given.world.again().recover();
    const [run] = decisions.flatMap(({ answers }) => answers);
    return run ?? { answer: "failed", text: left.map(({ reason }) => reason).join() };
  },
  async "begun, then taken over by another process"(given, slot, meanwhile) {
    const { tap, clock, effects } = given.world;
    // Dies after the intent, before the outcome: a keyed tool may be called again.
    tap.after = (change) => {
      if (isIntent(change)) throw new Error("gone");
    };
    const begun = given.session.call(put(slot, "box.keyed")).catch(() => undefined);
    const answer = await begun;
    tap.after = () => {};
    if (answer !== undefined) return answer;
    expect(effects).toEqual([]);
    await meanwhile(given);
    clock.advance(31_000);
    const { operations, left } = await given.world.again().recover();
    return (
      operations[0]?.answer ?? { answer: "failed", text: left.map(({ reason }) => reason).join() }
    );
  },
};

const ENDS: Readonly<Record<string, Meanwhile>> = {
  "its own revocation": ({ world, id }) =>
    world.gate.delegations.revoke(id, "stop", ADA).then(() => {}),
  "its parent's revocation": ({ world, parentId }) =>
    world.gate.delegations.revoke(parentId, "stop", ADA).then(() => {}),
  "its own report": async ({ world, id }) => {
    await world.gate.delegations.fail(id, "done with it", ADA);
  },
  "the end of its time": async ({ world }) => world.clock.advance(31 * 60_000),
};

describe.each(Object.entries(PATHS))("%s [R3 R28 T33]", (_name, path) => {
  test("an effect inside the scope happens once [S3-39]", async () => {
    const given = await scene();
    expect((await path(given, "a", nothing)).answer).toBe("done");
    expect(given.world.effects).toMatchObject([{ slot: "a", sessionId: given.id }]);
  });

  test.each(["b", "c"])(
    "slot %s, outside its scope or outside the plan, is not written [S3-39]",
    async (slot) => {
      const given = await scene();
      const answer = await path(given, slot, nothing);
      expect(["denied", "failed"]).toContain(answer.answer);
      expect(given.world.effects).toEqual([]);
    },
  );

  test.each(Object.entries(ENDS))("after %s nothing happens [T33]", async (_end, meanwhile) => {
    const given = await scene();
    const answer = await path(given, "a", meanwhile);
    expect(["denied", "failed"], answer.text).toContain(answer.answer);
    expect(given.world.effects).toEqual([]);
  });
});

test("all children share the call budget of their parent, on every path [T33]", async () => {
  const { world, session, parentId } = await scene();
  const calls = [];
  for (let n = 0; n < 4; n += 1) calls.push(await session.call(put("a")));
  calls.push(await session.stage([put("a"), put("a")]));
  expect(calls.slice(0, 4).map(({ answer }) => answer)).toEqual(["done", "done", "done", "done"]);
  const staged = calls[4]!;
  // One call is left of five: the second of the bundle is not executed, and the first is undone.
  const answers = await approve(world.gate, decisionIdOf(staged));
  // The first one ran and was undone.
  expect(answers.map(({ answer }) => answer)).toEqual(["failed", "failed"]);
  expect((await session.call(put("a"))).answer).toBe("failed");
  expect((await world.gate.delegations.get(parentId)).scope.calls).toBe(1);
});

test("a child cannot open a session without its scope or under another name [R3]", async () => {
  const { world, id } = await scene();
  expect(() => world.gate.sessions.open({ id, agent: "agent:c" })).toThrow(/attach to it/);
  expect(() => world.gate.sessions.open({ id: "dlg-invented", agent: "agent:c" })).toThrow(
    /not_allowed/,
  );
});

test("a session with the id of a missing run works like any other", async () => {
  const { gate, effects } = openBox();
  const session = gate.sessions.open({ id: "run-of-the-mill", agent: "agent:lead" });
  expect((await session.call(put("z"))).answer).toBe("done");
  const { session: below } = await child(gate, session, asks());
  expect((await below.call({ callId: "c", tool: "box.look", input: {} })).answer).toBe("done");
  expect((await below.call(put("z"))).answer).toBe("denied");
  expect(effects).toHaveLength(1);
});

test("only its lead can use the session of a run [R3]", async () => {
  const world = openBox();
  const { run, session: lead } = await startRun(world.gate, ["a"]);
  const mallory = world.gate.sessions.open({ id: run.id, agent: "agent:mallory" });
  expect((await mallory.call(put("a"))).answer).toBe("denied");
  expect((await mallory.stage([put("a")])).answer).toBe("denied");
  expect((await mallory.delegate(codes())).answer).toBe("denied");
  expect(world.effects).toEqual([]);
  expect((await lead.call(put("a"))).answer).toBe("done");
});

test("no delegator approves a call of its child, at any depth [T1 T33]", async () => {
  const { world, session } = await scene();
  const id = decisionIdOf(await session.call(put("a", "box.asked")));
  for (const by of ["agent:c", "agent:p", "agent:lead", "AGENT:Lead"]) {
    await expect(approve(world.gate, id, by), by).rejects.toMatchObject({ code: "not_allowed" });
  }
  const [question] = await world.gate.interactions.list();
  expect(question?.chain).toEqual(["agent:c", "agent:p", "agent:lead"]);
  await approve(world.gate, id);
  expect(world.effects).toHaveLength(1);
});

test("a sub-agent undoes in its own name and scope; a person undoes whatever its state [T33]", async () => {
  const { world, session, id } = await scene();
  await session.call(put("a"));
  await world.gate.delegations.revoke(id, "stop", ADA);
  const own = await session.rollback("person:ada");
  expect(own.undone).toEqual([]);
  expect(world.effects).toHaveLength(1);
  const [taken] = await world.gate.delegations.rollback(id, "person:ada");
  expect(taken?.report.undone).toHaveLength(1);
  expect(world.effects.map(({ slot }) => slot)).toEqual(["a", "a"]);
});

test("recovery completes a person's interrupted rollback of a stopped sub-agent, not the sub-agent's own [T33]", async () => {
  for (const [by, effects] of [
    ["person:ada", 2],
    ["agent:c", 1],
  ] as const) {
    const { world, session, id } = await scene();
    await session.call(put("a", "box.keyed"));
    world.tap.after = (change) => {
      if (isIntent(change)) throw new Error("gone");
    };
    await world.gate.delegations.rollback(id, by);
    world.tap.after = () => {};
    expect(world.effects).toHaveLength(1);
    await world.gate.delegations.revoke(id, "stop", ADA);
    world.clock.advance(31_000);
    await world.again().recover();
    expect(world.effects, by).toHaveLength(effects);
  }
});

test("a delegator undoes within its own bounds: a root always, a stopped one never [T33]", async () => {
  const { world, session, id, parentId } = await scene();
  await session.call(put("a"));
  await world.gate.delegations.revoke(parentId, "stop", ADA);
  const undone = async (by: string) =>
    (await world.gate.delegations.rollback(parentId, by)).flatMap(({ report }) => report.undone);
  expect(await undone("agent:p")).toEqual([]);
  expect(await undone("agent:c")).toEqual([]);
  expect(world.effects).toHaveLength(1);
  expect(await undone("agent:lead")).toHaveLength(1);
  expect(world.effects.at(-1)).toMatchObject({ slot: "a", sessionId: id });
  expect(await undone("agent:lead")).toEqual([]);
});

test("a stopped child can ask no person [T33]", async () => {
  const { world, session, id } = await scene();
  const question = { callId: "q-1", text: "May I?" };
  expect((await session.ask(question)).answer).toBe("pending");
  await world.gate.delegations.revoke(id, "stop", ADA);
  await expect(session.ask({ callId: "q-2", text: "And now?" })).rejects.toMatchObject({
    code: "illegal_transition",
  });
  expect(await world.gate.interactions.list()).toHaveLength(1);
});

test("a running call of a child is aborted when its delegation ends [T33]", BUSY, async () => {
  const reasons: string[] = [];
  const wait = defineTool({
    name: "slow.wait",
    description: "Waits until it is aborted.",
    input: { type: "object", additionalProperties: false },
    permissionClass: "readonly",
    async execute({ signal }) {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      reasons.push(String(signal.reason));
      return "stopped";
    },
  });
  const { gate } = openGate({ tools: [wait] });
  const lead = gate.sessions.open({ agent: "agent:lead" });
  const given = await lead.delegate(asks());
  if (given.answer !== "delegated") throw new Error(given.text);
  const { session, watch } = await gate.delegations.attach(given.delegation.id, given.token);
  onTestFinished(() => watch.stop());
  const running = session.call({ callId: "c-1", tool: "slow.wait", input: {} });
  await systemTimers.sleep(50);
  const before = performance.now();
  await gate.delegations.revoke(given.delegation.id, "stop", ADA);
  await running;
  expect(performance.now() - before).toBeLessThan(1_000);
  expect(reasons[0]).toContain("revoked");
});
