import assert from "node:assert/strict";
import fc from "fast-check";
import type { Staging } from "../../src/gate/review.ts";
import { DECISION_STATES, type Decision, type DecisionState } from "../../src/model/decision.ts";
import { diffOf, NO, scripted, scriptedGuard, stagingOver } from "../support/staging.ts";
import { DecisionModel, type Opinion } from "./decision-model.ts";
import { choices, chosen, command, type Ground, prove, said, tenantOf } from "./prove.ts";

interface Real {
  readonly ground: Ground;
  readonly ids: string[];
}

/** One call that moves a decision, made the same way on both sides. */
interface Move {
  /** `next` is the one that the state allows. */
  readonly op: "tech" | "business" | "executed" | "failed" | "next";
  readonly which: number;
  readonly verdict: Opinion;
  readonly guard: Opinion;
  readonly end: string;
  readonly place: number;
}

const opinions = fc.constantFrom<Opinion>("yes", "yes", "yes", "yes", "yes", "yes", "no", "throws");
const place = fc.nat({ max: 1 });
const moves = fc.record<Move>({
  op: fc.constantFrom("tech", "business", "executed", "failed", "next", "next", "next", "next"),
  which: choices,
  verdict: opinions,
  guard: opinions,
  end: fc.constantFrom("first", "second", "third"),
  place,
});
const sessions = fc.constantFrom("s-1", "s-2", "s-1", "s-2", "");
const state = ({ state: name }: Decision) => name;

prove<DecisionModel, Real>({
  what: "decisions: seven states, two reviews, guards, races [G15]",
  commands: [
    command("stage", fc.tuple(sessions, place), stage),
    command("move", moves, async (model: DecisionModel, real: Real, choice) => {
      const move = resolved(model, choice);
      assert.equal(await moveReal(real, move), moveModel(model, move, real));
    }),
    command("race", fc.tuple(moves, moves), race),
    command("race", fc.tuple(moves, moves), race),
    command("list", fc.tuple(fc.subarray([...DECISION_STATES]), sessions), list),
    command("stuck", fc.tuple(fc.constantFrom(...DECISION_STATES), fc.nat({ max: 3_000 })), stuck),
    command("wait", fc.integer({ min: 1, max: 2_000 }), async (_, real: Real, ms) => {
      real.ground.clock.advance(ms);
    }),
  ],
  seen: ({ records }) => records.map(({ state: name }) => name),
  mustSee: DECISION_STATES,
  begin: (ground) => ({ model: new DecisionModel(), real: { ground, ids: [] } }),
  async end(model, { ground, ids }) {
    for (const [index, record] of model.records.entries()) {
      const stored = await tenantOf(ground, index).decisions.get(ids[index] ?? "");
      const { executionProof, executionError, updatedAt, sessionId } = stored;
      const end = stored.state === "executed" ? executionProof : executionError;
      assert.deepEqual(
        [stored.state, end, Date.parse(updatedAt), sessionId],
        [record.state, record.end, record.enteredAt, record.session],
      );
    }
  },
});

const MOST = 4;

async function stage(model: DecisionModel, real: Real, [session, at]: [string, number]) {
  if (model.records.length >= MOST) return;
  const staging = stagingAt(real, at);
  const answer = await said(staging.stage(session, diffOf()), (decision) => {
    real.ids.push(decision.id);
    return decision.state;
  });
  assert.equal(answer, model.stage(session, real.ground.clock.now()));
}

/** Two moves asked for at once, perhaps by two processes, must look like one after the other. */
async function race(model: DecisionModel, real: Real, [first, second]: [Move, Move]) {
  const a = resolved(model, first);
  // Mostly on the same record: elsewhere they have nothing to race for.
  const b = resolved(model, second.which % 4 === 0 ? second : { ...second, which: first.which });
  const answers = await Promise.all([moveReal(real, a), moveReal(real, b)]);
  const ab = model.copy();
  const inOrder = [moveModel(ab, a, real), moveModel(ab, b, real)];
  const ba = model.copy();
  const turned = [moveModel(ba, b, real), moveModel(ba, a, real)].toReversed();
  const wasTurned = String(answers) !== String(inOrder);
  if (wasTurned) assert.deepEqual(answers, turned, `neither ${inOrder} nor ${turned}`);
  // Where both orders answer alike, what is stored tells which it was.
  const candidates = wasTurned ? [ba] : String(inOrder) === String(turned) ? [ab, ba] : [ab];
  const stored = await Promise.all(
    real.ids.map((id) => tenantOf(real.ground, 0).decisions.get(id)),
  );
  const fits = ({ records }: DecisionModel) =>
    stored.every(({ state: now, executionProof, executionError }, index) => {
      const record = records[index];
      const end = now === "executed" ? executionProof : executionError;
      return record?.state === now && record.end === end;
    });
  const found = candidates.find(fits);
  assert.ok(found !== undefined, "what is stored fits no order");
  model.records = found.records;
}

async function list(
  model: DecisionModel,
  { ground, ids }: Real,
  [states, session]: [DecisionState[], string],
) {
  const found = await tenantOf(ground, 1).decisions.list({ states, sessionId: session });
  const wanted = model.indexes(
    (one) =>
      (states.length === 0 || states.includes(one.state as DecisionState)) &&
      (session === "" || one.session === session),
  );
  assert.deepEqual(
    found.map(({ id }) => id),
    wanted.map((index) => ids[index]),
  );
}

async function stuck(
  model: DecisionModel,
  { ground, ids }: Real,
  [name, forMs]: [DecisionState, number],
) {
  const found = await tenantOf(ground, 0).decisions.listStuck(name, forMs);
  const wanted = model.stuckIn(name, forMs, ground.clock.now()).map((index) => ids[index]);
  assert.deepEqual(found.map(({ id }) => id).toSorted(), wanted.toSorted());
}

type Resolved = Move & { readonly op: Exclude<Move["op"], "next"> };

function resolved({ records }: DecisionModel, move: Move): Resolved {
  const index = chosen(move.which, records.length);
  const next = { pending_tech: "tech", pending_ml: "business" } as const;
  const now = records[index]?.state as keyof typeof next;
  const last = move.end === "first" ? "failed" : "executed";
  return { ...move, which: index, op: move.op === "next" ? (next[now] ?? last) : move.op };
}

function moveModel(model: DecisionModel, move: Resolved, { ground }: Real): string {
  const { op, which: index, verdict, guard, end } = move;
  const now = ground.clock.now();
  if (op === "tech" || op === "business") return model.review(op, index, verdict, guard, now);
  return model.close(index, op, end, now);
}

function moveReal(real: Real, { op, which: index, verdict, guard, end, place: at }: Resolved) {
  const staging = stagingAt(real, at, verdict, guard);
  const id = real.ids[index] ?? "nowhere";
  const calls = {
    tech: () => staging.validateTech(id),
    business: () => staging.validateBiz(id),
    executed: () => staging.markExecuted(id, end),
    failed: () => staging.markFailed(id, end),
  };
  return said(calls[op](), state);
}

function stagingAt(
  { ground }: Real,
  at: number,
  verdict: Opinion = "yes",
  guard: Opinion = "yes",
): Staging {
  const fails = () => {
    throw new Error("broken");
  };
  const answer = { yes: {}, no: NO, throws: fails }[verdict];
  return stagingOver(
    { decisions: tenantOf(ground, at).decisions, clock: ground.clock },
    {
      tech: scripted("tech-v", answer),
      business: scripted("biz-v", answer),
      guard: scriptedGuard(guard === "throws" ? fails : guard === "yes"),
    },
  );
}
