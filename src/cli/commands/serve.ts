import { createInterface } from "node:readline";
import { Command, InvalidArgumentError } from "commander";
import { describeReport, runCrashKit } from "../../crashkit/index.ts";
import { startUpkeep } from "../../gate/upkeep.ts";
import { startNotifier } from "../../notify/index.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { errorText } from "../../util/error-text.ts";
import { systemRandom } from "../../util/random.ts";
import {
  type ConfigFlags,
  type Configured,
  NOTHING_CONFIGURED,
  readConfigured,
} from "../config-file.ts";
import type { Shared } from "../connect.ts";
import { loadModel, modelled, SCRIPTED } from "../demo/agents.ts";
import { withStory } from "../demo/story.ts";
import { demoParts } from "../demo/warehouse.ts";
import type { ListenFlags } from "../listen.ts";
import { OPTION, storePlaceOf, withFlags } from "../open-store.ts";
import { EXIT, print, printable, progress, progressEnd } from "../render.ts";
import { openGate, type ServeOptions, serve, untilStopped } from "../serve.ts";

interface Serving extends ConfigFlags, ListenFlags {
  readonly as: string;
  readonly empty?: boolean;
  readonly quiet?: boolean;
  readonly every: number;
  readonly model?: string;
  /** Commander turns `--no-anchors` into this. */
  readonly anchors: boolean;
}

export function serveCommand(): Command {
  return listening(new Command("serve"))
    .description("Serve the API, the event feed and the web console.")
    .option("--host <address>", "where to listen; 127.0.0.1 when nothing is said")
    .option("--public-url <url>", "the address under which other machines reach it, with https")
    .option(
      "--trusted-proxies <list>",
      "addresses or networks of the proxies in front, whose X-Forwarded-For is believed",
    )
    .option("--tls-cert <file>", "certificate chain in PEM; without it TLS is up to a proxy")
    .option("--tls-key <file>", "its private key in PEM")
    .option("--config <module>", CONFIG)
    .action(withFlags<Serving>((flags) => run(flags, "parts")));
}

export function demoCommand(): Command {
  return listening(new Command("demo"))
    .description("Serve a demo warehouse with three agents that keep proposing.")
    .option("--empty", "without the demo warehouse and agents")
    .option("--quiet", "only the three agents: no run, sub-agent or conversation to look at")
    .option("--every <ms>", "how often each agent proposes", whole, 4_000)
    .option("--model <package:model>", MODEL)
    .action(withFlags<Serving>((flags) => run(flags, "demo")));
}

const TENANT = ["--tenant <name>", "the tenant; `default` when nothing is said"] as const;
const CONFIG =
  "a module whose default export has tools, reviews and rules, and how people sign in (or SALLYPORT_CONFIG); by default sallyport.config.ts, .mts, .js or .mjs here";

const MODEL =
  "agents that think with a model of the AI SDK instead of following a script: its provider package, which you have installed together with `ai`, and the model's id (or SALLYPORT_MODEL); the provider reads its own key variable";

function listening(command: Command): Command {
  return command
    .option("--port <number>", "port; 0, or nothing, picks a free one", whole)
    .option(...TENANT)
    .option("--as <person>", "who signs in with the printed link", "person:you")
    .option(...OPTION.databaseToServe)
    .option(...OPTION.state)
    .option(...OPTION.epochFile)
    .option("--no-anchors", "no signed anchors: truncation of the trail is not detected");
}

function onProblem(error: unknown): void {
  process.stderr.write(`${printable(errorText(error))}\n`);
}

const NO_ANCHORS =
  "Anchors are off: audit verify cannot detect entries deleted from the end of the trail. Start without --no-anchors to change that.\n";

