// One story: a server over a store of its own, a project folder, and a published coding agent with the hook installed. Only the
// model is scripted.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";
import { type Served, type ServedParts, serve } from "../../src/cli/serve.ts";
import { trustCodexHooks } from "../../src/coding-agents/codex.ts";
import { type InstallPlace, install } from "../../src/coding-agents/install.ts";
import { sha256Hex } from "../../src/util/hash.ts";
import {
  codexEnv,
  codexProgram,
  HOSTS,
  type HostName,
  type HostOutcome,
} from "../support/hosts/run-host.ts";
import { type Script, type ScriptedModel, startScriptedModel } from "../support/scripted-model.ts";

export const PERSON = "person:ada";
const bin = path.join(import.meta.dirname, "../../src/cli/bin.ts");
const FLAGS = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
const { PLANTED, PLANTED_FILE, NODE_OPTIONS = "", SALLYPORT_TEST_BUNDLES } = process.env;
const { NODE_COMPILE_CACHE } = process.env;
const preload = path.join(import.meta.dirname, "../support/start-bundled.cjs");
const bundled = SALLYPORT_TEST_BUNDLES === undefined ? [] : [`--require=${preload}`];
/** The hook as users start it, from source. It starts without NODE_OPTIONS, by which bugs are planted and bundles started. */
export const PROGRAM = [
  process.execPath,
  ...(PLANTED === undefined ? [...FLAGS, ...bundled] : NODE_OPTIONS.split(" ")),
  bin,
];
export const HOOK_ENV = {
  NODE_COMPILE_CACHE,
  ...(PLANTED === undefined ? {} : { PLANTED, PLANTED_FILE }),
};

export interface World {
  readonly home: string;
  readonly project: string;
  readonly data: string;
  readonly served: Served;
  readonly model: ScriptedModel;
  readonly place: InstallPlace;
  /** What the model was told of each call, by its id. */
  readonly told: Map<string, string>;
  /** Everything that the model was told besides results. */
  prompts(): string;
  run(script: Script, how?: RunHow): Promise<HostOutcome>;
  stop(): Promise<void>;
  start(): Promise<void>;
  has(file: string): boolean;
  read(file: string): string;
}

interface RunHow {
  readonly resume?: string;
  readonly prompt?: string;
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal;
}

export interface WorldOptions {
  readonly parts?: Partial<ServedParts>;
  readonly wait?: number;
  readonly program?: readonly string[];
  readonly commands?: readonly (readonly string[])[];
  readonly hook?: "installed" | "missing";
}

export async function openWorld(name: HostName, options: WorldOptions = {}): Promise<World> {
  const root = realpathSync(mkdtempSync(path.join(tmpdir(), "sallyport-host-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const [home, project, data] = ["home", "project", "data"].map((one) => path.join(root, one)) as [
    string,
    string,
    string,
  ];
  for (const folder of [home, project]) mkdirSync(folder);
  const { wait = 0, program = PROGRAM, commands = [], parts = {} } = options;
  let script: Script = () => ({ text: "" });
  const told = new Map<string, string>();
  let prompts = "";
  const model = await startScriptedModel((request) => {
    for (const { id, text } of request.results) told.set(id, text);
    prompts += request.prompt;
    return script(request);
  });
  onTestFinished(() => model[Symbol.asyncDispose]());
  const start = () =>
    serve({
      data,
      tenant: "default",
      listen: { port: 0 },
      person: PERSON,
      upkeepMs: 500,
      anchors: "off",
      state: path.join(root, "state"),
      onProblem: (error) => console.error(error),
      parts: () => ({ tools: [], codingAgents: { project, commands }, ...parts }),
    });
  let served: Served | undefined = await start();
  const stop = async () => {
    await served?.close();
    served = undefined;
  };
  onTestFinished(stop);
  const host = HOSTS[name];
  const where = { home, project, modelUrl: model.url };
  host.prepare(where);
  const place: InstallPlace = { host: name, scope: "user", home, project, data, program, wait };
  if (options.hook !== "missing") {
    install(place);
    if (name === "codex") {
      const env = { ...process.env, ...codexEnv({ home }), HOME: home };
      await trustCodexHooks(place, { program: codexProgram(), env });
    }
  }
  return {
    home,
    project,
    data,
    model,
    place,
    told,
    prompts: () => prompts,
    get served() {
      if (served === undefined) throw new Error("the server is stopped");
      return served;
    },
    run(next, how = {}) {
      script = next;
      return host.run({ ...where, ...how });
    },
    stop,
    async start() {
      served = await start();
    },
    has: (file) => existsSync(path.join(project, file)),
    read: (file) => readFileSync(path.join(project, file), "utf8"),
  };
}

/** The model asks for these calls in its first turn and then ends. */
export function asks(...calls: NonNullable<ReturnType<Script>["calls"]>): Script {
  return ({ results }) => (results.length === 0 ? { calls } : { text: "done" });
}

export async function approve({ served: { gate } }: World): Promise<void> {
  for (const question of await gate.interactions.list()) {
    await gate.interactions.approve(question.id, { hash: question.hash, by: PERSON });
  }
}

/** The whole tree of a folder, by content. */
export function treeOf(folder: string): string {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();
  return names
    .map((name) => {
      const file = path.join(folder, name);
      const found = statSync(file);
      return `${name} ${found.mode} ${found.isFile() ? sha256Hex(readFileSync(file)) : ""}`;
    })
    .join("\n");
}
