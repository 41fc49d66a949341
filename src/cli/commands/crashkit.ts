import { Command } from "commander";
import { describeReport, runCrashKit } from "../../crashkit/index.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { systemRandom } from "../../util/random.ts";
import type { Shared } from "../connect.ts";
import { print, progress, progressEnd } from "../print.ts";
import { whole } from "./serve.ts";

interface Flags extends Shared {
  readonly cycles: number;
  readonly points?: boolean;
  readonly pauses?: number;
  readonly seed?: number;
  readonly database?: string;
  readonly config?: string;
}

/** Kills and pauses real processes, then checks that nothing was lost, duplicated or wrong. */
export function crashkitCommand(): Command {
  return new Command("crashkit")
    .description("Kill and pause real processes, then compare ledger, trail and state.")
    .option("--cycles <n>", "number of times a process is killed or paused", whole, 100)
    .option("--pauses <n>", "how many of these are pauses; by default one in fifty", whole)
    .option("--points", "kill at each named point instead of random moments")
    .option("--seed <n>", "repeat the choices of an earlier run", whole)
    .option("--database <url>", "a PostgreSQL database; the run uses its own tenants")
    .option("--config <module>", "your own store or tools (docs/reference/crashkit.md)")
    .action(async (_, command: Command) => {
      const flags = command.optsWithGlobals<Flags>();
      const report = await runCrashKit({
        mode: flags.points === true ? "points" : "random",
        seed: flags.seed ?? anySeed(),
        cycles: flags.cycles,
        ...definedFields({
          pauses: flags.pauses,
          database: flags.database,
          config: flags.config,
        }),
        onProgress({ done, of, violations }) {
          if (done % 10 === 0 || done === of)
            progress(`${done} of ${of}, ${violations} violations`);
        },
      }).finally(progressEnd);
      print(flags.json === true ? report : describeReport(report), flags);
      if (!report.ok) process.exitCode = 1;
    });
}

function anySeed(): number {
  const [high = 0, low = 0] = systemRandom.bytes(2);
  return high * 256 + low;
}
