// `sallyport install`, `doctor` and `uninstall` as processes, with the published hosts and in every scope: the canary runs where
// the settings hold, doctor repeats it there, and uninstall restores the files.

import { execFile, spawnSync } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { InstallScope } from "../../src/coding-agents/install.ts";
import { HOST_PROGRAMS, type HostName } from "../support/hosts/run-host.ts";
import { installHosts, noHosts } from "../support/hosts.ts";
import { scaled } from "../support/scale.ts";
import { openWorld, PROGRAM, treeOf, type World } from "./world.ts";

beforeAll(async () => {
  if (noHosts === undefined) await installHosts();
});

const names = scaled<readonly HostName[]>({
  test: ["claude-code", "codex"],
  proof: ["claude-code", "codex", "gemini"],
  full: ["claude-code", "codex", "gemini", "opencode"],
});

/** A copy of /etc that only the processes of one test see; it needs a mount namespace. */
const IN_OWN_ETC = ["unshare", "-rm", "/bin/sh", "-c", 'mount --bind "$0" /etc && exec "$@"'];
const hasNamespaces = spawnSync("unshare", ["-rm", "true"]).status === 0;
const SCOPES: readonly InstallScope[] = [
  "user",
  "project",
  ...(hasNamespaces ? (["managed"] as const) : []),
];
const cases = names.flatMap((host) =>
  SCOPES.filter((scope) => host !== "opencode" || scope !== "managed").map((scope) => ({
    host,
    scope,
  })),
);

interface Ended {
  readonly code: number;
  readonly out: string;
}

function sallyport(world: World, etc: string, words: readonly string[]): Promise<Ended> {
  const { home, project, data } = world;
  const command = [...PROGRAM, "--data", data, "--json", ...words];
  const [file = "", ...args] = etc === "" ? command : [...IN_OWN_ETC, etc, ...command];
  const env = { HOME: home, PATH: process.env["PATH"], TERM: "dumb" };
  return new Promise((resolve) => {
    execFile(file, args, { cwd: project, env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), out: stdout + stderr }),
    );
  });
}

/** Gemini CLI is a script of Node that starts by itself. */
const programOf = (host: HostName) => HOST_PROGRAMS[host]().at(-1) ?? "";

/** As people do it once in the host itself. */
function trustProject(host: HostName, { home, project }: World): void {
  if (host === "codex") {
    const trust = `\n[projects.${JSON.stringify(project)}]\ntrust_level = "trusted"\n`;
    appendFileSync(path.join(home, ".codex/config.toml"), trust);
  }
  if (host === "gemini") {
    const file = path.join(home, ".gemini/trustedFolders.json");
    writeFileSync(file, JSON.stringify({ [project]: "TRUST_FOLDER" }));
  }
}

// skip: the programs are hundreds of megabytes
describe.skipIf(noHosts !== undefined)("the command line", { timeout: 240_000 }, () => {
  const inProjects = names.filter((host) => host === "codex" || host === "gemini");
  test.each(inProjects)("%s: a project that the host does not trust is refused", async (host) => {
    const world = await openWorld(host, { hook: "missing" });
    const before = treeOf(world.project);
    const words = ["install", host, "--scope", "project", "--program", programOf(host)];
    const { code, out } = await sallyport(world, "", words);
    expect([code, out]).toEqual([expect.any(Number), expect.stringMatching(/once and trust the/)]);
    expect(code).not.toBe(0);
    expect(treeOf(world.project)).toBe(before);
  });

  test.each(cases)("$host, $scope: install, doctor and uninstall", async ({ host, scope }) => {
    const world = await openWorld(host, { hook: "missing" });
    const etc = scope === "managed" ? path.join(world.home, "etc") : "";
    if (etc !== "") spawnSync("cp", ["-a", "/etc", etc]);
    if (scope === "project") trustProject(host, world);
    const run = (...words: string[]) => sallyport(world, etc, words);
    const where = ["--scope", scope];
    const before = treeOf(world.project);
    const installed = await run("install", host, ...where, "--program", programOf(host));
    expect(installed.out, installed.out).toMatch(/deny denied/);
    const { files } = JSON.parse(installed.out) as { readonly files: readonly string[] };
    const settings = (file: string) => (etc === "" ? file : file.replace(/^\/etc/, etc));
    expect(files.every((file) => existsSync(settings(file)))).toBe(true);
    if (scope === "project" && host !== "opencode") {
      expect(files.every((file) => file.startsWith(world.project))).toBe(true);
    }
    expect(await hostFindings(run, host)).toEqual([
      expect.objectContaining({ ok: true, text: expect.stringMatching(/deny denied/) }),
    ]);
    const removed = await run("uninstall", host, ...where);
    expect(removed.code, removed.out).toBe(0);
    expect(treeOf(world.project)).toBe(before);
    for (const file of files.map(settings)) {
      expect(existsSync(file) ? readFileSync(file, "utf8") : "").not.toMatch(/ hook \w+/);
    }
    expect(await hostFindings(run, host)).toEqual([]);
  });
});

interface Finding {
  readonly what: string;
  readonly ok: boolean;
  readonly text: string;
}

async function hostFindings(run: (...words: string[]) => Promise<Ended>, host: HostName) {
  const { out } = await run("doctor");
  const [json = ""] = /^\[[\s\S]*\]$/m.exec(out) ?? [];
  return (JSON.parse(json) as readonly Finding[]).filter(({ what }) => what.startsWith(host));
}
