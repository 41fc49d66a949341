// The answer to the caller when a tool throws, when the store fails after the intent, and when the tool's answer comes late.

import { expect, test } from "vitest";
import { defineTool } from "../../src/tools/define-tool.ts";
import { AGENT, openGate, PERSON, request, rules } from "../support/port-world.ts";
import { createGated, deferred, effectsOf, faultyStore } from "./lost-outcomes-world.ts";

const LEASE_MS = 300;

test("a write that throws after it paid is unknown, and a person is asked [D3]", async () => {
  const { gate, session, effects } = createGated({ kind: "plain", throwsAfter: 1 });
  const answer = await session.call({ callId: "c", tool: "bank.pay", input: { cents: 5 } });
  expect(answer).toMatchObject({
    answer: "unknown",
    text: expect.stringContaining("socket hang up"),
  });
  expect(effects).toHaveLength(1);
  expect((await gate.interactions.list({})).map(({ type }) => type)).toEqual(["connection_lost"]);
});

test.each(["keyed", "probed"] as const)(
  "a %s write that throws after it paid is found out about and pays once [D3]",
  async (kind) => {
    const { session, effects } = createGated({ kind, throwsAfter: 1 });
    const answer = await session.call({ callId: "c", tool: "bank.pay", input: { cents: 5 } });
    expect(answer.answer).toBe("done");
    expect(effectsOf(effects)).toBe(1);
  },
);

test("a tool says that nothing happened by returning isError; a read that throws has failed [D3]", async () => {
  const { session } = createGated({ kind: "plain", refuses: true });
  const no = await session.call({ callId: "c", tool: "bank.pay", input: { cents: 5 } });
  expect(no).toMatchObject({ answer: "failed", text: "insufficient funds" });
  const read = await session.call({ callId: "d", tool: "bank.look", input: {} });
  expect(read).toMatchObject({ answer: "failed", text: "no route to the bank" });
});

test("an outcome that cannot be written at once is written within the lease, and the call is done [F1d]", async () => {
  const faults = faultyStore();
  const { session, effects, gate } = createGated({ kind: "plain", faults, leaseMs: 2_000 });
  faults.failNext("operation.succeeded", 3);
  const answer = await session.call({ callId: "c", tool: "bank.pay", input: { cents: 5 } });
  expect(answer.answer).toBe("done");
  expect(effects).toHaveLength(1);
  expect(faults.failed).toBe(3);
  expect((await gate.operations.listBySession("s"))[0]?.status).toBe("success");
});

test("once a call has begun, no error says that it is safe to repeat: the answer is unknown, with its id [F1]", async () => {
  const faults = faultyStore();
  const { session, effects, gate } = createGated({ kind: "plain", faults, leaseMs: LEASE_MS });
  faults.failNext("operation.succeeded", 1_000);
  const answer = await session.call({ callId: "c", tool: "bank.pay", input: { cents: 5 } });
  expect(answer).toMatchObject({ answer: "unknown", operationId: expect.any(String) });
  expect(effects).toHaveLength(1);
  faults.heal();
  await new Promise((resolve) => setTimeout(resolve, LEASE_MS));
  await gate.recover();
  expect((await gate.interactions.list({})).map(({ type }) => type)).toEqual(["connection_lost"]);
  expect(effects).toHaveLength(1);
});

test("an outcome whose commit was answered with an error although it happened is taken as written [F1]", async () => {
  const faults = faultyStore();
  const { session, gate } = createGated({ kind: "plain", faults, leaseMs: 2_000 });
  faults.loseAnswerOf("operation.succeeded");
  const answer = await session.call({ callId: "c", tool: "bank.pay", input: { cents: 5 } });
  expect(answer.answer).toBe("done");
  expect((await gate.operations.listBySession("s"))[0]?.status).toBe("success");
});

test("an intent confirmed after everything was stopped is not acted on [SH8]", async () => {
  const faults = faultyStore();
  const { session, effects, gate } = createGated({ kind: "plain", faults, leaseMs: LEASE_MS });
  const late = deferred();
  faults.delayAnswerOf("operation.started", late.promise);
  const calling = session.call({ callId: "c", tool: "bank.pay", input: { cents: 5 } });
  await faults.delayed;
  await gate.killSwitch.stop("wrong prices", { actor: "person:olga" });
  await new Promise((resolve) => setTimeout(resolve, LEASE_MS));
  late.resolve();
  expect(await calling).toMatchObject({
    answer: "failed",
    text: expect.stringContaining("Not executed"),
  });
  expect(effects).toEqual([]);
});

test("an intent confirmed after another process took the call over is not acted on [SH8]", async () => {
  const faults = faultyStore();
  const world = createGated({ kind: "probed", faults, leaseMs: LEASE_MS });
  const other = world.secondPort();
  const late = deferred();
  faults.delayAnswerOf("operation.started", late.promise);
  const calling = world.session.call({ callId: "c", tool: "bank.pay", input: { cents: 5 } });
  await faults.delayed;
  await new Promise((resolve) => setTimeout(resolve, LEASE_MS));
  await other.recover();
  expect(world.effects).toHaveLength(1);
  late.resolve();
  expect(await calling).toMatchObject({ answer: "done" });
  expect(world.effects).toHaveLength(1);
});

test("a tool that works for several leases keeps its operation beside a process that recovers [B07]", async () => {
  const leaseMs = 1_000;
  const slow = deferred();
  const world = createGated({ kind: "plain", waits: slow.promise, leaseMs });
  const other = world.secondPort();
  const calling = world.session.call({ callId: "c", tool: "bank.pay", input: { cents: 5 } });
  for (let passed = 0; passed < 2.5 * leaseMs; passed += 50) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    await other.recover();
  }
  slow.resolve();
  expect(await calling).toMatchObject({ answer: "done" });
  expect(world.effects).toHaveLength(1);
});

test("a call that arrived after a person looked is found by its probe, and the wanted repeat does not pay twice [I7 T8]", async () => {
  const arrived: number[] = [];
  let isReachable = false;
  const pay = defineTool({
    name: "bank.pay",
    description: "Pays.",
    input: { type: "object" },
    safety: { effect: "external", reversible: false },
    execute() {
      if (isReachable) {
        arrived.push(Date.now());
        return "paid";
      }
      throw new Error("socket hang up");
    },
    probe() {
      if (!isReachable) throw new Error("nobody there");
      return arrived.length > 0 ? { happened: true, result: "paid before" } : { happened: false };
    },
  });
  const { gate } = openGate({
    tools: [pay],
    policy: rules({ id: "a", effect: "allow", tool: "bank.pay", reason: "r" }),
  });
  const session = gate.sessions.open({ id: "s", agent: AGENT });
  expect((await session.call(request("bank.pay", {}))).answer).toBe("unknown");
  const [question] = await gate.interactions.list({});
  if (question === undefined) throw new Error("nobody was asked");
  // The first call was only slow: it arrives while the person answers.
  isReachable = true;
  arrived.push(0);
  const { id, hash } = question;
  const found = { by: PERSON, hash, happened: false, otherwise: "repeat" } as const;
  expect(await gate.interactions.settle(id, found)).toMatchObject({ answer: "done" });
  expect(arrived).toHaveLength(1);
});
