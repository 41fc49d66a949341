import type { DecisionCase, EngineCase } from "./case.ts";
import { confirmationCases } from "./confirmation-cases.ts";
import { decisionQueryCases, decisionStuckCases } from "./decision-query-cases.ts";
import { decisionRaceCases } from "./decision-race-cases.ts";
import { decisionClosingCases, decisionReviewCases } from "./decision-review-cases.ts";
import { decisionInputCases, decisionStageCases } from "./decision-stage-cases.ts";

import { delegationCases } from "./delegation-cases.ts";
import { engineConditionCases, engineRequireCases } from "./engine-condition-cases.ts";
import { engineFindCases, engineLifeCases } from "./engine-find-cases.ts";
import { engineGroupCases } from "./engine-group-cases.ts";
import { engineTakeCases, engineTakersCases } from "./engine-take-cases.ts";
import { engineTrailCases } from "./engine-trail-cases.ts";
import { engineDeleteCases, engineWriteCases } from "./engine-write-cases.ts";

import { grantCases } from "./grant-cases.ts";
import { interactionCases } from "./interaction-cases.ts";
import { operationCases } from "./operation-cases.ts";
import { trailCases } from "./trail-cases.ts";

export type {
  DecisionCase,
  DecisionHarness,
  EngineCase,
  EngineHarness,
  StoreCase,
} from "./case.ts";
export { type CaseResult, type HarnessOptions, harnessOf, runCase, runCases } from "./case.ts";
export { START } from "./samples.ts";

/**
 * The contract of `DecisionStore`, for stores of your own. Each case gets a fresh store whose clock stands at `START`:
 *
 * ```ts
 * for (const result of await runCases(open, decisionCases)) console.log(result.outcome, result.name);
 * ```
 */
export const decisionCases: readonly DecisionCase[] = [
  ...decisionStageCases,
  ...decisionInputCases,
  ...decisionReviewCases,
  ...decisionClosingCases,
  ...decisionQueryCases,
  ...decisionStuckCases,
  ...decisionRaceCases,
];

/** The contract of `Engine`, with what the nouns over it promise about the trail. `harnessOf` makes the harness. */
export const engineCases: readonly EngineCase[] = [
  ...engineWriteCases,
  ...engineRequireCases,
  ...engineDeleteCases,
  ...engineTakeCases,
  ...engineTakersCases,
  ...engineConditionCases,
  ...engineFindCases,
  ...engineGroupCases,
  ...engineTrailCases,
  ...engineLifeCases,
  ...trailCases,
  ...operationCases,
  ...confirmationCases,
  ...delegationCases,
  ...grantCases,
  ...interactionCases,
];
