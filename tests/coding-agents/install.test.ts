// Installing: the canary tells a hook that works from one that is switched off, doctor names the switch, and uninstall restores
// every file byte for byte.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { runCanary } from "../../src/coding-agents/canary.ts";
import { trustCodexHooks } from "../../src/coding-agents/codex.ts";
import { offSwitches } from "../../src/coding-agents/doctor.ts";
import {
  type InstallPlace,
  install,
  planInstall,
  uninstall,
} from "../../src/coding-agents/install.ts";
import { codexEnv, codexProgram, HOST_PROGRAMS, type HostName } from "../support/hosts/run-host.ts";
import { installHosts, noHosts } from "../support/hosts.ts";
import { scaled } from "../support/scale.ts";
import { openWorld, treeOf, type World } from "./world.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function placeFor(host: HostName, scope: InstallPlace["scope"] = "user"): InstallPlace {
  const root = mkdtempSync(path.join(tmpdir(), "sallyport-install-"));
  folders.push(root);
  const [home, project, data] = ["home", "project", "data"].map((one) => path.join(root, one)) as [
    string,
    string,
    string,
  ];
  for (const folder of [home, project, data]) mkdirSync(folder);
  return { host, scope, home, project, data, program: ["node", "bin.js"], root };
}

const HOSTS: readonly HostName[] = ["claude-code", "codex", "gemini", "opencode"];
const cases = HOSTS.flatMap((host) =>
  (["user", "project", "managed"] as const).map((scope) => ({ host, scope })),
).filter(({ host, scope }) => host !== "opencode" || scope !== "managed");

test.each(cases)("$host, $scope: uninstall restores the tree as it was", ({ host, scope }) => {
  const place = placeFor(host, scope);
  const root = path.dirname(place.home);
  // An installation of our own keeps what others have there, also its odd spaces.
  const [settings] = planInstall(place).filter(({ file }) => file.endsWith("settings.json"));
  if (settings !== undefined) {
    mkdirSync(path.dirname(settings.file), { recursive: true });
    writeFileSync(settings.file, '{ "theme":   "dark",\n\n"hooks": {"Stop": []} }');
  }
  mkdirSync(path.join(place.data, "installed"));
  const before = treeOf(root);
  const files = install(place);
  install({ ...place, wait: 5 });
  expect(files.every((file) => existsSync(file))).toBe(true);
  if (settings !== undefined) expect(readFileSync(settings.file, "utf8")).toMatch(/"dark"/);
  expect(treeOf(root)).not.toBe(before);
  uninstall(place);
  expect(treeOf(root)).toBe(before);
});

test("settings that were changed since, and settings that cannot be read, are left alone", () => {
  const place = placeFor("claude-code");
  const [file = ""] = install(place);
  writeFileSync(file, "{}");
  expect(() => uninstall(place)).toThrow(/was changed since/);
  expect(readFileSync(file, "utf8")).toBe("{}");
  const other = placeFor("gemini");
  mkdirSync(path.join(other.home, ".gemini"));
  writeFileSync(path.join(other.home, ".gemini/settings.json"), "{ broken");
  expect(() => install(other)).toThrow(/is not a JSON object/);
  expect(readFileSync(path.join(other.home, ".gemini/settings.json"), "utf8")).toBe("{ broken");
});

test.each([
  ["config.toml", "features.hooks = false", /features\.hooks = false/],
  ["config.toml", "[features]\nhooks=false # off", /features\.hooks = false/],
  ["config.toml", "features = { hooks = false }", /features\.hooks = false/],
  ["config.toml", "[profiles.x.features]\nhooks = false", /features\.hooks = false/],
  ["config.toml", "[other]\nhooks = false", undefined],
])("Codex, %s: doctor reads %j", async (name, text, found) => {
  const place = { ...placeFor("codex"), codexHome: "" };
  const codexHome = path.join(place.home, "elsewhere");
  mkdirSync(codexHome);
  writeFileSync(path.join(codexHome, name), text);
  const own = { ...place, codexHome };
  expect(install(own)).toEqual([path.join(codexHome, "hooks.json")]);
  const off = (await offSwitches(own)).join();
  if (found === undefined) expect(off).toBe("");
  else expect(off).toMatch(found);
});

