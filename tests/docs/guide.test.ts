// The guide keeps its word: its samples compile and run, and print what stands below them.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, expect, inject, test } from "vitest";
import { install } from "../../scripts/install.mjs";
import { installHosts, noHosts } from "../support/hosts.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { outputOf, pagesIn, programOf, root } from "./pages.ts";
import { makeProject } from "./project.ts";

/** Short by its text, however it is wrapped; and wrapped, so that a diff can be reviewed. */
const PAGE_MAX = 6_500;
const LINE_MAX = 125;
const pages = pagesIn("docs/guide");
/** Pages about programs of hundreds of megabytes run where those are installed, as in the proof. */
const runnable = pages.filter(({ name }) => name !== "claude-agent" || noHosts === undefined);
const programs = runnable.filter((page) => programOf(page) !== "");
await install(path.join(root, "tools/frameworks"), "agent frameworks", process.env);
if (noHosts === undefined) await installHosts();
const project = makeProject(runnable);
afterAll(() => project[Symbol.dispose]());

test("the pages of the guide are short, and its contents list all of them", () => {
  const contents = readFileSync(path.join(root, "docs/guide/README.md"), "utf8");
  const listed = [...contents.matchAll(/^\d+\. \[[^\]]+\]\(([\w-]+)\.md\)/gm)].map(
    ([, name]) => name,
  );
  const written = pages.map(({ name }) => name).filter((name) => name !== "README");
  expect(listed.toSorted()).toEqual(written.toSorted());
  expect(listed.length, "void: too few pages").toBeGreaterThanOrEqual(21);
  expect(pages.filter(({ text }) => text.length > PAGE_MAX).map(({ name }) => name)).toEqual([]);
  const wide = pages.flatMap(({ name, text }) =>
    text.split("\n").flatMap((line, index) => (isWide(line) ? [`${name}:${index + 1}`] : [])),
  );
  expect(wide).toEqual([]);
  expect(programs.length, "void: too few pages with samples").toBeGreaterThanOrEqual(9);
});

const FRAMEWORK_PAGES = ["ai-sdk", "openai-agents", "langchain", "mastra", "claude-agent"];

test.each(FRAMEWORK_PAGES)(
  "%s begins with at most fifteen lines of code, and links its example",
  (name) => {
    const page = pages.find((one) => one.name === name);
    const [first] = page?.blocks.filter(({ language }) => language === "ts") ?? [];
    expect(first?.text.trimEnd().split("\n").length, "void: no code").toBeLessThanOrEqual(15);
    const example = `examples/${name}/main.ts`;
    expect(page?.text).toContain(`](../../${example})`);
    expect(existsSync(path.join(root, example))).toBe(true);
  },
);

/** A row of a table cannot be wrapped. */
function isWide(line: string): boolean {
  return line.length > LINE_MAX && !line.startsWith("|");
}

/** New processes, and a compiler that reads all of src, take their time on a busy machine. */
const patient = { timeout: 180_000 };

test("all samples of the guide type-check", patient, async () => {
  const { code, stdout } = await project.typeCheck();
  // What is wrong in src itself is for `npm run check` to say.
  expect(stdout.split("\n").filter((line) => /^[\w.-]+\.ts\(/.test(line))).toEqual([]);
  expect(code === 0 || stdout.includes("error TS"), stdout).toBe(true);
});

test.each(programs.map((page) => [page.name, page] as const))(
  "the samples of %s run and print what the page says",
  patient,
  async (_, page) => {
    const database = await freshDatabase(inject("pgUrl"));
    const env = { DATABASE_URL: database.url };
    const { code, stdout, stderr } = await project.runPage(page, env);
    await database.drop();
    expect(stderr).toBe("");
    expect(stdout).toBe(outputOf(page));
    expect(code).toBe(0);
  },
);

test("serve and worker accept the guide's config", patient, async () => {
  const args = ["worker", "--config", "gate.config.ts", "--tenant", "acme", "--data", "data"];
  const { code, stderr } = await project.runCommand(args, "working");
  expect(stderr).toBe("working; stop it with Ctrl+C\n");
  expect(code).toBe(0);
});
