import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Command } from "commander";
import { SallyportError } from "../../model/errors.ts";
import { CONFIG_NAMES } from "../config-file.ts";
import { withFlags } from "../open-store.ts";
import { print } from "../render.ts";

/** The framework of a project, by the package it depends on, and how its agent is gated. */
const FRAMEWORKS: readonly Framework[] = [
  {
    package: "ai",
    name: "AI SDK",
    page: "ai-sdk.md",
    entry: "sallyport/ai",
    use: 'gateTools(gate, yourTools, { agent: "my-agent", readOnly: [] })',
  },
  {
    package: "@openai/agents",
    name: "OpenAI Agents SDK",
    page: "openai-agents.md",
    entry: "sallyport/openai-agents",
    use: 'gateTools(gate, yourTools, { agent: "my-agent", readOnly: [] })',
  },
  {
    package: "langchain",
    name: "LangChain",
    page: "langchain.md",
    entry: "sallyport/langchain",
    use: 'gateMiddleware(gate, yourTools, { agent: "my-agent", readOnly: [] })',
  },
  {
    package: "@langchain/langgraph",
    name: "LangGraph",
    page: "langchain.md",
    entry: "sallyport/langchain",
    use: 'gateTools(gate, yourTools, { agent: "my-agent", readOnly: [] })',
  },
  {
    package: "@mastra/core",
    name: "Mastra",
    page: "mastra.md",
    entry: "sallyport/mastra",
    use: 'gateTools(gate, yourTools, { agent: "my-agent", readOnly: [] })',
  },
  {
    package: "@anthropic-ai/claude-agent-sdk",
    name: "Claude Agent SDK",
    page: "claude-agent.md",
    entry: "sallyport/claude-agent",
    use: 'gateClaude(gate, yourTools, { agent: "my-agent", readOnly: [] })',
  },
];

interface Framework {
  readonly package: string;
  readonly name: string;
  /** Of the guide, which is part of the package. */
  readonly page: string;
  readonly entry: string;
  readonly use: string;
}

export function initCommand(): Command {
  return new Command("init")
    .description("Write a configuration, a first policy and an npm script for this project.")
    .action(withFlags<{ readonly json?: boolean }>((flags) => init(process.cwd(), flags)));
}

