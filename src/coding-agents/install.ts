// `sallyport install HOST` and `uninstall HOST`: writes the hook into the host's own settings, and restores the files as they
// were. What was there is kept in the data folder, so that a restore is exact.

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { SallyportError } from "../model/errors.ts";
import { definedFields } from "../util/defined-fields.ts";
import { PRIVATE_FILE, PRIVATE_FOLDER } from "../util/files.ts";
import { sha256Hex } from "../util/hash.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../util/json.ts";
import { guardedCommand, shellWords } from "./guard.ts";
import { HOST_SHAPES, type HostName } from "./hosts.ts";

export const SCOPES = ["user", "project", "managed"] as const;
export type InstallScope = (typeof SCOPES)[number];

export interface InstallPlace {
  readonly host: HostName;
  readonly scope: InstallScope;
  readonly home: string;
  readonly project: string;
  /** Of the server that the hook asks. */
  readonly data: string;
  /** The program of the hook: Node and the file of the command line. */
  readonly program: readonly string[];
  /** Seconds to wait for a person; the host's default when left out. */
  readonly wait?: number;
  /** The folder of Codex's own settings, when it is not the one below `home`. */
  readonly codexHome?: string;
  /** Prefix of the folders of managed settings; empty except in tests. */
  readonly root?: string;
}

/** One file of an installation, as it will be. */
export interface PlannedFile {
  readonly file: string;
  readonly content: string;
}

/** Seconds beyond the wait for a person: the hook answers after 10, its guard after 20, and the host gives up after 40. */
const GUARD_S = 20;
const HOST_S = 40;

const waitSeconds = ({ host, wait }: InstallPlace) => wait ?? HOST_SHAPES[host].waitMs / 1_000;

function hookWords({ host, data, program, wait }: InstallPlace): readonly string[] {
  const words = [...program, "hook", host, "--data", data];
  return wait === undefined ? words : [...words, "--wait", String(wait)];
}

/** After a call there is nothing to refuse. */
const reportCommand = (place: InstallPlace) => shellWords(hookWords(place));

function askCommand(place: InstallPlace): string {
  const seconds = Math.ceil(waitSeconds(place)) + GUARD_S;
  return guardedCommand({ host: place.host, words: hookWords(place), seconds });
}

const timeoutSeconds = (place: InstallPlace) => Math.ceil(waitSeconds(place)) + HOST_S;

/** What the installation writes. Throws invalid_input for settings that cannot be read: they are not overwritten. */
export function planInstall(place: InstallPlace): readonly PlannedFile[] {
  return PLANS[place.host](place);
}

const PLANS: Readonly<Record<HostName, (place: InstallPlace) => readonly PlannedFile[]>> = {
  "claude-code": (place) => {
    const file = claudeFile(place);
    const hook = {
      type: "command",
      command: askCommand(place),
      timeout: timeoutSeconds(place),
      onFailure: "block",
    };
    const report = { type: "command", command: reportCommand(place), timeout: 30 };
    const settings = withHooks(readSettings(file), {
      PreToolUse: { matcher: "*", hooks: [hook] },
      PostToolUse: { matcher: "*", hooks: [report] },
      PostToolUseFailure: { matcher: "*", hooks: [report] },
    });
    return [{ file, content: json(settings) }];
  },
  codex: (place) => {
    if (place.scope === "managed") return [codexManaged(place)];
    const command = askCommand(place);
    const report = reportCommand(place);
    const timeout = timeoutSeconds(place);
    const file = path.join(codexFolder(place), "hooks.json");
    const settings = withHooks(readSettings(file), {
      PreToolUse: { matcher: "*", hooks: [{ type: "command", command, timeout }] },
      PostToolUse: { matcher: "*", hooks: [{ type: "command", command: report, timeout: 30 }] },
      Stop: { matcher: "*", hooks: [{ type: "command", command: report, timeout: 30 }] },
    });
    return [{ file, content: json(settings) }];
  },
  gemini: (place) => {
    const file = geminiFile(place);
    const own = { name: "sallyport", type: "command" };
    const [command, report] = [askCommand(place), reportCommand(place)];
    const timeout = timeoutSeconds(place) * 1_000;
    const settings = withHooks(readSettings(file), {
      BeforeTool: { matcher: "*", hooks: [{ ...own, command, timeout }] },
      AfterTool: { matcher: "*", hooks: [{ ...own, command: report, timeout: 30_000 }] },
    });
    const { hooksConfig } = settings;
    const enabled = { ...(isJsonObject(hooksConfig) ? hooksConfig : {}), enabled: true };
    return [{ file, content: json({ ...settings, hooksConfig: enabled }) }];
  },
  opencode: (place) => {
    if (place.scope === "managed") {
      const hint = "opencode has no managed settings. Use --scope user or project.";
      throw new SallyportError("invalid_input", { what: "--scope", hint });
    }
    const folder =
      place.scope === "project" ? place.project : path.join(place.home, ".config/opencode");
    const plugin = path.join(place.data, "opencode-plugin.js");
    const file = path.join(folder, "opencode.json");
    const settings = readSettings(file);
    const plugins = Array.isArray(settings["plugin"]) ? settings["plugin"] : [];
    const own = pathToFileURL(plugin).href;
    const all = plugins.includes(own) ? plugins : [...plugins, own];
    return [
      { file: plugin, content: pluginText(place) },
      { file, content: json({ ...settings, plugin: all }) },
    ];
  },
};

