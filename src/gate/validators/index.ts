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
  type Rule,
  type RulesOptions,
  rulesValidator,
} from "./rules.ts";
export {
  type ReviewableTool,
  type ToolResult,
  type ValidatedToolOptions,
  validatedTool,
} from "./validated-tool.ts";
