// The first code of the README, exactly as it is there, in an empty folder with the package as `npm pack` makes it.

import { execFile, spawn } from "node:child_process";
import {
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
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { createGate } from "../../src/gate/create-gate.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { packTarball } from "./packed.ts";
import { readPage } from "./pages.ts";

const run = promisify(execFile);
const scratch = mkdtempSync(path.join(tmpdir(), "sallyport-readme-"));
const project = path.join(scratch, "empty");
let tarball = "";
beforeAll(async () => {
  mkdirSync(project);
  tarball = await packTarball();
}, 240_000);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const MOST_LINES = 120;
const MOST_MS = 60_000;
const readme = readPage("README.md");

/** The lines that the README wants to be pasted, exactly, but with the tarball for the package and the versions of the other tests. */
function pastedLines(): readonly string[] {
  const [first] = readme.blocks.filter(({ language }) => language === "sh");
  const versions: Record<string, string> = {
    ...manifest.dependencies,
    ...manifest.devDependencies,
  };
  const lines = (first?.text ?? "").trimEnd().split("\n");
  return lines.map((line) =>
    line.replace(/^npm install (\S.*?)(?= &&|$)/, (_, names: string) => {
      const wanted = names
        .split(" ")
        .map((name) => (name === "sallyport" ? tarball : `${name}@${versions[name]}`));
      // From npm's cache where it can, so that it is not the network that is measured.
      return `npm install --prefer-offline --no-audit --no-fund ${wanted.join(" ")}`;
    }),
  );
}

const paste = (line = "") => run("bash", ["-c", line], { cwd: project });

test("the README is short, and its first code has ten lines", () => {
  expect(readme.text.split("\n").length).toBeLessThanOrEqual(MOST_LINES);
  const [first] = readme.blocks.filter(({ language }) => language === "ts");
  expect(first?.text.trimEnd().split("\n").length).toBeLessThanOrEqual(10);
});

test("the README's commands and first code leave a refund waiting within a minute of the first command in an empty folder", {
  timeout: 240_000,
}, async () => {
  const [first] = readme.blocks.filter(({ language }) => language === "ts");
  writeFileSync(path.join(project, "main.ts"), first?.text ?? "");
  const [install, sample, start, review, ...more] = pastedLines();
  expect([start, review, more]).toEqual([
    expect.stringMatching(/^node main\.ts /),
    expect.stringMatching(/^npx sallyport review /),
    [],
  ]);
  const started = performance.now();
  await paste(install);
  const installed = performance.now() - started;
  await paste(sample);
  const { stderr } = await paste(start);
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

const SCRIPT = "/usr/bin/script";

// skip: a terminal for the test comes from script(1)
test.skipIf(!existsSync(SCRIPT))(
  "the README's last command shows the refund in a terminal, and a no is recorded",
  { timeout: 120_000 },
  async () => {
    expect(existsSync(path.join(project, "main.ts")), "void: not installed").toBe(true);
    const review = pastedLines().at(-1) ?? "";
    const env = { ...process.env, SALLYPORT_STATE: path.join(scratch, "state") };
    const child = spawn(SCRIPT, ["-qec", review, "/dev/null"], { cwd: project, env });
    let said = "";
    child.stdout.on("data", (piece) => (said += piece));
    const ended = new Promise((resolve) => child.once("close", resolve));
    await vi.waitFor(() => expect(said).toContain("a approve, r reject"), 60_000);
    expect(said).toContain("2041");
    child.stdin.write("r\nnot today\n");
    expect(await ended, said).toBe(0);
    await using store = sqliteStore({ file: path.join(project, ".sallyport", "sallyport.db") });
    const [question] = await store.tenant("default").interactions.list({ limit: 10 });
    expect(question).toMatchObject({ status: "resolved", outcome: "rejected" });
  },
);

test("serve of the packed package serves the web console", { timeout: 120_000 }, async () => {
  const bin = path.join(project, "node_modules/sallyport/dist/cli/bin.js");
  expect(existsSync(bin), "void: not installed").toBe(true);
  const env = { ...process.env, SALLYPORT_STATE: path.join(scratch, "state") };
  const child = spawn(process.execPath, [bin, "serve", "--port", "0"], { cwd: project, env });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (said += piece));
  const ended = new Promise((resolve) => child.once("close", resolve));
  try {
    await vi.waitFor(() => expect(said).toMatch(/Sallyport is at \S+/), 60_000);
    const url = /Sallyport is at (\S+)/.exec(said)?.[1] ?? "";
    const page = await fetch(new URL("/", url));
    const html = await page.text();
    expect([page.status, page.headers.get("content-type")]).toEqual([
      200,
      expect.stringContaining("text/html"),
    ]);
    const [, script = ""] = /<script[^>]* src="([^"]+)"/.exec(html) ?? [];
    const code = await fetch(new URL(script, page.url));
    expect([script.endsWith(".js"), code.status]).toEqual([true, 200]);
  } finally {
    child.kill("SIGINT");
    await ended;
  }
});

