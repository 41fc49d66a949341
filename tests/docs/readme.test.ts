// The first code of the README, exactly as it is there, in an empty project with the package as `npm pack` makes it.

import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { packedProject } from "./packed.ts";
import { readPage, root } from "./pages.ts";

const run = promisify(execFile);
const scratch = mkdtempSync(path.join(tmpdir(), "sallyport-readme-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const MOST_LINES = 120;
const MOST_MS = 60_000;
const readme = readPage("README.md");

test("the README is short, and its first code has ten lines", () => {
  expect(readme.text.split("\n").length).toBeLessThanOrEqual(MOST_LINES);
  const [first] = readme.blocks.filter(({ language }) => language === "ts");
  expect(first?.text.trimEnd().split("\n").length).toBeLessThanOrEqual(10);
});

test("the README's first code, in an empty project with the packed package, leaves a refund waiting within a minute", {
  timeout: 240_000,
}, async () => {
  const project = await packedProject(scratch);
  cpSync(path.join(root, "examples/ai-sdk/agent.ts"), path.join(project, "agent.ts"));
  const [first] = readme.blocks.filter(({ language }) => language === "ts");
  writeFileSync(path.join(project, "main.ts"), first?.text ?? "");
  const started = performance.now();
  const { stderr } = await run(process.execPath, ["main.ts"], { cwd: project });
  expect(stderr.replace(/^.*ExperimentalWarning.*\n.*\n/m, "")).toBe("");
  const took = performance.now() - started;
  console.log(`the first gated call was pending after ${(took / 1_000).toFixed(1)} s`);
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
