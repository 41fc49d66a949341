// Pages name only what exists: commands and their flags, routes, codes and states, functions, files.

import { existsSync } from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import { expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { createProgram } from "../../src/cli/main.ts";
import { APPROVAL_OUTCOMES } from "../../src/gate/inbox.ts";
import { PATHS } from "../../src/http/paths.ts";
import { INBOX_TOOLS } from "../../src/mcp/inbox-server.ts";
import { DECISION_STATES } from "../../src/model/decision.ts";
import { ERRORS } from "../../src/model/errors.ts";
import { INTERACTION_OUTCOMES, INTERACTION_TYPES } from "../../src/model/interaction.ts";
import { HOOK_POINTS } from "../../src/policy/before-call.ts";
import { TOOL_SEARCH } from "../../src/tools/registry.ts";
import { READ_RESULT } from "../../src/tools/tool-call.ts";
import { filesIn, read } from "../support/source-files.ts";
import { inlineCode, type Page, pagesIn, readPage, root } from "./pages.ts";

const guide = pagesIn("docs/guide");
const FOLDERS = ["docs/proof", "docs/reference", "docs/spec"].filter((folder) =>
  existsSync(path.join(root, folder)),
);
const FRONT = ["README.md", "SECURITY.md", "CONTRIBUTING.md"];
const all = [...guide, ...FOLDERS.flatMap(pagesIn), ...FRONT.map(readPage)];

/** Lines of shell blocks, and what stands in backticks. */
function commandsIn(page: Page): readonly string[] {
  const shell = page.blocks.filter(({ language }) => language === "sh");
  return [...shell.flatMap(({ text }) => text.split("\n")), ...inlineCode(page)];
}

test("every sallyport command in the docs exists, with its flags", () => {
  const program = createProgram();
  const named = all.flatMap((page) =>
    commandsIn(page)
      .filter((line) => /^sallyport [a-z]/.test(line))
      .map((line) => ({ file: page.file, line })),
  );
  const problems = named.flatMap(({ file, line }) =>
    commandProblems(program, line).map((problem) => `${file}: ${line}: ${problem}`),
  );
  expect(problems).toEqual([]);
  expect(named.length, "void: too few commands").toBeGreaterThan(15);
});

function commandProblems(program: Command, line: string): readonly string[] {
  const words = line.split(/\s+/).slice(1);
  let command = program;
  for (const word of words) {
    const next = command.commands.find((one) => one.name() === word);
    if (next === undefined) break;
    command = next;
  }
  // Commander makes this one itself.
  if (words[0] === "help") return [];
  if (command === program) return [`there is no command ${words[0]}`];
  const verb = words[1];
  const isNoun = command.commands.length > 0;
  if (isNoun && verb !== undefined && /^[a-z]/.test(verb)) return [`there is no verb ${verb}`];
  const known = [...command.options, ...program.options].map(({ long }) => long);
  return words
    .filter((word) => word.startsWith("--"))
    .filter((flag) => !known.includes(flag.split("=")[0]))
    .map((flag) => `there is no flag ${flag}`);
}

test("every npm command in the docs exists", () => {
  const scripts: Record<string, string> = manifest.scripts;
  const problems = all.flatMap((page) =>
    commandsIn(page).flatMap((line) => {
      const [, name] = /^npm (?:run )?([\w:-]+)/.exec(line) ?? [];
      const isOwn = name === undefined || ["install", "ci", "pack"].includes(name);
      return isOwn || scripts[name] !== undefined ? [] : [`${page.file}: ${line}`];
    }),
  );
  expect(problems).toEqual([]);
});

test("every path of the server in the docs is a route", () => {
  const routes = Object.values(PATHS).map((route) => String(route).split(" ").at(-1) ?? "");
  const isRoute = (named: string) =>
    routes.some((route) => new RegExp(`^${route.replace(/:\w+/g, "[^/]+")}$`).test(named));
  const named = all.flatMap((page) =>
    inlineCode(page).flatMap((code) => {
      const [, , route] =
        /^(?:(GET|POST) )?(\/(?:v1\/|healthz|readyz|metrics)[^?\s]*)$/.exec(code) ?? [];
      return route === undefined ? [] : [{ file: page.file, route }];
    }),
  );
  expect(named.filter(({ route }) => !isRoute(route))).toEqual([]);
  expect(named.length, "void: too few routes").toBeGreaterThan(5);
});

test("every code and state that the guide names exists", () => {
  const known = new Set<string>([
    ...Object.keys(ERRORS),
    ...DECISION_STATES,
    ...INTERACTION_TYPES,
    ...Object.keys(INTERACTION_OUTCOMES),
    ...APPROVAL_OUTCOMES,
    ...Object.keys(HOOK_POINTS),
    ...Object.keys(INBOX_TOOLS),
    TOOL_SEARCH,
    READ_RESULT,
  ]);
  const snakes = guide.flatMap((page) =>
    inlineCode(page)
      .filter((code) => /^[a-z]+(_[a-z]+)+$/.test(code))
      .map((code) => ({ file: page.file, code })),
  );
  expect(snakes.filter(({ code }) => !known.has(code))).toEqual([]);
  expect(snakes.length, "void: too few codes").toBeGreaterThan(4);
});

test("every function and entry that the guide and the specification name exists in the code", () => {
  const source = filesIn("src").filter((file) => file.endsWith(".ts"));
  const code = source.map(read).join("\n");
  const words = new Set([
    ...(code.match(/[A-Za-z][A-Za-z0-9]*/g) ?? []),
    ...(code.match(/\w+/g) ?? []),
  ]);
  const entries = new Set(
    Object.keys(manifest.exports).map((name) => name.replace("./", "sallyport/")),
  );
  const problems = [...guide, ...pagesIn("docs/spec"), readPage("README.md")].flatMap((page) =>
    inlineCode(page).flatMap((name) => {
      if (/^sallyport\/[\w/]+$/.test(name))
        return entries.has(name) ? [] : [`${page.file}: ${name}`];
      // Names like createServer, port.runs and pending_ml; plain words are told by the sentences around them.
      if (
        !/^[a-z]\w*(\.\w+)+$|^[a-z]+[A-Z]\w*$|^[a-z]+_\w+$/.test(name) ||
        /\.(db|ts|mjs|md|txt|json)$/.test(name)
      )
        return [];
      const unknown = name.split(".").filter((word) => !words.has(word));
      return unknown.map((word) => `${page.file}: ${name}: ${word}`);
    }),
  );
  expect(problems).toEqual([]);
});

test("links between pages and pictures lead somewhere", () => {
  const broken = all.flatMap(({ file, text }) =>
    [...text.matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = ""]) => target.split("#")[0] ?? "")
      .filter((target) => target !== "" && !/^[a-z]+:/.test(target))
      .filter((target) => !existsSync(path.join(root, path.dirname(file), target)))
      .map((target) => `${file}: ${target}`),
  );
  expect(broken).toEqual([]);
});