/** What the reader has around the README's second code: the first code with an id, and its messages kept in a file. */
const AROUND = (program: string) => `
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { generateText } from "ai";
import { createGate } from "sallyport";
import { gateTools } from "sallyport/ai";
import { lookupInvoice, model, refund } from "./agent.ts";
const gate = createGate();
if (!existsSync("chat.json")) {
  const tools = gateTools(gate, { lookupInvoice, refund }, { agent: "billing", run: "chat-17" });
  const asked = [{ role: "user" as const, content: "Refund invoice 2041" }];
  const { responseMessages } = await generateText({ model, tools, messages: asked });
  writeFileSync("chat.json", JSON.stringify([...asked, ...responseMessages]));
}
const messages = JSON.parse(readFileSync("chat.json", "utf8"));
${program}
await gate.close();
`;

test("the README's second code executes the approved refund, once, in a new process, and not before the yes", {
  timeout: 240_000,
}, async () => {
  expect(existsSync(path.join(project, "agent.ts")), "void: not installed").toBe(true);
  const [, second] = readme.blocks.filter(({ language }) => language === "ts");
  writeFileSync(path.join(project, "chat.ts"), AROUND(second?.text ?? ""));
  const ledger = path.join(project, "ledger.txt");
  const start = () => run(process.execPath, ["chat.ts"], { cwd: project });
  await start();
  expect(existsSync(ledger)).toBe(false);
  {
    await using store = sqliteStore({ file: path.join(project, ".sallyport", "sallyport.db") });
    const { interactions } = createGate({ store });
    const [question] = await interactions.list({ sessionId: "chat-17" });
    await interactions.approve(question?.id ?? "", { hash: question?.hash ?? "", by: "ada" });
  }
  await start();
  expect(readFileSync(ledger, "utf8")).toBe("2041 12900\n");
  await start();
  expect(readFileSync(ledger, "utf8")).toBe("2041 12900\n");
});

test("the README's table says what docs/proof/peers.md measured", () => {
  const measured = (system: string) => {
    const [row = ""] = readPage("docs/proof/peers.md").text.match(
      new RegExp(`^\\| ${system} \\| ran .*$`, "m"),
    ) ?? [""];
    return row
      .split("|")
      .slice(2, 5)
      .map((cell) => /ran [a-z0-9]+/.exec(cell)?.[0]);
  };
  const systems = ["sallyport.sqlite", "langgraph.sqlite", "openai-agents.sqlite", "dbos.postgres"];
  const rows = ["killed in the tool", "two reviewers answer", "the record changed"].map((start) => {
    const row = readme.text
      .split("\n")
      .find((line) => line.startsWith("|") && line.includes(start));
    return (
      row
        ?.split("|")
        .slice(2, 6)
        .map((cell) => /ran [a-z0-9]+/.exec(cell)?.[0]) ?? []
    );
  });
  for (const [column, system] of systems.entries()) {
    expect(measured(system), `void: no row of ${system}`).not.toContain(undefined);
    expect(rows.map((row) => row[column])).toEqual(measured(system));
  }
});

const FRAMEWORKS = [
  "ai",
  "@openai/agents",
  "langchain",
  "@langchain/langgraph",
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
