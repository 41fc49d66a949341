import { createInterface } from "node:readline";
import { Command, InvalidArgumentError } from "commander";
import { errorText } from "../../util/error-text.ts";
import { placeOf, type Shared, STATE } from "../connect.ts";
import { loadModel, modelled } from "../demo/modelled.ts";

import { SCRIPTED } from "../demo/scripted.ts";
import { demoParts } from "../demo/start-demo.ts";

import { readConfig } from "../read-config.ts";
import { shown } from "../render.ts";
import { type ServeOptions, serve, untilStopped } from "../serve.ts";

interface Flags extends Shared {
  readonly port: number;
  readonly tenant: string;
  readonly as: string;
  readonly database?: string;
  readonly config?: string;
  readonly empty?: boolean;
  readonly every: number;
  readonly model?: string;
  readonly state?: string;
  readonly epochFile?: string;
  /** Commander turns `--no-anchors` into this. */
  readonly anchors: boolean;
}

export function serveCommand(): Command {
  return listening(new Command("serve"))
    .description("Serves the API, the feed and the web console.")
    .option(
      "--config <module>",
      "a module whose default export gives tools, reviews and rules, and how people sign in",
    )
    .action((_, command: Command) => run(command.optsWithGlobals<Flags>(), "parts"));
}

export function demoCommand(): Command {
  return listening(new Command("demo"))
    .description("Serves a warehouse with three agents that keep proposing.")
    .option("--empty", "without warehouse and agents")
    .option("--every <ms>", "how often each agent proposes", whole, 4_000)
    .option("--model <package:model>", MODEL)
    .action((_, command: Command) => run(command.optsWithGlobals<Flags>(), "demo"));
}

const MODEL =
  "agents that think with a model of the AI SDK instead of following a script: its provider package, which you have installed together with `ai`, and the model's id (or SALLYPORT_MODEL); the provider reads its own key variable";

function listening(command: Command): Command {
  return command
    .option("--port <number>", "on loopback; 0 for a free one", whole, 0)
    .option("--tenant <name>", "whose data it is", "default")
    .option("--as <person>", "who signs in by the link that is printed", "person:you")
    .option("--database <url>", "a PostgreSQL database instead of a file")
    .option("--state <folder>", STATE)
    .option("--epoch-file <file>", "where to remember how far the store was; in the state folder")
    .option("--no-anchors", "without signed heads of the trail: a cut end is not noticed");
}

const NO_ANCHORS =
  "Anchors are off: if entries are deleted at the end of the trail, audit verify cannot notice it. Start without --no-anchors to change that.\n";

async function run(flags: Flags, kind: "parts" | "demo"): Promise<void> {
  const onProblem = (error: unknown) => void process.stderr.write(`${shown(errorText(error))}\n`);
  // Before the store: with a module that cannot be used, nothing is made.
  const isDemo = kind === "demo" && flags.empty !== true;
  const own = isDemo ? undefined : await readConfig(flags.config);
  const { every: everyMs, model = process.env["SALLYPORT_MODEL"] ?? "" } = flags;
  const agents =
    isDemo && model !== "" ? modelled(await loadModel(model, process.cwd())) : SCRIPTED;
  const parts: ServeOptions["parts"] = (place) =>
    own ?? demoParts(place, { onProblem, everyMs, agents });
  const served = await serve({
    tenant: flags.tenant,
    listenPort: flags.port,
    person: flags.as,
    upkeepMs: 5_000,
    onProblem,
    parts,
    anchors: flags.anchors ? "on" : "off",
    ...placeOf(flags),
  });
  if (!flags.anchors) process.stderr.write(NO_ANCHORS);
  const { url } = served.server;
  // Before anything is said: whoever reads it may end us at once.
  const stopped = untilStopped();
  process.stdout.write(
    flags.json === true
      ? `${JSON.stringify({ url, link: served.link })}\n`
      : `Sallyport is at ${url}\nSign in once within ten minutes: ${served.link}\n${process.stdin.isTTY ? "Press Enter for another link. " : ""}Stop it with Ctrl+C.\n`,
  );
  const quiet = linkOnEnter(() => served.server.signInLink({ subject: flags.as }), onProblem);
  await stopped;
  quiet();
  await served.close();
}

/** Links are used once and soon too old; whoever sits at the terminal gets another one. Returns how to stop listening. */
function linkOnEnter(
  makeLink: () => Promise<string>,
  onProblem: (error: unknown) => void,
): () => void {
  if (!process.stdin.isTTY) return () => {};
  const terminal = createInterface({ input: process.stdin });
  terminal.on("line", () => {
    makeLink().then((link) => process.stdout.write(`Sign in once: ${link}\n`), onProblem);
  });
  return () => terminal.close();
}

export function whole(text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new InvalidArgumentError("Give a whole number.");
}
