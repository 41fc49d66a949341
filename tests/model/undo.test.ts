import assert from "node:assert/strict";
import fc from "fast-check";
import { ROLLBACK_OUTCOMES, type RollbackReport } from "../../src/gate/rollback-report.ts";
import type { Session } from "../../src/gate/session.ts";
import type { CallAnswer } from "../../src/model/operation.ts";
import { approve, type GateWorld, openGate, request, rules } from "../support/port-world.ts";
import { choices, chosen, command, type Ground, prove, said, tenantOf } from "./prove.ts";
import { type ModelOperation, UndoModel } from "./undo-model.ts";

interface Real {
  readonly ground: Ground;
  readonly world: GateWorld;
  readonly session: Session;
  readonly decisions: string[];
  readonly operations: string[];
  readonly production: { isBroken: boolean };
}

type Scope = { readonly message?: string; readonly which?: number };

const values = fc.nat({ max: 2 });
const messages = fc.constantFrom("m-1", "m-2");
const free = fc.constantFrom("free-a", "free-b");
const keys = fc.constantFrom("free-a", "free-b", "asked-a");
const scopes = fc.oneof<fc.Arbitrary<Scope>[]>(
  fc.constant({}),
  fc.record({ message: messages }),
  fc.record({ which: choices }),
);
const by = fc.constantFrom("person:ada", "person:ada", "agent:one");
const BY = { actor: "person:ada" };
const ALLOWED = rules({
  id: "free",
  effect: "allow",
  tool: "world.set",
  input: [{ at: "$.key", prefix: "free-" }],
  reason: "play with it",
});

prove<UndoModel, Real>({
  what: "operations and undo: call, approve, roll back, kill switch [G15]",
  commands: [
    command("call", fc.tuple(free, values, messages), call),
    command("call", fc.tuple(free, values, messages), call),
    command("propose", fc.tuple(fc.boolean(), keys, values, messages), propose),
    command("approve", choices, approveOne),
    command("approve", choices, approveOne),
    command("rollback", fc.tuple(by, scopes), rollback),
    command("race", fc.constant(0), race),
    command(
      "somebody else",
      fc.tuple(keys, values),
      async (model: UndoModel, real: Real, [key, value]) => {
        model.values.set(key, value);
        Map.prototype.set.call(real.world.values, key, value);
      },
    ),
    command("stop", fc.boolean(), stopOrResume),
    command("break", fc.boolean(), async (model: UndoModel, { production }: Real, breaks) => {
      model.broken = breaks;
      production.isBroken = breaks;
    }),
  ],
  seen: ({ outcomes, proposals }) => [...outcomes, ...proposals.map(({ state }) => state)],
  mustSee: ["undone", "conflicted", "irreversible", "failed", "skipped", "executed"],
  begin(ground) {
    const { harness, clock, tenant } = ground;
    const world = openGate({ tenant, policy: ALLOWED }, { engine: harness.engine, clock });
    const production = { isBroken: false };
    breakable(world, production);
    const session = world.gate.sessions.open({ id: "s-1", agent: "agent:one" });
    const real = { ground, world, session, decisions: [], operations: [], production };
    return { model: new UndoModel(), real };
  },
  end: assertSame,
});

async function call(model: UndoModel, real: Real, [key, value, message]: [string, number, string]) {
  const asked = { ...request("world.set", { key, value }), messageId: message };
  const answer = await real.session.call(asked);
  assert.equal(answer.answer, model.call(key, value, message), answer.text);
  remember(real, answer);
}

async function propose(
  model: UndoModel,
  real: Real,
  [isBlind, key, value, message]: [boolean, string, number, string],
) {
  const tool = isBlind ? "world.blind" : "world.set";
  // Staged although a rule would allow it: then it is asked about all the same. With a key of its own, because the same call
  // again would find its open question.
  const own = { messageId: message, key: `proposal-${model.proposals.length}` };
  const answer = await real.session.stage([{ ...request(tool, { key, value }), ...own }]);
  assert.equal(answer.answer, model.propose(tool, key, value, message), answer.text);
  remember(real, answer);
}

async function approveOne(model: UndoModel, real: Real, choice: number) {
  const which = chosen(choice, real.decisions.length);
  const id = real.decisions[which] ?? "nowhere";
  const heard = await said(approve(real.world.gate, id), ([answer]) => {
    assert.ok(answer !== undefined);
    remember(real, answer);
    return answer.answer;
  });
  assert.equal(heard, model.approve(which));
}