function claudeFile({ scope, home, project, root = "" }: InstallPlace): string {
  if (scope === "managed") return `${root}/etc/claude-code/managed-settings.json`;
  return path.join(scope === "user" ? home : project, ".claude/settings.json");
}

function geminiFile({ scope, home, project, root = "" }: InstallPlace): string {
  if (scope === "managed") return `${root}/etc/gemini-cli/settings.json`;
  return path.join(scope === "user" ? home : project, ".gemini/settings.json");
}

export function codexFolder({ scope, home, project, codexHome }: InstallPlace): string {
  return scope === "project"
    ? path.join(project, ".codex")
    : (codexHome ?? path.join(home, ".codex"));
}

/** Without the pinned feature a user switches even managed hooks off. */
function codexManaged(place: InstallPlace): PlannedFile {
  const { root = "" } = place;
  const [command, report, timeout] = [
    askCommand(place),
    reportCommand(place),
    timeoutSeconds(place),
  ];
  const file = `${root}/etc/codex/requirements.toml`;
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const before = text.replace(OWN_BLOCK, "");
  if (before.split("\n").some((line) => /^\[(?:hooks|features)\]/.test(line.trimStart()))) {
    const hint = `${file} has hooks or features of its own. Add the hook by hand: ${command}`;
    throw new SallyportError("invalid_input", { what: file, hint });
  }
  const entry = (event: string, started: string, seconds: number) =>
    `[[hooks.${event}]]\nmatcher = "*"\n[[hooks.${event}.hooks]]\ntype = "command"\ncommand = ${JSON.stringify(started)}\ntimeout = ${seconds}\n`;
  const reports = ["PostToolUse", "Stop"].map((event) => entry(event, report, 30)).join("\n");
  const block = `${BEGIN}\n[features]\nhooks = true\n\n[hooks]\nmanaged_dir = ${JSON.stringify(`${root}/etc/codex/hooks`)}\n\n${entry("PreToolUse", command, timeout)}\n${reports}${END}\n`;
  return { file, content: before === "" ? block : `${before.trimEnd()}\n\n${block}` };
}

const BEGIN = "# Begin of the hook of Sallyport";
const END = "# End of the hook of Sallyport";
const OWN_BLOCK = new RegExp(`${BEGIN}[\\s\\S]*${END}\\n`);