interface Manifest {
  readonly type?: string;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

const SCRIPT = "gate";
/** The package, and the driver of its default store. */
const NEEDED = ["sallyport", "better-sqlite3"];
/** Where the guide is once the package is installed. */
const GUIDE = "node_modules/sallyport/docs/guide";

function init(folder: string, flags: { readonly json?: boolean }): void {
  const file = path.join(folder, "package.json");
  const text = existsSync(file) ? readFileSync(file, "utf8") : undefined;
  const manifest = text === undefined ? { type: "module" } : manifestIn(text, file);
  const framework = FRAMEWORKS.find(({ package: name }) => name in dependenciesOf(manifest));
  const config = configName(folder, manifest, text === undefined);
  const done: string[] = [];

  const existing = CONFIG_NAMES.find((name) => existsSync(path.join(folder, name)));
  if (existing === undefined) {
    // `wx`: never over a file, also not over one that appeared meanwhile.
    writeFileSync(path.join(folder, config), configText(config, framework), { flag: "wx" });
    done.push(`Wrote ${config}: the tools, a first policy, and what else you can set.`);
  } else {
    done.push(`Kept ${existing}. To start anew, move it away and run init again.`);
  }

  const command = `sallyport serve --config ${existing ?? config}`;
  done.push(addScript({ file, text, manifest, command }));
  const found =
    framework === undefined
      ? "No agent framework was found in package.json; the guide shows how to gate one."
      : `Found the ${framework.name}: gate its tools with ${framework.entry}.`;
  const missing = NEEDED.filter((name) => !(name in dependenciesOf(manifest)));
  const install = missing.length === 0 ? "" : `npm install ${missing.join(" ")}, then `;
  const page = `${GUIDE}/${framework?.page ?? "gate-your-agent.md"}`;
  const next = [found, `Next: ${install}npm run ${SCRIPT}. Guide: ${page}`];
  print({ done, next }, flags, [...done, ...next]);
}

function manifestIn(text: string, file: string): Manifest {
  try {
    const manifest: unknown = JSON.parse(text);
    if (typeof manifest === "object" && manifest !== null) return manifest;
  } catch {
    // Reported below.
  }
  const hint = `${file} is not valid JSON. Correct it and run init again; nothing was written.`;
  throw new SallyportError("invalid_input", { what: file, hint });
}

function dependenciesOf({ dependencies, devDependencies }: Manifest): Record<string, string> {
  return { ...dependencies, ...devDependencies };
}

/** TypeScript where the project uses it or is empty. `m` where Node would take a plain file for CommonJS. */
function configName(folder: string, manifest: Manifest, isEmpty: boolean): string {
  const isTyped =
    isEmpty ||
    existsSync(path.join(folder, "tsconfig.json")) ||
    "typescript" in dependenciesOf(manifest);
  return `sallyport.config.${manifest.type === "module" ? "" : "m"}${isTyped ? "ts" : "js"}`;
}

/** Adds the script and changes nothing else of package.json. Says what it would have done where the name is taken. */
function addScript({ file, text, manifest, command }: AddedScript): string {
  const scripts = manifest.scripts ?? {};
  const taken = scripts[SCRIPT];
  if (taken === command) return `Kept the npm script "${SCRIPT}".`;
  if (taken !== undefined) {
    return `Kept the npm script "${SCRIPT}", which is "${taken}". Add this one under another name: "${command}".`;
  }
  const indent = /^[ \t]+/m.exec(text ?? "")?.[0] ?? "  ";
  const base = text === undefined ? { private: true, ...manifest } : manifest;
  const next = { ...base, scripts: { ...scripts, [SCRIPT]: command } };
  writeFileSync(file, `${JSON.stringify(next, null, indent)}\n`);
  return text === undefined
    ? `Wrote package.json with the npm script "${SCRIPT}".`
    : `Added the npm script "${SCRIPT}" to package.json: ${command}`;
}

interface AddedScript {
  readonly file: string;
  readonly text: string | undefined;
  readonly manifest: Manifest;
  readonly command: string;
}

function configText(name: string, framework: Framework | undefined): string {
  const isTyped = name.endsWith("ts");
  const typed = isTyped ? 'import type { Policy } from "sallyport";\n' : "";
  const checked = isTyped ? "" : "// @ts-check\n";
  const policy = isTyped
    ? "export const policy: Policy = {"
    : "/** @type {import('sallyport').Policy} */\nexport const policy = {";
  return `${checked}// What "sallyport serve", "worker" and "review" find here, and "sallyport mcp" with --config. Every field is optional except tools; a wrong one is
// refused with its name. All fields: the type SallyportConfig.
${typed}import { defineConfig } from "sallyport/config";

/** Rules are data: the first policy lets reading pass, and asks a person about everything else. */
${policy}
  version: "1",
  rules: [
    {
      id: "reading-passes",
      effect: "allow", // allow, ask or deny
      tool: "*", // a name, a beginning and "*", or a list of these
      toolEffect: "read", // what the tool declares: read, write or external
      reason: "Reading changes nothing.",
    },
    {
      id: "others-ask",
      effect: "ask",
      tool: "*",
      toolEffect: "external",
      reason: "It reaches another system, so a person decides.",
    },
  ],
};

export default defineConfig({
  // Tools of defineTool (sallyport/tools) that this server may execute once a call is approved. Leave it empty when only
  // your agent has them: then the agent's process executes what was approved here.
  tools: [],
  policy,
  // How long a question stays open, and an approval is good for.
  approvalMs: 24 * 3_600_000,
  // Who must say yes to what: review: [{ tools: ["billing.*"], requires: [{ name: "finance", count: 2 }] }]
  // Who may decide: people: [{ id: "person:ada" }]
  // Your own checks before a person is asked: validators: { tech, business }
});
${agentText(name, framework)}`;
}

function agentText(name: string, framework: Framework | undefined): string {
  if (framework === undefined) return "";
  return `
// Your agent, with the ${framework.name}; see ${GUIDE}/${framework.page}:
//
//   import { createGate } from "sallyport";
//   import { ${framework.use.split("(")[0]} } from "${framework.entry}";
//   import { policy } from "./${name}";
//
//   const gate = createGate({ policy });
//   const gated = ${framework.use};
`;
}
