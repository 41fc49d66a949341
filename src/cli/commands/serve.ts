import path from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { errorText } from "../../util/error-text.ts";
import type { Shared } from "../connect.ts";
import { demoParts } from "../demo/start-demo.ts";
import { readConfig } from "../read-config.ts";
import { type ServeOptions, serve } from "../serve.ts";
import { untilStopped } from "../until-stopped.ts";

interface Flags extends Shared {
  readonly port: number;
  readonly tenant: string;
  readonly as: string;
  readonly database?: string;
  readonly config?: string;
  readonly empty?: boolean;
  readonly every: number;
}

export function serveCommand(): Command {
  return listening(new Command("serve"))
    .description("Serves the API, the feed and the web console.")
    .option("--config <module>", "a module whose default export gives tools, reviews and rules")
    .action((_, command: Command) => run(command.optsWithGlobals<Flags>(), "parts"));
}

export function demoCommand(): Command {
  return listening(new Command("demo"))
    .description("Serves a warehouse with three agents that keep proposing.")
    .option("--empty", "without warehouse and agents")
    .option("--every <ms>", "how often each agent proposes", whole, 4_000)
    .action((_, command: Command) => run(command.optsWithGlobals<Flags>(), "demo"));
}

function listening(command: Command): Command {
  return command
    .option("--port <number>", "on loopback; 0 for a free one", whole, 0)
    .option("--tenant <name>", "whose data it is", "default")
    .option("--as <person>", "who signs in by the link that is printed", "person:you")
    .option("--database <url>", "a PostgreSQL database instead of a file");
}

async function run(flags: Flags, kind: "parts" | "demo"): Promise<void> {
  const onProblem = (error: unknown) => void process.stderr.write(`${errorText(error)}\n`);
  // Before the store: with a module that cannot be used, nothing is made.
  const own = kind === "demo" && flags.empty !== true ? undefined : await readConfig(flags.config);
  const parts: ServeOptions["parts"] = (place) => own ?? demoParts(place, onProblem, flags.every);
  const served = await serve({
    data: path.resolve(flags.data),
    tenant: flags.tenant,
    listenPort: flags.port,
    person: flags.as,
    upkeepMs: 5_000,
    onProblem,
    parts,
    ...(flags.database === undefined ? {} : { database: flags.database }),
  });
  const { url } = served.server;
  // Before anything is said: whoever reads it may end us at once.
  const stopped = untilStopped();
  process.stdout.write(
    flags.json === true
      ? `${JSON.stringify({ url, link: served.link })}\n`
      : `Sallyport is at ${url}\nSign in once within ten minutes: ${served.link}\nStop it with Ctrl+C.\n`,
  );
  await stopped;
  await served.close();
}

export function whole(text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new InvalidArgumentError("Give a whole number.");
}