/** The plugin throws for everything that is not an explicit allow: an error, a time-out, anything but one whole answer. */
function pluginText(place: InstallPlace): string {
  const [file = "", ...args] = hookWords(place);
  const most = (Math.ceil(waitSeconds(place)) + GUARD_S) * 1_000;
  return `// Written by sallyport install opencode. Every tool call is asked about before it runs and reported after.
import { spawn } from "node:child_process";

function hook(event) {
  return new Promise((resolve, reject) => {
    const child = spawn(${JSON.stringify(file)}, ${JSON.stringify(args)}, {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, NODE_OPTIONS: "" },
      timeout: ${most},
      // A stopped process heeds no other signal.
      killSignal: "SIGKILL",
    });
    const fail = (why) => reject(new Error("Not executed: the hook of Sallyport " + why + "."));
    let text = "";
    child.stdout.on("data", (chunk) => (text += chunk));
    child.on("error", () => fail("could not be started"));
    child.on("exit", (code, signal) => code !== 0 && fail("ended with " + (signal ?? code)));
    child.on("close", () => {
      try {
        resolve(JSON.parse(text));
      } catch {
        fail("gave no valid answer");
      }
    });
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(event));
  });
}

export const Sallyport = async ({ directory }) => {
  const event = (when, { tool, sessionID, callID }, more) =>
    ({ when, tool, session: sessionID, call: callID, cwd: directory, ...more });
  return {
    "tool.execute.before": async (input, output) => {
      const answer = await hook(event("before", input, { input: output.args }));
      if (answer?.decision !== "allow") throw new Error(answer?.reason || "Sallyport said no.");
      if (answer.input === undefined) return;
      // Only changes of this object count; replacing it is ignored.
      for (const name of Object.keys(output.args)) delete output.args[name];
      Object.assign(output.args, answer.input);
    },
    "tool.execute.after": async (input, output) => {
      const answer = await hook(event("after", input, { input: input.args ?? {}, output: output.output }));
      if (answer.note) output.output += "\\n" + answer.note;
    },
  };
};
`;
}

type HookGroup = { readonly matcher: string; readonly hooks: readonly JsonObject[] };

/** Our groups after those of others; older ones of ours are replaced. */
function withHooks(settings: JsonObject, groups: Readonly<Record<string, HookGroup>>): JsonObject {
  const hooks = isJsonObject(settings["hooks"]) ? settings["hooks"] : {};
  const merged: Record<string, JsonValue> = { ...hooks };
  for (const [event, group] of Object.entries(groups)) {
    const others = Array.isArray(hooks[event])
      ? hooks[event].filter((one) => !startsOurHook(one))
      : [];
    merged[event] = [...others, group as unknown as JsonObject];
  }
  return { ...settings, hooks: merged };
}

/** Groups that start this program's hook, also from another folder. */
export function startsOurHook(group: JsonValue): boolean {
  if (!isJsonObject(group) || !Array.isArray(group["hooks"])) return false;
  return group["hooks"].some(
    (hook) =>
      isJsonObject(hook) &&
      / hook (claude-code|codex|gemini|opencode) --data /.test(`${hook["command"]}`),
  );
}

/** Throws invalid_input for a file that is not a JSON object. */
export function readSettings(file: string): JsonObject {
  if (!existsSync(file)) return {};
  const text = readFileSync(file, "utf8");
  try {
    const settings: JsonValue = JSON.parse(text);
    if (isJsonObject(settings)) return settings;
  } catch {
    // Said below.
  }
  const hint = `${file} is not a JSON object, and the host ignores all of it. Correct it first.`;
  throw new SallyportError("invalid_input", { what: file, hint });
}

const json = (value: JsonObject): string => `${JSON.stringify(value, undefined, 2)}\n`;

/** What an installation is repeated and proved with later. */
interface InstalledAs {
  readonly host: HostName;
  readonly scope: InstallScope;
  readonly project: string;
  /** The program of the host that it was proved with. */
  readonly hostProgram?: string;
  readonly wait?: number;
}

interface Installed extends Partial<InstalledAs> {
  readonly files: readonly {
    readonly file: string;
    /** Base64; null: there was no file. */
    readonly before: string | null;
    readonly after: string;
    /** Folders that were made for it, deepest first. */
    readonly folders: readonly string[];
  }[];
}

