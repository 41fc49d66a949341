import { Command } from "commander";
import { createGate } from "../../gate/create-gate.ts";
import { startUpkeep } from "../../gate/upkeep.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { errorText } from "../../util/error-text.ts";
import { placeOf, type Shared, STATE } from "../connect.ts";
import { openStore } from "../open-store.ts";
import { readConfig } from "../read-config.ts";
import { shown } from "../render.ts";
import { untilStopped } from "../serve.ts";
import { stateOf } from "../state-folder.ts";
import { whole } from "./serve.ts";

interface Flags extends Shared {
  readonly tenant: string;
  readonly every: number;
  readonly database?: string;
  readonly config?: string;
  readonly state?: string;
  readonly epochFile?: string;
}

/** A process without a server: resumes interrupted work, closes and escalates questions. */
export function workerCommand(): Command {
  return new Command("worker")
    .description("Resume interrupted work, and close questions past their deadline.")
    .option("--config <module>", "tools, reviews and rules, as for serve")
    .option("--tenant <name>", "the tenant", "default")
    .option("--database <url>", "a PostgreSQL database instead of a file")
    .option("--state <folder>", STATE)
    .option("--epoch-file <file>", "the epoch file; by default in the state folder")
    .option("--every <ms>", "interval between rounds", whole, 1_000)
    .action(async (_, command: Command) => {
      const flags = command.optsWithGlobals<Flags>();
      const parts = await readConfig(flags.config);
      const { redactionKey, epochFile } = parts;
      const place = { ...definedFields({ epochFile }), ...placeOf(flags) };
      const store = await openStore(place, definedFields({ redactionKey }));
      const own = [place.data, ...stateOf(place).protectedPaths, ...(parts.protectedPaths ?? [])];
      const gate = createGate({ ...parts, store, tenant: flags.tenant, protectedPaths: own });
      const upkeep = startUpkeep({
        gate,
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
