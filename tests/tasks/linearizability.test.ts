import { describe, expect, test } from "vitest";
import { seededRandom } from "../../src/util/random.ts";
import { type Call, checkLinearizable, type Model } from "./linearizability.ts";
import { type TaskInput, type TaskOutput, type TaskState, taskModel } from "./task-model.ts";

type TaskCall = Call<TaskInput, TaskOutput>;
type Op = TaskInput["op"];

const judge = (history: readonly TaskCall[]) => checkLinearizable(taskModel, history).linearizable;

/** A call from `start` to `end`, answered yes in its middle unless `more` says otherwise. */
function yes(
  op: Op,
  [start, end]: [number, number],
  more: Partial<TaskInput & TaskOutput & { fence: number | "any" }> = {},
): TaskCall {
  const { worker = "w", fence, at = (start + end) / 2, ...rest } = more as Record<string, never>;
  const claim = op === "claim";
  return {
    start,
    end,
    input: { op, worker, ...(claim || fence === undefined ? {} : { fence }) },
    output: { ok: true, at, ...(claim ? { fence } : {}), ...(rest as object) },
  };
}

function no(
  op: Op,
  code: string,
  [start, end]: [number, number],
  more: { fence?: number; at?: number } = {},
): TaskCall {
  const { fence, at = (start + end) / 2 } = more;
  return {
    start,
    end,
    input: { op, ...(fence === undefined ? {} : { fence }) },
    output: { ok: false, at, code },
  };
}

function unknown(op: Op, start: number, more: Partial<TaskInput> = {}): TaskCall {
  return { start, end: Infinity, input: { op, ...more }, output: undefined };
}

const claim = (span: [number, number], fence: number, leaseUntil?: number, at?: number) =>
  yes("claim", span, {
    fence,
    ...(leaseUntil === undefined ? {} : { leaseUntil }),
    ...(at === undefined ? {} : { at }),
  });

const RIGHT: Readonly<Record<string, readonly TaskCall[]>> = {
  "nothing happened": [],
  "claimed and completed": [claim([0, 2], 2, 100), yes("complete", [4, 6], { fence: 2 })],
  "completed straight from pending": [yes("complete", [0, 2])],
  "two concurrent claims, one lost": [
    claim([0, 10], 2, 100),
    no("claim", "concurrent_modification", [1, 9]),
  ],
  "two concurrent claims, the loser called first and answered last": [
    no("claim", "not_claimable", [0, 20], { at: 8 }),
    claim([1, 10], 2, 100),
  ],
  "renewed beyond the first lease": [
    claim([0, 2], 2, 50),
    yes("renew", [40, 42], { fence: 2, leaseUntil: 90 }),
    yes("complete", [80, 82], { fence: 2 }),
  ],
  "taken over after the lease, and the late one refused": [
    claim([0, 2], 2, 50),
    claim([60, 62], 3, 110),
    no("complete", "claim_lost", [63, 65], { fence: 2 }),
    yes("complete", [70, 72], { fence: 3 }),
  ],
  "expired, claimed again, failed, re-opened, completed": [
    claim([0, 2], 2, 50),
    yes("expire", [51, 53]),
    claim([54, 56], 4, 100),
    yes("fail", [60, 62], { fence: 4 }),
    no("claim", "not_claimable", [63, 64]),
    yes("reopen", [65, 66]),
    claim([67, 68], 7, 200),
    yes("complete", [70, 71], { fence: 7 }),
    no("complete", "already_completed", [72, 73], { fence: 7 }),
  ],
  "released and claimed by another": [
    claim([0, 2], 2, 50),
    yes("release", [3, 4], { fence: 2 }),
    claim([5, 6], 4, 99),
  ],
  "a killed worker's claim did happen": [
    unknown("claim", 0),
    no("claim", "not_claimable", [5, 6]),
    claim([60, 62], 3, 99),
  ],
  "a killed worker's claim did not happen": [unknown("claim", 0), claim([5, 6], 2, 99)],
  "a completion without an answer did happen": [
    claim([0, 2], 2, 50),
    unknown("complete", 3, { fence: 2 }),
    no("complete", "already_completed", [10, 12], { fence: 2 }),
  ],
  "a completion without an answer happens much later": [
    claim([0, 2], 2, 50),
    unknown("complete", 3, { fence: 2 }),
    yes("renew", [10, 12], { fence: 2, leaseUntil: 90 }),
    no("claim", "not_claimable", [95, 96]),
  ],
  "a renewal without an answer": [
    claim([0, 2], 2, 50),
    unknown("renew", 40, { fence: 2 }),
    yes("complete", [60, 61], { fence: 2 }),
  ],
  "the leader ends a leased claim": [
    claim([0, 2], 2, 50),
    yes("complete", [3, 4], { fence: "any" }),
  ],
  "many concurrent calls on one task": [
    claim([0, 100], 2, 500),
    ...Array.from({ length: 12 }, (_, n) => no("claim", "concurrent_modification", [n, 90 + n])),
    yes("complete", [101, 102], { fence: 2 }),
  ],
};

