export { TASK_MOVES, type Task } from "../model/task.ts";
export { claimHold } from "../store/engine-tasks.ts";
export type { TaskStore } from "../store/tasks.ts";
export { createTaskList, memoryTaskStore, type TaskList } from "./create-task-list.ts";
export { exportJsonTasks, importJsonTasks } from "./json-tasks.ts";
export { checkClaim, tiesFulfilled } from "./rules.ts";
export { startHeartbeat, startWatchdog } from "./watchdog.ts";
