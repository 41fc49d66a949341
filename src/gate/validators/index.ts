export {
  type Evaluation,
  type Evaluator,
  type EvaluatorAsValidatorOptions,
  type EvaluatorListenerOptions,
  evaluatorAsReplayListener,
  evaluatorAsValidator,
  type ReplayEvent,
  type ReplayListener,
  type ReplayLog,
  type ReplayOptions,
  replay,
  type ValidatorListenerOptions,
  validatorAsEvaluator,
  validatorAsReplayListener,
} from "./adapters.ts";
export { allMustApprove, type CompositeOptions, waterfall } from "./composite.ts";
export {
  decodeJson,
  type Objection,
  type RulesOptions,
  rulesValidator,
  type ValidatorRule,
} from "./rules.ts";
export {
  createBreaker,
  type ValidatedToolOptions,
  validatedTool,
} from "./validated-tool.ts";