const WRONG: Readonly<Record<string, readonly TaskCall[]>> = {
  "1 two live claims": [claim([0, 2], 2, 100), claim([3, 4], 3, 100)],
  "2 two concurrent claims with the same fence": [claim([0, 10], 2, 100), claim([0, 10], 2, 100)],
  "3 two completions": [yes("complete", [0, 2]), yes("complete", [3, 4])],
  "4 completed under an old fence after a take-over": [
    claim([0, 2], 2, 50),
    claim([60, 62], 3, 110),
    yes("complete", [63, 65], { fence: 2 }),
  ],
  "5 completed after the lease was over": [
    claim([0, 2], 2, 50),
    yes("complete", [60, 61], { fence: 2 }),
  ],
  "6 a fence that goes back": [
    claim([0, 2], 5, 50),
    yes("release", [3, 4], { fence: 5 }),
    claim([5, 6], 4, 99),
  ],
  "7 a fence that is used again": [
    claim([0, 2], 2, 50),
    yes("expire", [51, 52]),
    claim([53, 54], 2, 99),
  ],
  "8 renewed after it was over: a revived lease": [
    claim([0, 2], 2, 50),
    yes("renew", [55, 56], { fence: 2, leaseUntil: 99 }),
  ],
  "9 renewed after a takeover": [
    claim([0, 2], 2, 50),
    claim([55, 56], 3, 110),
    yes("renew", [57, 58], { fence: 2, leaseUntil: 150 }),
  ],
  "10 expired while it was live": [claim([0, 2], 2, 50), yes("expire", [20, 21])],
  "11 claimed although completed before": [yes("complete", [0, 2]), claim([3, 4], 2, 50)],
  "12 claimed although failed and not re-opened": [yes("fail", [0, 2]), claim([3, 4], 3, 50)],
  "13 re-opened without a failure": [claim([0, 2], 2, 50), yes("reopen", [3, 4])],
  "14 not claimable although it was never claimed": [no("claim", "not_claimable", [0, 2])],
  "15 already completed before any completion": [
    no("complete", "already_completed", [0, 2]),
    yes("complete", [3, 4]),
  ],
  "16 lost although it holds": [
    claim([0, 2], 2, 50),
    no("renew", "claim_lost", [10, 12], { fence: 2 }),
  ],
  "17 a claim is forgotten: lost update": [
    claim([0, 2], 2, 500),
    no("complete", "claim_lost", [3, 4], { fence: 2 }),
    yes("complete", [5, 6], { fence: 2 }),
  ],
  "18 released with another worker's fence": [
    claim([0, 2], 2, 50),
    yes("release", [3, 4], { fence: 9 }),
  ],
  "19 a leased claim ended without a fence": [claim([0, 2], 2, 50), yes("complete", [3, 4])],
  "20 a call that was answered before it could have happened": [
    no("claim", "not_claimable", [0, 1]),
    claim([2, 3], 2, 50),
    yes("complete", [4, 5], { fence: 2 }),
  ],
  "21 claimed under a lease that a renewal had made longer": [
    claim([0, 2], 2, 50),
    yes("renew", [40, 41], { fence: 2, leaseUntil: 90 }),
    claim([60, 61], 3, 120),
  ],
  "22 a killed claim cannot have taken a completed task": [
    yes("complete", [0, 2]),
    unknown("claim", 3),
    claim([4, 5], 3, 50),
  ],
  "23 failed twice": [yes("fail", [0, 2]), yes("fail", [3, 4])],
};

describe("linearizable histories", () => {
  test.each(Object.entries(RIGHT))("%s", (_, history) => {
    expect(judge(history)).toBe(true);
  });
});

