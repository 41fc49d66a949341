// The published hosts with the gateway as their MCP server: pending, approved later, rejected. Every run of a host starts the
// gateway anew.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { cliPlace } from "../cli/cli-process.ts";
import {
  claudeMcp,
  HOST_PROGRAMS,
  HOSTS,
  type HostMcp,
  type HostName,
} from "../support/hosts/run-host.ts";
import { installHosts, noHosts } from "../support/hosts.ts";
import { record } from "../support/record.ts";
import { type ScriptedRequest, startScriptedModel } from "../support/scripted-model.ts";
import { decideAll, tinyServer } from "./cli-world.ts";

const root = path.resolve(import.meta.dirname, "../..");
const figures = { "ungated effects": 0, twice: 0, stories: 0 };

beforeAll(async () => {
  if (noHosts === undefined) await installHosts();
}, 300_000);

afterEach(() => {
  if (figures.stories > 0) record({ goal: "HOSTS-stories", what: "MCP hosts", figures });
  Object.assign(figures, { "ungated effects": 0, twice: 0, stories: 0 });
});

/** The call as each host names it: Codex offers the tools of a server inside a namespace. */
const NAMES: Readonly<Partial<Record<HostName, { name: string; namespace?: string }>>> = {
  "claude-code": { name: "mcp__tiny__append" },
  codex: { name: "append", namespace: "mcp__tiny" },
  gemini: { name: "mcp_tiny_append" },
};

async function hostWorld(name: HostName) {
  const place = cliPlace();
  const ledgerFile = path.join(place.folder, "ledger.txt");
  let line = "one";
  let told: string | undefined;
  let offered: readonly string[] = [];
  /** Everything that the model has read. */
  let read = "";
  const model = await startScriptedModel(({ results, tools, prompt }: ScriptedRequest) => {
    read = `${prompt}\n${results.map(({ text }) => text).join("\n")}`;
    offered = [...offered, ...tools];
    const known = results.find(({ id }) => id === "call_1");
    if (known !== undefined) {
      told = known.text;
      return { text: "Done." };
    }
    const own = NAMES[name] ?? { name: "append" };
    return tools.length === 0
      ? { text: "Nothing." }
      : { calls: [{ id: "call_1", ...own, input: { line } }] };
  });
  onTestFinished(() => model[Symbol.asyncDispose]());
  const bin = path.join(root, "src/cli/bin.ts");
  const mcp: HostMcp = {
    name: "tiny",
    command: process.execPath,
    args: [
      ...["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning", bin],
      ...["--data", place.data, "mcp", "--upstream", tinyServer, "--hold", "0"],
    ],
    env: {
      SALLYPORT_STATE: place.state,
      LEDGER: ledgerFile,
      WIRE_LOG: path.join(place.folder, "wire.log"),
    },
  };
  const home = path.join(place.folder, "home");
  const project = path.join(place.folder, "project");
  for (const folder of [home, project]) mkdirSync(folder);
  const run = { home, project, modelUrl: model.url, mcp };
  HOSTS[name].prepare(run);
  return {
    place,
    ...run,
    ledger: () => (existsSync(ledgerFile) ? readFileSync(ledgerFile, "utf8").split("\n") : [""]),
    read: () => read,
    /** One run of the host, in which the model asks for this line; what it was answered. */
    async ask(wanted: string): Promise<string> {
      line = wanted;
      told = undefined;
      const { stdout, stderr } = await HOSTS[name].run(run);
      return told ?? `nothing was called: ${offered.join(" ")} ${stdout} ${stderr}`;
    },
    expect(lines: readonly string[]) {
      figures.stories += 1;
      const ledger = this.ledger().slice(0, -1);
      figures["ungated effects"] += ledger.filter((one) => !lines.includes(one)).length;
      figures.twice += ledger.length - new Set(ledger).size;
      expect(ledger).toEqual(lines);
    },
  };
}

const HEADLESS = ["claude-code", "codex", "gemini"] as const;

// skip: the programs are hundreds of megabytes
describe.skipIf(noHosts !== undefined)("MCP hosts", { timeout: 280_000 }, () => {
  test.each(HEADLESS)(
    "mcp host %s: a call waits, is approved between two runs and executed once; a rejected one never runs",
    async (name) => {
      const world = await hostWorld(name);
      expect(await world.ask("one")).toContain("waits for approval");
      world.expect([]);
      expect(await decideAll(world.place)).toBe(1);
      expect(await world.ask("one")).toContain("appended one");
      world.expect(["one"]);
      expect(await world.ask("two")).toContain("waits for approval");
      expect(await decideAll(world.place, "reject")).toBe(1);
      expect(await world.ask("two")).toContain("not now");
      world.expect(["one"]);
    },
  );

  test("mcp host claude-code in a terminal: the waiting call is a task, and the model is told when it was approved", async () => {
    const world = await hostWorld("claude-code");
    const { home, project, modelUrl, place } = world;
    const trusted = { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true };
    writeFileSync(
      path.join(home, ".claude.json"),
      JSON.stringify({
        hasCompletedOnboarding: true,
        theme: "dark",
        customApiKeyResponses: { approved: ["none"], rejected: [] },
        projects: { [project]: trusted },
      }),
    );
    const [program = ""] = HOST_PROGRAMS["claude-code"]();
    const socket = path.join(place.folder, "tmux");
    const tmux = (...args: string[]) =>
      spawnSync("tmux", ["-S", socket, ...args], { encoding: "utf8" }).stdout;
    onTestFinished(() => void tmux("kill-server"));
    const env = {
      HOME: home,
      ANTHROPIC_BASE_URL: modelUrl,
      ANTHROPIC_API_KEY: "none",
      DISABLE_AUTOUPDATER: "1",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      IS_SANDBOX: "1",
    };
    const set = Object.entries(env).map(([key, value]) => `${key}=${value}`);
    const flags = [
      "--model",
      "claude-sonnet-4-5",
      "--allowedTools=mcp__tiny",
      "--strict-mcp-config",
    ];
    const command = [
      "env",
      "-C",
      project,
      ...set,
      program,
      ...flags,
      `--mcp-config=${claudeMcp(home)}`,
    ];
    tmux("new-session", "-d", "-x", "160", "-y", "50", "-s", "claude", ...command);
    const screen = () => tmux("capture-pane", "-p", "-t", "claude");
    await expect.poll(screen, { timeout: 60_000, interval: 300 }).toMatch(/❯|>/);
    tmux("send-keys", "-t", "claude", "Go.", "Enter");
    const open = async () => decideAll(place).catch(() => 0);
    await expect.poll(open, { timeout: 90_000, interval: 500, message: screen() }).toBe(1);
    await expect.poll(() => world.ledger(), { timeout: 60_000 }).toEqual(["one", ""]);
    await expect.poll(world.read, { timeout: 60_000, interval: 500 }).toContain("appended one");
    world.expect(["one"]);
  });
});
