import path from "node:path";
import { Command } from "commander";
import { createSallyport } from "../../port/create-sallyport.ts";
import { startUpkeep } from "../../port/upkeep.ts";
import { errorText } from "../../util/error-text.ts";
import type { Shared } from "../connect.ts";
import { openStore } from "../open-store.ts";
import { readConfig } from "../read-config.ts";
import { shown } from "../render.ts";
import { untilStopped } from "../until-stopped.ts";
import { whole } from "./serve.ts";

interface Flags extends Shared {
  readonly tenant: string;
  readonly every: number;
  readonly database?: string;
  readonly config?: string;
}

/** A process without a server: goes on with what others left behind, closes and escalates questions. */
export function workerCommand(): Command {
  return new Command("worker")
    .description("Goes on with what was left behind, and closes what nobody answered in time.")
    .option("--config <module>", "tools, reviews and rules, as for serve")
    .option("--tenant <name>", "whose data it is", "default")
    .option("--database <url>", "a PostgreSQL database instead of a file")
    .option("--every <ms>", "how often it looks", whole, 1_000)
    .action(async (_, command: Command) => {
      const flags = command.optsWithGlobals<Flags>();
      const parts = await readConfig(flags.config);
      const store = await openStore({ ...flags, data: path.resolve(flags.data) });
      const port = createSallyport({ ...parts, store, tenant: flags.tenant });
      const upkeep = startUpkeep({
        port,
        everyMs: flags.every,
        onRound: ({ recovered, swept }) =>
          void process.stdout.write(`${JSON.stringify({ ...recovered, ...swept })}\n`),
        onError: (error) => void process.stderr.write(`${shown(errorText(error))}\n`),
      });
      const stopped = untilStopped();
      process.stderr.write("working; stop it with Ctrl+C\n");
      await stopped;
      await upkeep.stop();
      await store.close();
    });
}
