import {
  allowAlways,
  createStaging,
  type Staging,
  type StagingOptions,
} from "../../src/gate/review.ts";
import type { Guard, Validator, Verdict } from "../../src/model/decision.ts";
import {
  type Decision,
  type DecisionState,
  type Diff,
  TIERS,
  type Tier,
} from "../../src/model/decision.ts";
import { type ErrorCode, SallyportError } from "../../src/model/errors.ts";
import type { EngineHarness } from "../../src/store/conformance/index.ts";
import { stagedIn } from "../../src/store/conformance/samples.ts";
import type { TestStore } from "./stores.ts";

type Answer = Partial<Verdict> | (() => unknown);

/** A validator that gives the answers in turn, the last one again and again, and remembers what it was shown. */
export function scripted(name: string, ...answers: readonly Answer[]) {
  const seen: Diff[] = [];
  const validator = {
    name,
    seen,
    review(diff: Diff): Promise<Verdict> {
      const answer = answers[Math.min(seen.length, answers.length - 1)] ?? {};
      seen.push(diff);
      return Promise.resolve(
        typeof answer === "function" ? answer() : answered(name, answer),
      ) as Promise<Verdict>;
    },
  };
  return validator satisfies Validator;
}

function answered(name: string, over: Partial<Verdict>): Verdict {
  return {
    approved: true,
    score: 1,
    reason: `${name} says so`,
    severity: "warn",
    validator: name,
    policyVersion: "p1",
    ...over,
  };
}

/** A guard that gives the answers in turn, the last one again and again, and remembers what it was asked. */
export function scriptedGuard(...answers: readonly (boolean | (() => unknown))[]) {
  const asked: { readonly decision: Decision; readonly target: DecisionState }[] = [];
  const guard = {
    asked,
    allows(decision: Decision, target: DecisionState): Promise<boolean> {
      const answer = answers[Math.min(asked.length, answers.length - 1)] ?? true;
      asked.push({ decision: structuredClone(decision), target });
      return (typeof answer === "function" ? answer() : answer) as Promise<boolean>;
    },
  };
  return guard satisfies Guard;
}

export const NO: Partial<Verdict> = { approved: false, severity: "block", reason: "not allowed" };

export function stagingOver(
  { decisions, clock }: Pick<EngineHarness, "decisions" | "clock">,
  over: Partial<StagingOptions> = {},
): Staging {
  return createStaging({
    store: decisions,
    tech: scripted("tech-v"),
    business: scripted("biz-v"),
    guard: allowAlways,
    clock,
    ...over,
  });
}

export function diffOf(over: Partial<Diff> = {}): Diff {
  const raw = new TextEncoder().encode("payload");
  return { sourceTool: "crm.update", raw, metadata: { tenant: "acme" }, ...over };
}

/** What a call threw, which must be one of ours with that code. */
export async function refusal(code: ErrorCode, call: Promise<unknown>): Promise<SallyportError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof SallyportError && error.code === code) return error;
  throw new Error(`expected a refusal with ${code}, got ${error ?? "success"}`, { cause: error });
}

/** A record where the tier starts, and a staging whose validator for that tier gives the answer. */
export async function atTier(
  tier: Tier,
  open: () => Promise<TestStore>,
  answer: Answer = {},
  over: Partial<StagingOptions> = {},
) {
  const store = await open();
  const validator = scripted(`${tier}-v`, answer);
  const guard = scriptedGuard(true);
  const staging = stagingOver(store, { [tier]: validator, guard, ...over });
  const { id } = await stagedIn(TIERS[tier].from, store);
  return { store, id, validator, guard, staging, review: () => reviewOf(staging, tier, id) };
}

export function reviewOf(staging: Staging, tier: Tier, id: string): Promise<Decision> {
  return tier === "tech" ? staging.validateTech(id) : staging.validateBiz(id);
}
