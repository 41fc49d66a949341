/**
 * One of several processes that work off the same Markdown file: it claims the next task until there is none. Each claim
 * that the store acknowledged goes to standard output as one line, written before anything else happens.
 *
 * Arguments: FILE, NAME, and for a crash test the point at which to die (see `dieAt`).
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { createTaskList } from "../../src/tasks/create-task-list.ts";
import { markdownTaskStore } from "../../src/tasks/markdown-task-store.ts";

/** How far the new file has come when the process dies. */
export type CrashPoint = "opened" | "half written" | "written" | "flushed" | "renamed";

const [path = "", claimer = "", point = ""] = process.argv.slice(2);
if (point !== "") dieAt(point);
const tasks = createTaskList({ store: markdownTaskStore({ path, waitMs: 60_000 }) });
for (let task = await tasks.claimNext({ claimer }); task !== undefined; ) {
  fs.writeSync(1, `${task.id}\n`);
  task = await tasks.claimNext({ claimer });
}

/** Kills this process, as the kernel would, at one point of replacing the file. */
function dieAt(where: string): void {
  const die = () => process.kill(process.pid, "SIGKILL");
  const { open, rename } = fs.promises;
  fs.promises.open = async (...args) => {
    const handle = await open(...args);
    if (String(args[0]).endsWith(".tmp")) {
      if (where === "opened") die();
      const { writeFile, sync } = handle;
      handle.writeFile = async (text, ...rest) => {
        if (where !== "half written") return writeFile.call(handle, text, ...rest);
        await writeFile.call(handle, String(text).slice(0, String(text).length / 2));
        die();
      };
      handle.sync = async () => {
        if (where === "written") die();
        return sync.call(handle);
      };
    }
    return handle;
  };
  fs.promises.rename = async (...args) => {
    if (where === "flushed") die();
    await rename(...args);
    if (where === "renamed") die();
  };
  syncBuiltinESMExports();
}
