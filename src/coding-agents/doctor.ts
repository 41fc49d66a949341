// What can switch a hook off, as far as files show it, for one installation. The canary proves the rest.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { errorText } from "../util/error-text.ts";
import { isJsonObject, type JsonObject } from "../util/json.ts";
import { type CodexProgram, codexHooks } from "./codex.ts";
import {
  codexFolder,
  type InstallPlace,
  planInstall,
  readSettings,
  startsOurHook,
} from "./install.ts";

/** Problems as sentences; none: nothing that is visible here switches the hook off. */
export async function offSwitches(
  place: InstallPlace,
  codex?: CodexProgram,
): Promise<readonly string[]> {
  const problems: string[] = [];
  const [first] = plannedFiles(place, problems);
  if (first !== undefined && !existsSync(first)) problems.push(`${first} is missing`);
  else if (first !== undefined && place.host !== "opencode" && !first.endsWith(".toml")) {
    problems.push(...hookMissing(first));
  }
  switch (place.host) {
    case "claude-code":
      return [...problems, ...claudeSwitches(place)];
    case "codex":
      return [...problems, ...codexSwitches(place), ...(await untrusted(place, codex))];
    case "gemini":
      return [...problems, ...geminiSwitches(place)];
    case "opencode":
      return [...problems, ...opencodeSwitches(place)];
  }
}

function plannedFiles(place: InstallPlace, problems: string[]): readonly string[] {
  try {
    return planInstall(place).map(({ file }) => file);
  } catch (error) {
    problems.push(errorText(error));
    return [];
  }
}

function hookMissing(file: string): readonly string[] {
  const { hooks } = settingsIn(file);
  const before = isJsonObject(hooks) ? (hooks["PreToolUse"] ?? hooks["BeforeTool"]) : undefined;
  const has = Array.isArray(before) && before.some(startsOurHook);
  return has ? [] : [`${file} does not contain the hook`];
}

/** Unreadable settings are reported by the plan. */
function settingsIn(file: string): JsonObject {
  try {
    return readSettings(file);
  } catch {
    return {};
  }
}

function claudeSwitches({ scope, home, project, root = "" }: InstallPlace): readonly string[] {
  if (scope === "managed") return [];
  const managed = `${root}/etc/claude-code/managed-settings.json`;
  const files = [
    path.join(home, ".claude/settings.json"),
    path.join(project, ".claude/settings.json"),
    path.join(project, ".claude/settings.local.json"),
  ];
  const only = settingsIn(managed)["allowManagedHooksOnly"] === true;
  return [
    ...(only ? [`${managed} has allowManagedHooksOnly: use --scope managed`] : []),
    ...[managed, ...files].flatMap((file) => [
      ...broken(file),
      ...(settingsIn(file)["disableAllHooks"] === true ? [`${file} has disableAllHooks`] : []),
    ]),
  ];
}

function broken(file: string): readonly string[] {
  try {
    readSettings(file);
    return [];
  } catch (error) {
    return [errorText(error)];
  }
}

function codexSwitches(place: InstallPlace): readonly string[] {
  const files = (["user", "project"] as const).map((scope) =>
    path.join(codexFolder({ ...place, scope }), "config.toml"),
  );
  const managed = `${place.root ?? ""}/etc/codex/requirements.toml`;
  return [
    ...files.flatMap((file) =>
      settingsOfToml(file).some(
        ([name, value]) =>
          (/(^|\.)features\.hooks$/.test(name) && value === "false") ||
          (/(^|\.)features$/.test(name) && /\bhooks\s*=\s*false/.test(value)),
      )
        ? [`${file} has features.hooks = false`]
        : [],
    ),
    ...(place.scope !== "managed" &&
    settingsOfToml(managed).some(([name, value]) => MANAGED_ONLY.test(name) && value === "true")
      ? [`${managed} has allow_managed_hooks_only: use --scope managed`]
      : []),
  ];
}

const MANAGED_ONLY = /(^|\.)allow_managed_hooks_only$/;

/** Names with dots, and values as they are written; enough of TOML to find a switch. */
function settingsOfToml(file: string): readonly (readonly [name: string, value: string])[] {
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  let table = "";
  return lines.flatMap((line) => {
    const [bare = ""] = line.split("#");
    const said = bare.trim();
    if (said.startsWith("[") && said.endsWith("]")) {
      table = nameOf(said.replaceAll(/[[\]]/g, ""));
      return [];
    }
    const at = said.indexOf("=");
    if (at < 1) return [];
    const name = nameOf(said.slice(0, at));
    return [[table === "" ? name : `${table}.${name}`, said.slice(at + 1).trim()] as const];
  });
}

const nameOf = (written: string) => written.replaceAll(/["'\s]/g, "");

async function untrusted(
  { scope, project }: InstallPlace,
  codex: CodexProgram | undefined,
): Promise<readonly string[]> {
  if (scope === "managed" || codex === undefined) return [];
  const own = (await codexHooks(codex, project)).filter(({ command }) =>
    / hook codex --data /.test(command),
  );
  if (own.length === 0) return ["Codex does not see the hook"];
  return own.every(({ trustStatus }) => trustStatus === "trusted")
    ? []
    : ["Codex does not trust the hook, and skips it: run sallyport install codex again"];
}

function geminiSwitches({ scope, home, project }: InstallPlace): readonly string[] {
  const trusted = settingsIn(path.join(home, ".gemini/trustedFolders.json"));
  const isTrusted = Object.entries(trusted).some(([folder, trust]) => {
    const top = trust === "TRUST_PARENT" ? path.dirname(folder) : folder;
    return trust !== "DO_NOT_TRUST" && `${project}/`.startsWith(`${top}/`);
  });
  const untrustedProject =
    scope === "project" && !isTrusted
      ? [`Gemini CLI skips the hooks of ${project}: open gemini there once and trust the folder`]
      : [];
  const off = [home, project].flatMap((folder) => {
    const file = path.join(folder, ".gemini/settings.json");
    const { hooksConfig } = settingsIn(file);
    if (!isJsonObject(hooksConfig)) return broken(file);
    const { enabled, disabled } = hooksConfig;
    const isNamed = Array.isArray(disabled) && disabled.includes("sallyport");
    return [
      ...broken(file),
      ...(enabled === false ? [`${file} has hooksConfig.enabled: false`] : []),
      ...(isNamed ? [`${file} disables the hook by name`] : []),
    ];
  });
  return [...untrustedProject, ...off];
}

function opencodeSwitches(place: InstallPlace): readonly string[] {
  const [plugin, config] = planInstall(place);
  if (plugin === undefined || config === undefined) return [];
  const isSame = existsSync(plugin.file) && readFileSync(plugin.file, "utf8") === plugin.content;
  const listed = settingsIn(config.file)["plugin"];
  const isListed = Array.isArray(listed) && listed.some((one) => `${one}`.endsWith(plugin.file));
  return [
    ...(isSame
      ? []
      : [`${plugin.file} is not as it was installed; opencode skips a broken plugin`]),
    ...(isListed ? [] : [`${config.file} does not name the plugin`]),
  ];
}
