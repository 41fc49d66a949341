import { Command } from "commander";
import { type CrashKitOptions, describeReport, runCrashKit } from "../../crashkit/index.ts";
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

/** Kills and pauses real processes, and looks whether anything was lost, doubled or untrue afterwards. */
export function crashkitCommand(): Command {
  return new Command("crashkit")
    .description("Kills and pauses real processes, then compares ledger, trail and state.")
    .option("--cycles <n>", "how often somebody is killed or paused", whole, 100)
    .option("--pauses <n>", "how many of these are pauses (one in fifty)", whole)
    .option("--points", "kill at each named point instead of random moments")
    .option("--seed <n>", "repeats the choices of an earlier run", whole)
    .option("--database <url>", "a PostgreSQL database; gets tenants of its own")
    .option("--config <module>", "a store or tools of your own (docs/reference/crashkit.md)")
    .action(async (_, command: Command) => {
      const flags = command.optsWithGlobals<Flags>();
      const report = await runCrashKit({
        mode: flags.points === true ? "points" : "random",
        seed: flags.seed ?? anySeed(),
        cycles: flags.cycles,
        ...given("pauses", flags.pauses),
        ...given("database", flags.database),
        ...given("config", flags.config),
        onProgress({ done, of, violations }) {
          if (done % 10 === 0 || done === of)
            progress(`${done} of ${of}, ${violations} violations`);
        },
      }).finally(progressEnd);
      print(flags.json === true ? report : describeReport(report), flags);
      if (!report.ok) process.exitCode = 1;
    });
}

function given<Name extends keyof CrashKitOptions>(
  name: Name,
  value: CrashKitOptions[Name] | undefined,
) {
  return value === undefined ? {} : { [name]: value };
}

function anySeed(): number {
  const [high = 0, low = 0] = systemRandom.bytes(2);
  return high * 256 + low;
}