function recordFile({ data, host, scope, project }: InstallPlace): string {
  const of = scope === "project" ? `-${sha256Hex(project).slice(0, 12)}` : "";
  return path.join(data, "installed", `${host}-${scope}${of}.json`);
}

/** Writes the files. Installed again, the first state is still the one that uninstall restores. */
export function install(
  place: InstallPlace,
  { hostProgram }: { readonly hostProgram?: string } = {},
): readonly string[] {
  const files = planInstall(place);
  const record = recordFile(place);
  const earlier = readInstalled(record);
  const kept = files.map(({ file, content }) => {
    const known = earlier?.files.find((one) => one.file === file);
    const folders = missingAbove(file);
    const before = existsSync(file) ? readFileSync(file).toString("base64") : null;
    return { ...(known ?? { file, before, folders }), after: sha256Hex(content) };
  });
  // The record first: a process that ends in between leaves a file that can still be restored.
  mkdirSync(path.dirname(record), { recursive: true, mode: PRIVATE_FOLDER });
  const { host, scope, project, wait } = place;
  const as: InstalledAs = { host, scope, project, ...definedFields({ hostProgram, wait }) };
  writeFileSync(record, JSON.stringify({ ...as, files: kept }), { mode: PRIVATE_FILE });
  for (const { file, content } of files) {
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  return files.map(({ file }) => file);
}

/** Notes a file that the host changed on our behalf, so that it is restored as well. Called before the change. */
export function keepFile(place: InstallPlace, file: string): () => void {
  const record = recordFile(place);
  const before = existsSync(file) ? readFileSync(file).toString("base64") : null;
  const folders = missingAbove(file);
  return () => {
    const earlier = readInstalled(record) ?? { files: [] };
    const after = existsSync(file) ? sha256Hex(readFileSync(file)) : "";
    const known = earlier.files.find((one) => one.file === file);
    const own = { ...(known ?? { file, before, folders }), after };
    const files = [...earlier.files.filter((one) => one.file !== file), own];
    writeFileSync(record, JSON.stringify({ ...earlier, files }), { mode: PRIVATE_FILE });
  };
}

/**
 * Restores every file byte for byte. Throws illegal_transition, and restores nothing, when one was changed since: its author's
 * changes would be lost. Throws not_found when nothing was installed from this data folder.
 */
export function uninstall(place: InstallPlace): readonly string[] {
  const record = recordFile(place);
  const installed = readInstalled(record);
  if (installed === undefined) {
    const hint = `Nothing was installed for ${place.host} (${place.scope}) from ${place.data}.`;
    throw new SallyportError("not_found", { id: place.host, hint });
  }
  const changed = installed.files.find(
    ({ file, after }) => existsSync(file) && sha256Hex(readFileSync(file)) !== after,
  );
  if (changed !== undefined) {
    const hint = `${changed.file} was changed since. Remove the hooks of Sallyport from it by hand, then delete ${record}.`;
    throw new SallyportError("illegal_transition", { id: changed.file, hint });
  }
  for (const { file, before, folders } of installed.files) {
    if (before === null) {
      rmSync(file, { force: true });
      for (const folder of folders) removeIfEmpty(folder);
    } else writeFileSync(file, Buffer.from(before, "base64"));
  }
  rmSync(record, { force: true });
  return installed.files.map(({ file }) => file);
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Others have put something there since.
  }
}

/** Every installation from this data folder, in the order of their names. */
export function installations(data: string): readonly InstalledAs[] {
  const folder = path.join(data, "installed");
  const names = existsSync(folder) ? readdirSync(folder).sort() : [];
  return names.flatMap((name) => {
    const found = readInstalled(path.join(folder, name));
    const { host, scope, project } = found ?? {};
    if (host === undefined || scope === undefined || project === undefined) return [];
    return [{ ...found, host, scope, project }];
  });
}

function readInstalled(file: string): Installed | undefined {
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Installed) : undefined;
}

function missingAbove(file: string): readonly string[] {
  const missing: string[] = [];
  for (let at = path.dirname(file); !existsSync(at); at = path.dirname(at)) missing.push(at);
  return missing;
}
