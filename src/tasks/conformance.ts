import { taskLeaseCases } from "./conformance/lease-cases.ts";
import { taskAddCases, taskClaimCases, taskClosingCases } from "./conformance/life-cases.ts";
import { taskBatchCases, taskQueueCases } from "./conformance/queue-cases.ts";
import { type TaskCase, taskLayerCases, taskStoreCases } from "./conformance/store-cases.ts";

export { type CaseResult, runCase, runCases } from "../store/conformance/case.ts";
export {
  type OpenTaskStore,
  type TaskCase,
  type TaskHarness,
  taskHarness,
} from "./conformance/store-cases.ts";

/**
 * The contract of `TaskStore`, and of the task list over it, for stores of your own:
 *
 * ```ts
 * const open = () => taskHarness(async () => ({ store: myTaskStore() }));
 * for (const result of await runCases(open, taskCases)) console.log(result.outcome, result.name);
 * ```
 */
export const taskCases: readonly TaskCase[] = [
  ...taskStoreCases,
  ...taskLayerCases,
  ...taskAddCases,
  ...taskClaimCases,
  ...taskClosingCases,
  ...taskLeaseCases,
  ...taskQueueCases,
  ...taskBatchCases,
];
