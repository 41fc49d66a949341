// Undoing one call from where it was approved: a reviewer what they approved themselves and lately, an operator anything.

import { expect, test } from "vitest";
import { manualClock } from "../../src/util/clock.ts";
import { openConsole, propose } from "../console/console-world.ts";
import { openHttp } from "./http-world.ts";

test("operations.undo: the reviewer who approved may undo it, another one may not, an operator may [W11]", async () => {
  await using world = await openConsole();
  const session = await world.session("agent:stock");
  const [ada, bob] = await Promise.all([
    world.client("reviewer", "person:ada"),
    world.client("reviewer", "person:bob"),
  ]);
  async function approved(quantity: number): Promise<string> {
    const id = await propose(session, "stock.set", { sku: "bolt-m8", quantity });
    const { hash } = await world.gate.interactions.get(id);
    const { answers } = await ada.interactions.approve({ id, hash });
    const [first] = answers;
    if (first?.answer !== "done") throw new Error("it did not run");
    return first.operationId;
  }
  const first = await approved(7);
  const plan = await bob.sessions.rollbackPlan({ id: session.id, operationId: first });
  expect(plan.items).toMatchObject([
    { state: "ready", undoTool: "stock.set", undoInput: { sku: "bolt-m8", quantity: 120 } },
  ]);
  expect(plan.items[0]?.dryRun).toMatchObject({ summary: "bolt-m8: 7 → 120" });
  await expect(bob.operations.undo({ id: first })).rejects.toMatchObject({ code: "not_allowed" });
  expect(world.stock.get("bolt-m8")).toBe(7);
  expect((await ada.operations.undo({ id: first })).undone).toHaveLength(1);
  expect(world.stock.get("bolt-m8")).toBe(120);
  const second = await approved(8);
  const operator = await world.client("operator", "person:olga");
  // Changed by somebody else: the plan says so before, the report after.
  world.stock.set("bolt-m8", 50);
  const changed = await operator.sessions.rollbackPlan({ id: session.id, operationId: second });
  expect(changed.items).toMatchObject([{ state: "changed" }]);
  expect((await operator.operations.undo({ id: second })).conflicted).toHaveLength(1);
  expect(world.stock.get("bolt-m8")).toBe(50);
  world.stock.set("bolt-m8", 8);
  const report = await operator.sessions.rollback({ id: session.id, only: [second] });
  expect(report.undone.map(({ operationId }) => operationId)).toEqual([second]);
  await expect(
    operator.sessions.rollback({ id: session.id, only: [second, "no-such"] }),
  ).rejects.toMatchObject({ code: "not_found" });
});

test("operations.undo: an hour after it ran the reviewer who approved may not undo it any more, an operator may [W11]", async () => {
  const clock = manualClock(Date.parse("2026-11-18T08:00:00.000Z"));
  const world = await openHttp({ clock });
  const ada = await world.client("acme", "reviewer", "person:ada");
  const session = world.gates.acme.sessions.open({ id: "s", agent: "agent:stock" });
  const ran: string[] = [];
  for (const key of ["a", "b"]) {
    const input = { key, value: 1 };
    const asked = await session.call({ callId: key, tool: "world.set", input });
    if (asked.answer !== "pending") return expect.fail(asked.answer);
    const { hash } = await world.gates.acme.interactions.get(asked.interactionId);
    const { answers } = await ada.interactions.approve({ id: asked.interactionId, hash });
    const [first] = answers;
    if (first?.answer !== "done") return expect.fail(first?.answer);
    ran.push(first.operationId);
  }
  const [early = "", late = ""] = ran;
  clock.advance(59 * 60_000);
  expect((await ada.operations.undo({ id: early })).undone).toHaveLength(1);
  clock.advance(2 * 60_000);
  await expect(ada.operations.undo({ id: late })).rejects.toMatchObject({ code: "not_allowed" });
  const operator = await world.client("acme", "operator");
  expect((await operator.operations.undo({ id: late })).undone).toHaveLength(1);
});
