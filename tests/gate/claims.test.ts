import { expect, test } from "vitest";
import { AGENT, approve, decisionIdOf, openGate, request } from "../support/port-world.ts";

const LEASE = 60_000;

async function claimed(over: Parameters<typeof openGate>[0] = {}) {
  const world = openGate(over);
  const { tasks } = world.gate;
  const { id } = await tasks.add({ subject: "set a" });
  const { version: fence } = await tasks.claim({ id, claimer: AGENT, leaseMs: LEASE });
  const session = world.gate.sessions.open({ id: "s-1", agent: AGENT, claim: { id, fence } });
  return { ...world, id, fence, session };
}

const set = request("world.set", { key: "a", value: 1 });

test("a session that works under a claim is refused once its lease is over, in every lane [T34]", async () => {
  const { session, clock, effects, gate } = await claimed();
  expect((await session.call(request("world.look", { key: "a" }))).answer).toBe("done");
  const waiting = decisionIdOf(await session.call(set));
  clock.advance(LEASE + 1);
  for (const call of [request("world.look", { key: "a" }), set]) {
    const answer = await session.call(call);
    expect(answer.answer).toBe("denied");
    expect(answer.text).toContain("claim another task");
  }
  // Approved after the claim on the task was lost: it does not run either.
  const [late] = await approve(gate, waiting);
  expect(late?.answer).toBe("failed");
  expect(effects).toEqual([]);
});

test("a claim that is lost between the look and the intent lets nothing through [T34]", async () => {
  const { session, tap, gate, id, fence, effects } = await claimed({
    policy: {
      version: "1",
      rules: [{ id: "set", effect: "allow", tool: "world.set", reason: "harmless here" }],
    },
  });
  tap.before = async ({ steps }) => {
    if (!steps.some((step) => step.op === "insert" && step.table.name === "operations")) return;
    tap.before = () => {};
    await gate.tasks.release({ id, fence, reason: "given back just now" });
  };
  const answer = await session.call(set);
  expect(answer.answer).toBe("failed");
  expect(answer.text).toContain("claim on the task is over");
  expect(effects).toEqual([]);
});

test("a task that is tied to a decision is completed only when that is executed", async () => {
  const { session, gate, id, fence } = await claimed();
  const decision = decisionIdOf(await session.call(set));
  await gate.tasks.link({ id, fence, decisionIds: [decision] });
  const complete = () => gate.tasks.complete({ id, fence, result: "done" });
  await expect(complete()).rejects.toMatchObject({ code: "dependency_denied" });
  await approve(gate, decision);
  expect((await gate.decisions.get(decision)).state).toBe("executed");
  expect((await complete()).status).toBe("completed");
});