async function stopOrResume(model: UndoModel, real: Real, stop: boolean) {
  const { killSwitch, decisions, operations } = real.world.gate;
  await killSwitch[stop ? "stop" : "resume"]("drill", BY);
  assert.equal(await killSwitch.isStopped(), stop);
  if (stop) {
    model.stopped = true;
    return;
  }
  model.resume();
  const isOpen = ({ state }: { readonly state: string }) => state === "approved";
  while ((await decisions.listBySession("s-1")).some(isOpen)) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  // The caller got no outcome, so it is looked up.
  for (const { id } of await decisions.listBySession("s-1")) {
    if (!real.decisions.includes(id)) real.decisions.push(id);
  }
  for (const { id, undoOf } of await operations.listBySession("s-1")) {
    if (undoOf === "" && !real.operations.includes(id)) real.operations.push(id);
  }
}

async function rollback(model: UndoModel, real: Real, [who, scope]: [string, Scope]) {
  const { message } = scope;
  const which = scope.which === undefined ? undefined : chosen(scope.which, real.operations.length);
  if (which === real.operations.length) return;
  const part = {
    ...(message === undefined ? {} : { messageId: message }),
    ...(which === undefined ? {} : { operationId: real.operations[which] ?? "" }),
  };
  const outcomes = outcomesOf(await real.session.rollback(who, part), real);
  const isIn = (operation: ModelOperation, place: number) =>
    (message === undefined || operation.message === message) &&
    (which === undefined || which === place);
  assert.deepEqual(outcomes, model.rollback(who, isIn));
}

/** Two people concurrently: each effect is undone once, with the same result as one person after the other. */
async function race(model: UndoModel, real: Real) {
  await Promise.all([real.session.rollback("person:ada"), real.session.rollback("person:bob")]);
  const all = () => true;
  const once = model.copy();
  once.rollback("person:ada", all);
  const twice = once.copy();
  twice.rollback("person:bob", all);
  const stored = await statuses(real);
  const found = [once, twice].find(
    (one) => String(one.operations.map(({ status }) => status)) === String(stored),
  );
  assert.ok(found !== undefined, `after two rollbacks at once: ${stored}`);
  // A change that production refused may have been asked for once or twice; one that it made, never.
  const reached = real.world.effects.length;
  if (!model.broken) assert.ok(reached === once.requests || reached === twice.requests);
  Object.assign(model, found, { requests: reached });
}

async function assertSame(model: UndoModel, real: Real): Promise<void> {
  const { world, decisions, ground } = real;
  assert.deepEqual(
    await statuses(real),
    model.operations.map(({ status }) => status),
  );
  const named = (map: ReadonlyMap<string, unknown>) =>
    [...map].filter(([, value]) => value !== null);
  assert.deepEqual(named(world.values).toSorted(), named(model.values).toSorted());
  assert.equal(world.effects.length, model.requests, "requests that reached production");
  const store = tenantOf(ground, 1);
  const stored = await Promise.all(decisions.map((id) => store.decisions.get(id)));
  assert.deepEqual(
    stored.map(({ state }) => state),
    model.proposals.map(({ state }) => state),
  );
}

async function statuses({ ground, operations }: Real): Promise<string[]> {
  const store = tenantOf(ground, 1);
  const found = await Promise.all(operations.map((id) => store.operations.get(id)));
  return found.map(({ status }) => status);
}

function outcomesOf(report: RollbackReport, { operations }: Real): string[] {
  const outcomes: string[] = operations.map(() => "");
  for (const outcome of ROLLBACK_OUTCOMES) {
    for (const { operationId } of report[outcome]) {
      const place = operations.indexOf(operationId);
      if (place >= 0) outcomes[place] = outcome;
    }
  }
  return outcomes;
}

function remember(real: Real, answer: CallAnswer): void {
  // One that is approved during a stop waits under the id it has.
  if (answer.answer === "pending" && !real.decisions.includes(answer.decisionId)) {
    real.decisions.push(answer.decisionId);
  }
  const { operationId = "" } = answer as { operationId?: string };
  if (operationId !== "") real.operations.push(operationId);
}

/** Production that refuses every change while it is broken; the request is on its ledger all the same. */
function breakable({ values: map, effects }: GateWorld, production: { isBroken: boolean }): void {
  const refuse = () => {
    if (production.isBroken) throw new Error("production is read-only today");
  };
  map.set = (key, value) => {
    refuse();
    // Put back to nothing: it is as if it had never been there.
    if (value === null) map.delete(key);
    else Map.prototype.set.call(map, key, value);
    return map;
  };
  effects.push = (...lines) => {
    const length = Array.prototype.push.apply(effects, lines);
    // The blind tool sets no value: it is refused as it reaches the ledger.
    if (lines.some((line) => line.startsWith("world.blind"))) refuse();
    return length;
  };
}
