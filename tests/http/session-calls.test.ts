// The calls of a run as people read them: one line each, with what decided it and what came of it.

import { expect, test } from "vitest";
import { openConsole, propose } from "../console/console-world.ts";

test("sessions.calls: each call with its sentence, reviews, votes and operations, newest first, in pages; nobody else's", async () => {
  await using world = await openConsole();
  const session = await world.session("agent:stock");
  const other = await world.session("agent:other");
  const bob = await world.client("reviewer", "person:bob");
  await propose(other, "stock.set", { sku: "nut-m8", quantity: 1 });
  const look = { callId: "look", tool: "stock.look", input: { sku: "bolt-m8" } };
  await session.call(look);
  const yes = await propose(session, "stock.set", { sku: "bolt-m8", quantity: 7 });
  await bob.interactions.approve({
    id: yes,
    hash: (await bob.interactions.get({ id: yes })).hash,
  });
  const open = await propose(session, "orders.place", {
    supplier: "Ohm",
    sku: "bolt-m8",
    quantity: 2,
  });
  await session.call({ callId: "wrong", tool: "no.such", input: {} });
  const first = await bob.sessions.calls({ id: session.id, limit: 3 });
  expect(first.items.map(({ outcome }) => outcome)).toEqual(["refused", "waiting", "ran"]);
  const [refused, waiting, ran] = first.items;
  expect(refused).toMatchObject({ kind: "refusal", tool: "no.such", operations: [], tech: null });
  expect(waiting).toMatchObject({
    id: open,
    title: "order 2 × bolt-m8 at Ohm",
    tech: { passed: true, by: "schema" },
    business: { passed: true, by: "limits" },
    votes: [],
    operations: [],
  });
  expect(ran).toMatchObject({
    id: yes,
    by: "person:bob",
    votes: ["person:bob"],
    operations: [{ tool: "stock.set", status: "success", output: "bolt-m8 is 7 now" }],
  });
  const rest = await bob.sessions.calls({ id: session.id, limit: 3, cursor: first.next ?? "" });
  expect(rest.next).toBeNull();
  expect(rest.items).toMatchObject([
    { tool: "stock.look", outcome: "ran_alone", operations: [{ effect: "read", output: "120" }] },
  ]);
});

test("sessions.calls: a long output is cut and marked, and read in full by its own route", async () => {
  await using world = await openConsole();
  const session = await world.session("agent:notes");
  const auditor = await world.client("auditor");
  const bob = await world.client("reviewer", "person:bob");
  const id = await propose(session, "stock.set", { sku: "x".repeat(3_000), quantity: 7 });
  await bob.interactions.approve({ id, hash: (await bob.interactions.get({ id })).hash });
  const { items } = await auditor.sessions.calls({ id: session.id });
  const [operation] = items[0]?.operations ?? [];
  expect(operation).toMatchObject({ truncated: true });
  expect(operation?.output).toHaveLength(2_000);
  const whole = await auditor.operations.get({ id: operation?.id ?? "" });
  expect(whole.output).toHaveLength(3_009);
});