describe("histories that are not linearizable", () => {
  test.each(Object.entries(WRONG))("%s", (_, history) => {
    expect(judge(history)).toBe(false);
  });
});

test("the verdict has an order, or the longest possible part of one", () => {
  const [first, second] = [claim([0, 10], 2, 100), yes("complete", [5, 20], { fence: 2 })];
  const right = checkLinearizable(taskModel, [second, first]);
  expect(right).toEqual({ linearizable: true, order: [first, second] });
  const wrong = checkLinearizable(taskModel, [first, claim([30, 31], 3, 200)]);
  expect(wrong).toEqual({ linearizable: false, longest: [first] });
});

describe("compared with a checker that tries every order", () => {
  const random = seededRandom("orders");
  const pick = (most: number) =>
    ((random.bytes(2)[0] ?? 0) * 256 + (random.bytes(1)[0] ?? 0)) % most;

  /** Six calls with spans, fences and answers by chance: most are wrong, some are right. */
  const anyHistory = (): TaskCall[] =>
    Array.from({ length: 2 + pick(4) }, () => {
      const start = pick(12) * 10;
      const span: [number, number] = [start, start + 5 + pick(60)];
      const fence = 1 + pick(3);
      switch (pick(8)) {
        case 0:
        case 1:
          return claim(span, fence, start + 20 + pick(60));
        case 2:
          return yes("complete", span, { fence });
        case 3:
          return yes("renew", span, { fence, leaseUntil: start + 50 });
        case 4:
          return no("claim", "not_claimable", span);
        case 5:
          return no("complete", ["already_completed", "claim_lost"][pick(2)] ?? "", span, {
            fence,
          });
        case 6:
          return unknown((["claim", "complete", "renew"] as const)[pick(3)] ?? "claim", start, {
            fence,
          });
        default:
          return yes((["expire", "fail", "reopen", "release"] as const)[pick(4)] ?? "fail", span, {
            fence,
          });
      }
    });

  test("both checkers agree on 4,000 small histories", () => {
    const counts = { right: 0, wrong: 0 };
    for (let n = 0; n < 4_000; n += 1) {
      const history = anyHistory();
      const slow = tryAllOrders(taskModel, history, taskModel.initial);
      expect(judge(history), JSON.stringify(history)).toBe(slow);
      counts[slow ? "right" : "wrong"] += 1;
    }
    expect(Math.min(counts.right, counts.wrong)).toBeGreaterThan(300);
  });

  test("a real history with extended spans is linearizable", () => {
    for (let n = 0; n < 300; n += 1) expect(judge(realHistory(pick))).toBe(true);
  });
});

/** Tries every order: any call that does not follow a remaining one may be next. */
function tryAllOrders(
  model: Model<TaskState, TaskInput, TaskOutput>,
  left: readonly TaskCall[],
  state: TaskState,
): boolean {
  if (left.every(({ output }) => output === undefined)) return true;
  return left.some((call) => {
    if (left.some((other) => other.end < call.start)) return false;
    const rest = left.filter((other) => other !== call);
    return model
      .step(state, call.input, call.output)
      .some((next) => tryAllOrders(model, rest, next));
  });
}

/** Thirty sequential calls, whose spans are then extended. */
function realHistory(pick: (most: number) => number): TaskCall[] {
  const calls: TaskCall[] = [];
  let states: readonly TaskState[] = [taskModel.initial];
  for (let at = 10; calls.length < 30 && at < 5_000; at += 1 + pick(20)) {
    const op =
      (["claim", "renew", "complete", "release", "expire", "fail", "reopen"] as const)[pick(7)] ??
      "claim";
    const [state] = states as [TaskState];
    const fence = op === "claim" ? state.fence + 1 : state.fence;
    const output: TaskOutput = {
      ok: true,
      at,
      ...(op === "claim" ? { fence } : {}),
      leaseUntil: at + 30,
    };
    const input: TaskInput = { op, ...(op === "claim" ? {} : { fence }) };
    const next = taskModel.step(state, input, output);
    if (next.length === 0) continue;
    // A final status would end the story too early.
    if (op === "complete" && calls.length < 25) continue;
    states = next;
    calls.push({ start: at - pick(9), end: at + pick(9), input, output });
  }
  return calls;
}
