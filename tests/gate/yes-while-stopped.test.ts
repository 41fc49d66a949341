import { expect, test } from "vitest";
import { AGENT, approve, decisionIdOf, openGate, PERSON, request } from "../support/port-world.ts";

const BY = { actor: "person:ops" };
const set = (key: string, callId = key) => request("world.set", { key, value: 1 }, callId);

/** What a resume starts in the background has come to its end. */
async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  await expect.poll(holds).toBe(true);
}

test("stopped: an approval given while everything is stopped is kept, and runs once when work resumes [W1]", async () => {
  const { gate, effects } = openGate();
  const session = gate.sessions.open({ agent: AGENT });
  const id = decisionIdOf(await session.call({ ...set("a"), key: "k-a" }));
  await gate.killSwitch.stop("look first", BY);
  const [answer] = await approve(gate, id);
  expect(answer).toMatchObject({ answer: "pending", decisionId: id });
  expect(answer?.text).toContain("Approved. Work is paused; it runs when it is resumed");
  expect((await gate.decisions.get(id)).state).toBe("approved");
  expect((await session.resultOf("k-a"))?.text).toContain("it runs when it is resumed");
  // Upkeep of any process goes round meanwhile and starts nothing.
  await gate.recover();
  expect(effects).toEqual([]);
  await gate.killSwitch.resume("all well", BY);
  await until(async () => (await gate.decisions.get(id)).state === "executed");
  await gate.recover();
  expect(effects).toEqual(['world.set {"key":"a","value":1}']);
});

test("stopped: another process carries out in its upkeep what was approved while everything was stopped [W1]", async () => {
  const world = openGate();
  const { gate, effects, clock } = world;
  const id = decisionIdOf(await gate.sessions.open({ agent: AGENT }).call(set("a")));
  await gate.killSwitch.stop("look first", BY);
  await approve(gate, id);
  const other = world.again();
  clock.advance(60_000);
  expect((await other.recover()).decisions).toEqual([]);
  // Resumed without the gate, as by a process that ended immediately after it.
  const table = { name: "switches", columns: {}, indexed: [] };
  const [row] = await world.tap.engine.find("acme", table, { limit: 5 });
  await world.tap.tamper(table, String(row?.["id"]), { state: "running" });
  expect(await other.recover()).toMatchObject({ decisions: [{ id }] });
  expect(effects).toHaveLength(1);
});

test("stopped: what moved on or expired during the stop does not run after it [W1]", async () => {
  const { gate, effects, values, clock } = openGate({ approvalMs: 60_000 });
  const session = gate.sessions.open({ agent: AGENT });
  const moved = decisionIdOf(await session.call(set("a")));
  await gate.killSwitch.stop("look first", BY);
  await approve(gate, moved);
  values.set("a", 99);
  await gate.killSwitch.resume("all well", BY);
  await until(async () => (await gate.decisions.get(moved)).state === "failed");
  // It went back to review, with the difference.
  const [open] = await gate.interactions.list({ status: "open" });
  expect(open?.metadata).toMatchObject({ cameBackFrom: moved });
  const late = decisionIdOf(await session.call(set("b")));
  await gate.killSwitch.stop("once more", BY);
  await approve(gate, late);
  clock.advance(60_001);
  await gate.killSwitch.resume("all well", BY);
  await until(async () => (await gate.decisions.get(late)).state === "failed");
  expect((await gate.decisions.get(late)).executionError).toContain("expired");
  expect(effects).toEqual([]);
});

test("stopped: a bundle that is stopped half-way keeps what was done and goes on from there [W1]", async () => {
  const { gate, effects, tap } = openGate();
  const session = gate.sessions.open({ agent: AGENT });
  const id = decisionIdOf(await session.stage([set("a"), set("b")]));
  tap.before = async ({ steps }) => {
    if (!steps.some((step) => step.op === "insert" && step.id === `${id}.1`)) return;
    tap.before = () => {};
    await gate.killSwitch.stop("now", BY);
  };
  const answers = await approve(gate, id);
  expect(answers.map(({ answer }) => answer)).toEqual(["done", "pending"]);
  expect(effects).toHaveLength(1);
  await gate.killSwitch.resume("all well", BY);
  await until(async () => (await gate.decisions.get(id)).state === "executed");
  expect(effects).toEqual(['world.set {"key":"a","value":1}', 'world.set {"key":"b","value":1}']);
});

test("stopped: a batch approved while everything is stopped waits as a whole, and each runs once [W1]", async () => {
  const { gate, effects } = openGate();
  const session = gate.sessions.open({ agent: AGENT });
  const ids = [];
  for (const key of ["a", "b", "c"]) ids.push(decisionIdOf(await session.call(set(key))));
  await gate.killSwitch.stop("look first", BY);
  const items = await Promise.all(
    ids.map(async (id) => ({ id, hash: (await gate.interactions.get(id)).hash })),
  );
  const done = await gate.interactions.approveAll(items, { by: PERSON });
  for (const item of done) {
    expect(item).toMatchObject({ outcome: "approved", approved: { missing: [] } });
    const answers = item.outcome === "approved" ? item.approved.answers : [];
    expect(answers).toMatchObject([{ answer: "pending", decisionId: item.id }]);
  }
  expect(effects).toEqual([]);
  await gate.killSwitch.resume("all well", BY);
  await until(() => effects.length === 3);
  expect(new Set(effects).size).toBe(3);
});

test("stopped: a call that needs nobody is refused while everything is stopped, and says that it will not run later [W1]", async () => {
  const { gate, reads } = openGate();
  await gate.killSwitch.stop("look first", BY);
  const look = request("world.look", { key: "a" });
  const answer = await gate.sessions.open({ agent: AGENT }).call(look);
  expect(answer.answer).toBe("failed");
  expect(answer.text).toContain("it will not run by itself later");
  await gate.killSwitch.resume("all well", BY);
  await gate.recover();
  expect(reads).toEqual([]);
});