async function run(flags: Serving, kind: "parts" | "demo"): Promise<void> {
  // Before the store: with an unusable module, nothing is created.
  const isDemo = kind === "demo" && flags.empty !== true;
  const { config, place, tenant } = kind === "demo" ? demoConfigured(flags) : await read(flags);
  const { every: everyMs, model = process.env["SALLYPORT_MODEL"] ?? "" } = flags;
  const agents =
    isDemo && model !== "" ? modelled(await loadModel(model, process.cwd())) : SCRIPTED;
  const parts: ServeOptions["parts"] = (data) => {
    if (!isDemo) return config;
    const demo = demoParts(data, { onProblem, everyMs, agents });
    return flags.quiet === true ? demo : withStory(demo, { onProblem, everyMs });
  };
  const served = await serve({
    tenant,
    listen: flags,
    person: flags.as,
    upkeepMs: 5_000,
    onProblem,
    parts,
    anchors: flags.anchors ? "on" : "off",
    ...place,
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
  const quiet = linkOnEnter(() => served.server.signInLink({ subject: flags.as }));
  await stopped;
  quiet();
  await served.close();
}

function read(flags: Serving): Promise<Configured> {
  return readConfigured(flags, { source: "folder", otherwise: NOTHING_CONFIGURED });
}

/** The demo never uses a configuration that happens to be in the working directory. */
function demoConfigured(flags: Serving): Configured {
  const { tenant = "default" } = flags;
  return { config: NOTHING_CONFIGURED, tenant, place: storePlaceOf(flags) };
}

/** Links work once and expire soon; Enter prints another one. Returns a function that stops listening. */
function linkOnEnter(makeLink: () => Promise<string>): () => void {
  if (!process.stdin.isTTY) return () => {};
  const terminal = createInterface({ input: process.stdin });
  terminal.on("line", () => {
    makeLink().then((link) => process.stdout.write(`Sign in once: ${link}\n`), onProblem);
  });
  return () => terminal.close();
}

function whole(text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new InvalidArgumentError("Expected a whole number.");
}

/** A process without a server: resumes interrupted work, closes and escalates questions. */
export function workerCommand(): Command {
  return new Command("worker")
    .description("Resume interrupted work, and close questions past their deadline.")
    .option("--config <module>", CONFIG)
    .option(...TENANT)
    .option(...OPTION.databaseToServe)
    .option(...OPTION.state)
    .option(...OPTION.epochFile)
    .option("--every <ms>", "interval between rounds", whole, 1_000)
    .action(withFlags<Serving>(work));
}

async function work(flags: Serving): Promise<void> {
  const { config, place, tenant } = await read(flags);
  const { resume, notify, http } = config;
  const { store, gate } = await openGate(place, tenant, config);
  const baseUrl = http?.publicUrl ?? "";
  const notifier =
    notify && startNotifier({ gate, store, tenant, config: notify, baseUrl, onError: onProblem });
  const upkeep = startUpkeep({
    gate,
    everyMs: flags.every,
    onRound: ({ recovered, swept, resumed }) =>
      void process.stdout.write(`${JSON.stringify({ ...recovered, ...swept, resumed })}\n`),
    onError: onProblem,
    ...definedFields({ resume: resume && (() => resume(gate)) }),
  });
  const stopped = untilStopped();
  process.stderr.write("working; stop it with Ctrl+C\n");
  await stopped;
  await notifier?.stop();
  await upkeep.stop();
  await store.close();
}

interface Crashing extends Shared {
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
    .action(withFlags<Crashing>(crash));
}

async function crash(flags: Crashing): Promise<void> {
  const { points, seed = anySeed(), cycles, pauses, database, config } = flags;
  const report = await runCrashKit({
    mode: points === true ? "points" : "random",
    seed,
    cycles,
    ...definedFields({ pauses, database, config }),
    onProgress({ done, of, violations }) {
      if (done % 10 === 0 || done === of) progress(`${done} of ${of}, ${violations} violations`);
    },
  }).finally(progressEnd);
  print(report, flags, describeReport(report));
  if (!report.ok) process.exitCode = EXIT.failed;
}

function anySeed(): number {
  const [high = 0, low = 0] = systemRandom.bytes(2);
  return high * 256 + low;
}
