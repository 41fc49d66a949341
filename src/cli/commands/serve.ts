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
    .description("Serve the API, the event feed and the web console.")
    .option(
      "--config <module>",
      "a module whose default export has tools, reviews and rules, and how people sign in",
    )
    .action((_, command: Command) => run(command.optsWithGlobals<Flags>(), "parts"));
}

export function demoCommand(): Command {
  return listening(new Command("demo"))
    .description("Serve a demo warehouse with three agents that keep proposing.")
    .option("--empty", "without the demo warehouse and agents")
    .option("--every <ms>", "how often each agent proposes", whole, 4_000)
    .option("--model <package:model>", MODEL)
    .action((_, command: Command) => run(command.optsWithGlobals<Flags>(), "demo"));
}

const MODEL =
  "agents that think with a model of the AI SDK instead of following a script: its provider package, which you have installed together with `ai`, and the model's id (or SALLYPORT_MODEL); the provider reads its own key variable";

function listening(command: Command): Command {
  return command
    .option("--port <number>", "port on loopback; 0 picks a free one", whole, 0)
    .option("--tenant <name>", "the tenant", "default")
    .option("--as <person>", "who signs in with the printed link", "person:you")
    .option("--database <url>", "a PostgreSQL database instead of a file")
    .option("--state <folder>", STATE)
    .option("--epoch-file <file>", "the epoch file; by default in the state folder")
    .option("--no-anchors", "no signed anchors: truncation of the trail is not detected");
}

const NO_ANCHORS =
  "Anchors are off: audit verify cannot detect entries deleted from the end of the trail. Start without --no-anchors to change that.\n";

async function run(flags: Flags, kind: "parts" | "demo"): Promise<void> {
  const onProblem = (error: unknown) => void process.stderr.write(`${shown(errorText(error))}\n`);
  // Before the store: with an unusable module, nothing is created.
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
  // Before anything is printed: a reader may end this process immediately.
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

/** Links work once and expire soon; Enter prints another one. Returns a function that stops listening. */
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
  throw new InvalidArgumentError("Expected a whole number.");
}
