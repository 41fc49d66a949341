// Stands in for the write thread in a test: it says that it is ready, and dies as soon as it is handed something.

import { parentPort } from "node:worker_threads";

parentPort?.once("message", () => process.exit(1));
parentPort?.postMessage("ready");
