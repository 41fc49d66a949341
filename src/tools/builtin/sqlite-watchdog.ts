import { workerData } from "node:worker_threads";
import { sleepSync } from "../../util/timers.ts";

const LOOK_EVERY_MS = 500;

/**
 * A thread beside the one that runs SQL. While that one is inside a query it does not notice that the process which asked
 * has died, and would go on for ever; this one notices and ends both.
 */
const { parent } = workerData as { readonly parent: number };
while (process.ppid === parent) sleepSync(LOOK_EVERY_MS);
process.kill(process.pid, "SIGKILL");
