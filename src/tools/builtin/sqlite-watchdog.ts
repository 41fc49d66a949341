import { workerData } from "node:worker_threads";
import { sleepSync } from "../../util/timers.ts";

const LOOK_EVERY_MS = 500;

/**
 * A thread beside the one that runs SQL. During a query that thread cannot notice that its parent process has died, and
 * would run forever; this one notices and ends both.
 */
const { parent } = workerData as { readonly parent: number };
while (process.ppid === parent) sleepSync(LOOK_EVERY_MS);
process.kill(process.pid, "SIGKILL");
