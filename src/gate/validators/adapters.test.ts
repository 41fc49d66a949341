import { expect, test, vi } from "vitest";
import type { Validator, Verdict } from "../../model/decision.ts";

import { memoryStore } from "../../store/memory/index.ts";
import { allowAlways, createStaging, reviewRequest } from "../review.ts";
import type { Evaluation, Evaluator } from "./adapters.ts";
import * as adapters from "./adapters.ts";
import {
  evaluatorAsReplayListener,
  evaluatorAsValidator,
  validatorAsEvaluator,
  validatorAsReplayListener,
} from "./index.ts";

const options = { signal: new AbortController().signal };
const diff = reviewRequest({ sourceTool: "t", raw: new Uint8Array([1]), metadata: {} });
const event = { type: "decision.staged", diff };

function scoring(answer: Evaluation | Error): Evaluator {
  return {
    name: "quality",
    async evaluate() {
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
}

function saying(answer: Partial<Verdict> | Error): Validator {
  return {
    name: "rules",
    async review() {
      if (answer instanceof Error) throw answer;
      const verdict = { approved: true, score: 1, reason: "", severity: "" } as const;
      return { ...verdict, validator: "rules", policyVersion: "1", ...answer };
    },
  };
}

test("at or above the pass mark approves, below it refuses, and the score is copied [I-13]", async () => {
  const cases = [
    [0.5, true],
    [0.500001, true],
    [1, true],
    [0.499999, false],
    [0, false],
    [-3, false],
  ] as const;
  for (const [score, approved] of cases) {
    const validator = evaluatorAsValidator({
      evaluator: scoring({ score }),
      passMark: 0.5,
      policyVersion: "9",
    });
    expect(await validator.review(diff, options), `${score}`).toMatchObject({
      approved,
      score,
      severity: approved ? "" : "block",
      validator: "quality",
      policyVersion: "9",
    });
  }
});

test("the reason names score, pass mark and breakdown [I-13]", async () => {
  const evaluator = scoring({ score: 0.3, breakdown: { safety: 0.9, cost: 0.1 } });
  const validator = evaluatorAsValidator({ evaluator, passMark: 0.5, policyVersion: "1" });
  const { reason } = await validator.review(diff, options);
  expect(reason).toBe("score 0.3 is below the pass mark 0.5 (safety 0.9, cost 0.1)");
});

test("the pass mark has to be given, and has to be a number [I-13 I-08]", () => {
  const evaluator = scoring({ score: 1 });
  const make = (change: object) => () =>
    evaluatorAsValidator({ evaluator, passMark: 0.5, policyVersion: "1", ...change });
  expect(make({})).not.toThrow();
  for (const passMark of [undefined, null, Number.NaN, Number.NEGATIVE_INFINITY, "0.5"]) {
    expect(make({ passMark })).toThrow(TypeError);
  }
});

test("a score that is no number, or an evaluator that fails, is never a pass [I-13]", async () => {
  const odd = [
    Number.NaN,
    Number.POSITIVE_INFINITY,
    "1",
    null,
    undefined,
    [1],
    { valueOf: () => 1 },
  ];
  const answers: readonly unknown[] = [...odd.map((score) => ({ score })), undefined, null, 1];
  for (const answer of answers) {
    const evaluator: Evaluator = { name: "quality", evaluate: () => answer as Evaluation };
    for (const passMark of [-1e9, 0, 0.5]) {
      const validator = evaluatorAsValidator({ evaluator, passMark, policyVersion: "1" });
      await expect(validator.review(diff, options)).rejects.toThrow(/Evaluator "quality"/);
    }
  }
  const broken = scoring(new Error("down"));
  const validator = evaluatorAsValidator({ evaluator: broken, passMark: 0, policyVersion: "1" });
  await expect(validator.review(diff, options)).rejects.toThrow("down");
  const stop = new AbortController();
  const hanging: Evaluator = { name: "slow", evaluate: () => new Promise(() => {}) };
  const waiting = evaluatorAsValidator({ evaluator: hanging, passMark: 0, policyVersion: "1" });
  const review = waiting.review(diff, { signal: stop.signal });
  stop.abort(new Error("over time"));
  await expect(review).rejects.toThrow("over time");
});

test("one adapted evaluator serves both tiers, and score and severity are stored [S0-51 S0-52]", async () => {
  await using store = memoryStore();
  let score = 0.9;
  const evaluator: Evaluator = { name: "quality", evaluate: () => ({ score }) };
  const validator = evaluatorAsValidator({
    evaluator,
    passMark: 0.5,
    policyVersion: "1",
    severity: "warn",
  });
  const staging = createStaging({
    store: store.tenant("default").decisions,
    tech: validator,
    business: validator,
    guard: allowAlways,
  });
  const { id } = await staging.stage("s", diff);
  const tech = await staging.validateTech(id);
  expect(tech).toMatchObject({ state: "pending_ml", techVerdict: { score: 0.9, severity: "" } });
  score = 0.3;
  const business = await staging.validateBiz(id);
  expect(business).toMatchObject({
    state: "rejected_ml",
    techVerdict: { approved: true, score: 0.9 },
    bizVerdict: { approved: false, score: 0.3, severity: "warn", validator: "quality" },
  });
  const second = await staging.stage("s", diff);
  expect((await staging.validateTech(second.id)).state).toBe("rejected_tech");
});

test("a warning with a score passes either tier and is kept in the record [S0-51 S0-52]", async () => {
  await using store = memoryStore();
  const poor = saying({ severity: "warn", score: 0.3, reason: "the plan is poor" });
  const { decisions } = store.tenant("default");
  const staging = createStaging({
    store: decisions,
    tech: poor,
    business: poor,
    guard: allowAlways,
  });
  const { id } = await staging.stage("s", diff);
  await staging.validateTech(id);
  const kept = { approved: true, score: 0.3, severity: "warn", reason: "the plan is poor" };
  expect(await staging.validateBiz(id)).toMatchObject({
    state: "approved",
    techVerdict: kept,
    bizVerdict: kept,
  });
});

test("validator as evaluator: the verdict's score, with yes and no as a breakdown [I-11]", async () => {
  const evaluate = (answer: Partial<Verdict>) =>
    validatorAsEvaluator({ validator: saying(answer) }).evaluate(diff, options);
  expect(await evaluate({ score: 0.8 })).toEqual({ score: 0.8, breakdown: { approved: 1 } });
  expect(await evaluate({ approved: false, score: 0.8 })).toMatchObject({
    breakdown: { approved: 0 },
  });
  expect(await evaluate({ severity: "block" })).toMatchObject({ breakdown: { approved: 0 } });
  const broken = validatorAsEvaluator({ validator: saying(new Error("down")) });
  await expect(broken.evaluate(diff, options)).rejects.toThrow("down");
  expect(broken.name).toBe("rules");
});

test("there and back: a validator made an evaluator made a validator judges by its score [I-11]", async () => {
  const evaluator = validatorAsEvaluator({ validator: saying({ score: 0.6 }) });
  const again = evaluatorAsValidator({ evaluator, passMark: 0.7, policyVersion: "1" });
  expect(await again.review(diff, options)).toMatchObject({ approved: false, score: 0.6 });
});

test("validator and evaluator as replay listeners consume events with a diff and return nothing [I-11]", async () => {
  const log = vi.fn();
  const verdicts = vi.fn();
  const scores = vi.fn();
  const reviewing = validatorAsReplayListener({
    validator: saying({ score: 0.8 }),
    onVerdict: verdicts,
    log,
  });
  const scoringAgain = evaluatorAsReplayListener({
    evaluator: scoring({ score: 0.2 }),
    onEvaluation: scores,
    log,
  });
  for (const listener of [reviewing, scoringAgain]) {
    expect(await listener.onEvent(event, options)).toBe(undefined);
    expect(await listener.onEvent({ type: "task.claimed" }, options)).toBe(undefined);
  }
  expect(verdicts.mock.calls).toEqual([[expect.objectContaining({ score: 0.8 }), event]]);
  expect(scores.mock.calls).toEqual([[{ score: 0.2 }, event]]);
  expect(log).not.toHaveBeenCalled();
});

test("a listener's failures are logged and not thrown, its callback's and the log's included [I-12]", async () => {
  const down = new Error("down");
  const fail = () => Promise.reject(down);
  const onVerdict = () => {};
  const onEvaluation = () => {};
  const make = [
    (log: () => void) => validatorAsReplayListener({ validator: saying(down), onVerdict, log }),
    (log: () => void) => validatorAsReplayListener({ validator: saying({}), onVerdict: fail, log }),
    (log: () => void) => evaluatorAsReplayListener({ evaluator: scoring(down), onEvaluation, log }),
    (log: () => void) =>
      evaluatorAsReplayListener({ evaluator: scoring({ score: 1 }), onEvaluation: fail, log }),
  ];
  for (const listenerWith of make) {
    const log = vi.fn();
    const listener = listenerWith(log);
    await listener.onEvent(event, options);
    expect(log.mock.calls).toEqual([[down, { listener: listener.name, event }]]);
    await listenerWith(() => {
      throw new Error("the disk is full");
    }).onEvent(event, options);
    await listenerWith(async () => fail()).onEvent(event, options);
  }
});

test("four adapters and no way back from a replay listener [I-11]", () => {
  const names = Object.keys(adapters).filter((name) => /[a-z]As[A-Z]/.test(name));
  expect(names.toSorted()).toEqual([
    "evaluatorAsReplayListener",
    "evaluatorAsValidator",
    "validatorAsEvaluator",
    "validatorAsReplayListener",
  ]);
});

test("an adapter without its parts cannot be made [I-08]", () => {
  const [validator, evaluator, log] = [saying({}), scoring({ score: 1 }), () => {}];
  const [onVerdict, onEvaluation] = [() => {}, () => {}];
  const attempts: readonly [(parts: never) => unknown, object][] = [
    [validatorAsEvaluator, { validator }],
    [evaluatorAsValidator, { evaluator, passMark: 1, policyVersion: "1" }],
    [validatorAsReplayListener, { validator, onVerdict, log }],
    [evaluatorAsReplayListener, { evaluator, onEvaluation, log }],
  ];
  for (const [make, parts] of attempts) {
    expect(() => make(parts as never)).not.toThrow();
    for (const missing of Object.keys(parts)) {
      for (const nothing of [undefined, null, {}]) {
        const broken = { ...parts, [missing]: nothing };
        expect(() => make(broken as never), `${make.name} without ${missing}`).toThrow(TypeError);
      }
    }
  }
  const severity = "fatal" as "warn";
  expect(() =>
    evaluatorAsValidator({ evaluator, passMark: 1, policyVersion: "1", severity }),
  ).toThrow(TypeError);
});