test("doctor names settings of administrators that allow managed hooks only", async () => {
  const claude = placeFor("claude-code");
  install(claude);
  const settings = path.join(claude.root ?? "", "etc/claude-code/managed-settings.json");
  mkdirSync(path.dirname(settings), { recursive: true });
  writeFileSync(settings, '{"allowManagedHooksOnly":true}');
  expect((await offSwitches(claude)).join()).toMatch(/allowManagedHooksOnly/);
  const codex = placeFor("codex");
  install(codex);
  const requirements = path.join(codex.root ?? "", "etc/codex/requirements.toml");
  mkdirSync(path.dirname(requirements), { recursive: true });
  writeFileSync(requirements, "allow_managed_hooks_only = true\n");
  expect((await offSwitches(codex)).join()).toMatch(/allow_managed_hooks_only/);
});

beforeAll(async () => {
  if (noHosts === undefined) await installHosts();
});

const OFF: Readonly<Partial<Record<HostName, (world: World) => void>>> = {
  "claude-code": ({ home }) => change(path.join(home, ".claude/settings.json"), "disableAllHooks"),
  gemini: ({ home }) => change(path.join(home, ".gemini/settings.json"), "hooksConfig"),
  codex: ({ home }) => {
    const file = path.join(home, ".codex/config.toml");
    writeFileSync(file, `${readFileSync(file, "utf8")}\n[features]\nhooks = false\n`);
  },
};

function change(file: string, field: "disableAllHooks" | "hooksConfig"): void {
  const settings = JSON.parse(readFileSync(file, "utf8"));
  settings[field] = field === "disableAllHooks" ? true : { enabled: false };
  writeFileSync(file, JSON.stringify(settings));
}

const names = scaled<readonly HostName[]>({
  test: ["claude-code", "codex"],
  proof: ["claude-code", "codex", "gemini"],
  full: ["claude-code", "codex", "gemini"],
});

// skip: the programs are hundreds of megabytes
describe.skipIf(noHosts !== undefined).each(names)("%s", { timeout: 180_000 }, (host) => {
  const canaryIn = ({ home }: World) => {
    const { PATH } = process.env;
    const env = { PATH, HOME: home, ...(host === "codex" ? codexEnv({ home }) : {}) };
    return runCanary({ host, program: HOST_PROGRAMS[host](), env });
  };

  test("the canary passes with the hook, and fails when it is switched off, which doctor names", async () => {
    const world = await openWorld(host);
    const codex = { program: codexProgram(), env: { ...process.env, ...codexEnv(world) } };
    const look = () => offSwitches(world.place, host === "codex" ? codex : undefined);
    expect(await canaryIn(world)).toMatchObject({ ok: true });
    expect(await look()).toEqual([]);
    OFF[host]?.(world);
    expect(await canaryIn(world)).toMatchObject({ ok: false });
    expect((await look()).join()).toMatch(
      /disableAllHooks|hooks = false|enabled: false|see the hook/,
    );
  });

  test("without the hook the canary fails", async () => {
    const world = await openWorld(host, { hook: "missing" });
    const { ok, text } = await canaryIn(world);
    expect([ok, text]).toEqual([false, expect.stringMatching(/does not work|did not ask/)]);
  });
});

// skip: the program is hundreds of megabytes
test.skipIf(noHosts !== undefined)(
  "Codex: an untrusted hook is reported, and trusting it restores its file on uninstall",
  { timeout: 60_000 },
  async () => {
    const world = await openWorld("codex", { hook: "missing" });
    const file = path.join(world.home, ".codex/config.toml");
    const before = readFileSync(file, "utf8");
    const codex = { program: codexProgram(), env: { ...process.env, ...codexEnv(world) } };
    install(world.place);
    expect((await offSwitches(world.place, codex)).join()).toMatch(/does not trust the hook/);
    await trustCodexHooks(world.place, codex);
    expect(await offSwitches(world.place, codex)).toEqual([]);
    expect(readFileSync(file, "utf8")).toMatch(/trusted_hash/);
    uninstall(world.place);
    expect(readFileSync(file, "utf8")).toBe(before);
  },
);
