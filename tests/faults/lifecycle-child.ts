/**
 * The lifecycle over a SQLite file, to be run where its system calls can be made to fail. Arguments: the file, production's
 * port, the story's name, the thread mode, and `die` when the process is to end right after the first refusal. What it was
 * told goes to its standard output line by line, so that nothing of it is among the calls that fail.
 */
import { writeSync } from "node:fs";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { type Line, liveThrough, refusal, storyOf } from "./lifecycle.ts";

export const TENANT = "acme";
const OPENINGS = 3;

if (process.argv[1] === import.meta.filename) await main();

async function main(): Promise<void> {
  const [file = "", productionPort = "", name = "", thread = "", then = ""] = process.argv.slice(2);
  const say = (line: Line) => {
    writeSync(1, `${JSON.stringify(line)}\n`);
    if ("refused" in line && then === "die") process.kill(process.pid, "SIGKILL");
  };
  const store = openStore();
  function openStore() {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return sqliteStore({ file, thread: thread === "always" ? "always" : "never" });
      } catch (error) {
        const line = refusal("open", "open", error);
        say(line);
        if (line.retry !== "safe" || attempt === OPENINGS) return undefined;
      }
    }
  }
  if (store === undefined) return;
  say({ opened: true });
  const story = storyOf(name);
  await liveThrough({ store, tenant: TENANT, productionPort: Number(productionPort), story, say });
  await store.close();
}
