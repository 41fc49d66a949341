import { taskAddCases, taskClaimCases } from "./conformance/add-cases.ts";
import { taskBatchCases } from "./conformance/batch-cases.ts";
import type { TaskCase } from "./conformance/case.ts";

import { taskClosingCases } from "./conformance/closing-cases.ts";
import { taskLayerCases } from "./conformance/layer-cases.ts";
import { taskLeaseCases } from "./conformance/lease-cases.ts";
import { taskQueueCases } from "./conformance/queue-cases.ts";
import { taskStoreCases } from "./conformance/store-cases.ts";

export { type CaseResult, runCase, runCases } from "../store/conformance/case.ts";
export {
  type OpenTaskStore,
  type TaskCase,
  type TaskHarness,
  taskHarness,
} from "./conformance/case.ts";

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
