// The first code of the README, exactly as it is there, in an empty folder with the package as `npm pack` makes it.

import { execFile } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { packTarball } from "./packed.ts";
import { readPage, root } from "./pages.ts";

const run = promisify(execFile);
const scratch = mkdtempSync(path.join(tmpdir(), "sallyport-readme-"));
const project = path.join(scratch, "empty");
let tarball = "";
beforeAll(async () => {
  mkdirSync(project);
  tarball = await packTarball(scratch);
}, 240_000);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const MOST_LINES = 120;
const MOST_MS = 60_000;
const readme = readPage("README.md");

/** The README's own command, with the tarball for the package and the versions that the other tests use. */
function installCommand(): readonly string[] {
  const commands = readme.blocks.filter(({ language }) => language === "sh");
  const [, names = ""] = /^npm install (sallyport .*)$/m.exec(commands[0]?.text ?? "") ?? [];
  const versions: Record<string, string> = {
    ...manifest.dependencies,
    ...manifest.devDependencies,
  };
  const wanted = names.split(" ").map((name) => {
    return name === "sallyport" ? tarball : `${name}@${versions[name]}`;
  });
  // From npm's cache where it can, so that it is not the network that is measured.
  return ["install", "--prefer-offline", "--no-audit", "--no-fund", ...wanted];
}

test("the README is short, and its first code has ten lines", () => {
  expect(readme.text.split("\n").length).toBeLessThanOrEqual(MOST_LINES);
  const [first] = readme.blocks.filter(({ language }) => language === "ts");
  expect(first?.text.trimEnd().split("\n").length).toBeLessThanOrEqual(10);
});

test("the README's commands and first code leave a refund waiting within a minute of the first command in an empty folder", {
  timeout: 240_000,
}, async () => {
  const [first] = readme.blocks.filter(({ language }) => language === "ts");
  const started = performance.now();
  await run("npm", installCommand(), { cwd: project });
  const installed = performance.now() - started;
  // Without it Node says on standard error that it had to guess.
  await run("npm", ["pkg", "set", "type=module"], { cwd: project });
  cpSync(path.join(root, "examples/ai-sdk/agent.ts"), path.join(project, "agent.ts"));
  writeFileSync(path.join(project, "main.ts"), first?.text ?? "");
  const { stderr } = await run(process.execPath, ["main.ts"], { cwd: project });
  expect(stderr.replace(/^.*ExperimentalWarning.*\n.*\n/m, "")).toBe("");
  const took = performance.now() - started;
  const seconds = (ms: number) => (ms / 1_000).toFixed(1);
  console.log(
    `pending after ${seconds(took)} s, of which npm install took ${seconds(installed)} s`,
  );
  expect(took).toBeLessThan(MOST_MS);

  const file = path.join(project, ".sallyport", "sallyport.db");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await using store = sqliteStore({ file });
  const { interactions, operations } = store.tenant("default");
  const [question, ...others] = await interactions.list({ status: "open", limit: 10 });
  expect([question?.type, question?.chain, others]).toEqual(["confirm", ["billing"], []]);
  expect(await operations.listBySession(question?.sessionId ?? "", {})).toEqual([]);
  expect(readdirSync(project)).not.toContain("ledger.txt");
});

const FRAMEWORKS = [
  "ai",
  "@openai/agents",
  "langchain",
  "@mastra/core",
  "@anthropic-ai/claude-agent-sdk",
  "none of these",
];

test("what init names is in the package: pages of the guide, entries and the script", {
  timeout: 240_000,
}, async () => {
  expect(existsSync(path.join(project, "node_modules/sallyport")), "void: not installed").toBe(
    true,
  );
  const manifestFile = path.join(project, "package.json");
  for (const framework of FRAMEWORKS) {
    writeFileSync(manifestFile, JSON.stringify({ dependencies: { [framework]: "*" } }));
    const { stdout } = await run("npx", ["--no-install", "sallyport", "init"], { cwd: project });
    const config = path.join(project, "sallyport.config.mjs");
    const said = `${stdout}\n${readFileSync(config, "utf8")}`;
    rmSync(config);
    const pages = said.match(/[\w./-]+\.md\b/g) ?? [];
    expect(pages.length, `void: ${said}`).toBeGreaterThan(0);
    expect(pages.filter((page) => !existsSync(path.join(project, page)))).toEqual([]);
    const named = said.match(/sallyport\/(?!docs)[a-z-]+/g) ?? [];
    const entries = Object.keys(manifest.exports).map((entry) => `sallyport${entry.slice(1)}`);
    expect(named.filter((entry) => !entries.includes(entry))).toEqual([]);
  }
});
