// Errors of the store after the first of several writes: no caller gets an error that says nothing was written.

import { expect, test } from "vitest";
import type { GateOptions } from "../../src/gate/options.ts";
import { ERRORS, type ErrorCode, type SallyportError } from "../../src/model/errors.ts";
import { slowReview } from "../support/validators.ts";
import { createGated, faultyStore } from "./lost-outcomes-world.ts";

const LEASE_MS = 300;
const BY = "person:ada";
const PAY = { callId: "c", tool: "bank.pay", input: { cents: 5 } };

function setup(over: Partial<GateOptions> = {}) {
  const faults = faultyStore();
  const world = createGated({ kind: "plain", faults, leaseMs: LEASE_MS, over });
  return { ...world, faults };
}

async function errorOf(work: Promise<unknown>): Promise<SallyportError> {
  return work.then(
    () => Promise.reject(new Error("it was not refused")),
    (error) => error,
  );
}

const overLease = () => new Promise((resolve) => setTimeout(resolve, LEASE_MS + 20));

function retryOf({ code }: SallyportError): string {
  return ERRORS[code as ErrorCode].retry;
}

async function approveAll({ gate }: ReturnType<typeof setup>): Promise<number> {
  const open = await gate.interactions.list({});
  for (const { id, hash } of open) await gate.interactions.approve(id, { hash, by: BY });
  return open.length;
}

test.each(["decision.reviewed", "decision.previewed"])(
  "a proposal cut off at %s is not safe to repeat: the error names its decision, and it is asked about once [F1b]",
  async (type) => {
    const world = setup(slowReview());
    world.faults.failNext(type, 1);
    const error = await errorOf(world.session.stage([PAY]));
    expect(retryOf(error)).toBe("after_reread");
    const [decision] = await world.gate.decisions.list({});
    expect(error.details["id"]).toBe(decision?.id);
    await overLease();
    await world.gate.recover();
    expect(await approveAll(world)).toBe(1);
    expect(world.effects).toHaveLength(1);
  },
);

test.each(["decision.reviewed", "decision.previewed"])(
  "a keyed call that is repeated after its proposal was cut off at %s is executed once [F1b]",
  async (type) => {
    const world = setup(slowReview());
    const keyed = { ...PAY, key: "k" };
    world.faults.failNext(type, 1);
    await errorOf(world.session.stage([keyed]));
    expect((await world.session.stage([keyed])).answer).toBe("pending");
    expect(await approveAll(world)).toBe(1);
    await overLease();
    await world.gate.recover();
    expect(await approveAll(world)).toBe(0);
    expect(world.effects).toHaveLength(1);
  },
);

test("a yes after which the store fails is not safe to repeat, and a second yes is told what came of it [F1c]", async () => {
  // Counted, a yes is written before its intent.
  const world = setup({ attention: { onProblem: () => {} } });
  await world.session.stage([PAY]);
  const [question] = await world.gate.interactions.list({});
  const { id = "", hash = "" } = question ?? {};
  world.faults.failNext("operation.started", 1);
  const error = await errorOf(world.gate.interactions.approve(id, { hash, by: BY }));
  expect(retryOf(error)).toBe("after_reread");
  expect(error.details["id"]).toBe(id);
  const early = await errorOf(world.gate.interactions.approve(id, { hash, by: BY }));
  expect(early.code).toBe("already_answered");
  expect(early.message).toContain("about to be executed");
  await overLease();
  await world.gate.recover();
  const late = await errorOf(world.gate.interactions.approve(id, { hash, by: BY }));
  expect(late.message).toContain("done: paid");
  expect(world.effects).toHaveLength(1);
});

test("a yes that is written with its intent is safe to repeat when that write fails, and nothing ran [F1c]", async () => {
  const world = setup();
  await world.session.stage([PAY]);
  const [question] = await world.gate.interactions.list({});
  const { id = "", hash = "" } = question ?? {};
  world.faults.failNext("operation.started", 1);
  const error = await errorOf(world.gate.interactions.approve(id, { hash, by: BY }));
  expect(retryOf(error)).toBe("safe");
  expect((await world.gate.decisions.get(id)).state).toBe("pending_ml");
  expect(world.effects).toEqual([]);
  await world.gate.interactions.approve(id, { hash, by: BY });
  expect(world.effects).toHaveLength(1);
});

test("what was found out about a lost call is not safe to repeat when the store fails after it was written [F1]", async () => {
  const faults = faultyStore();
  const world = createGated({ kind: "plain", faults, leaseMs: LEASE_MS, throwsAfter: 1 });
  await world.session.stage([PAY, { ...PAY, callId: "d" }]);
  const [question] = await world.gate.interactions.list({});
  const { id = "", hash = "" } = question ?? {};
  await world.gate.interactions.approve(id, { hash, by: BY });
  const [lost] = await world.gate.interactions.list({});
  expect(lost?.type).toBe("connection_lost");
  // The second call of the decision follows the settlement of the first; its intent cannot be written.
  faults.failNext("operation.started", 1);
  const found = { hash: lost?.hash ?? "", by: BY, happened: true } as const;
  const error = await errorOf(world.gate.interactions.settle(lost?.id ?? "", found));
  expect(retryOf(error)).toBe("after_reread");
  expect(error.message).toContain("What you found out is stored");
  await overLease();
  await world.gate.recover();
  expect(world.effects).toHaveLength(2);
});

test("a proposal that could not even be staged is safe to repeat [F1b]", async () => {
  const world = setup();
  world.faults.failNext("decision.staged", 1);
  expect(retryOf(await errorOf(world.session.stage([PAY])))).toBe("safe");
  expect(await world.gate.decisions.list({})).toEqual([]);
});
