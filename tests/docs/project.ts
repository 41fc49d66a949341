import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { tableRows } from "../support/source-files.ts";
import { type Page, programOf, root } from "./pages.ts";

const INSTALLED = ["ai", "zod", "pg", "better-sqlite3", "@types"];
const FRAMEWORKS = ["@langchain", "@mastra", "@openai", "langchain"];
const FLAGS = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A project as a reader would have it: the samples of the guide as files, and our package among the installed ones. */
export interface Project extends Disposable {
  readonly dir: string;
  runPage(page: Page, env: NodeJS.ProcessEnv): Promise<Ran>;
  typeCheck(): Promise<Ran>;
  /** The command line, as a reader has it; ended like Ctrl+C ends it once it has said `until`. */
  runCommand(args: readonly string[], until: string): Promise<Ran>;
}

export function makeProject(pages: readonly Page[]): Project {
  const dir = mkdtempSync(path.join(tmpdir(), "sallyport-guide-"));
  mkdirSync(path.join(dir, "node_modules"));
  for (const name of INSTALLED) {
    symlinkSync(path.join(root, "node_modules", name), path.join(dir, "node_modules", name));
  }
  for (const name of FRAMEWORKS) {
    const installed = path.join(root, "tools/frameworks/node_modules", name);
    symlinkSync(installed, path.join(dir, "node_modules", name));
  }
  const claude = path.join(root, "tools/hosts/node_modules/@anthropic-ai");
  if (existsSync(claude)) symlinkSync(claude, path.join(dir, "node_modules/@anthropic-ai"));
  symlinkSync(root, path.join(dir, "node_modules", "sallyport"));
  const files = new Map<string, string>();
  for (const page of pages) {
    if (programOf(page) !== "") files.set(`${page.name}.ts`, programOf(page));
    for (const { language, info, text } of page.blocks) {
      if (language === "ts" && info !== "") files.set(info, text);
    }
  }
  files.set("exports.ts", examplesOfExports());
  files.set("typed.ts", typedPromises(pages));
  // The agent that pages about frameworks start from is the one of the examples.
  const agent = "examples/ai-sdk/agent.ts";
  files.set("agent.ts", readFileSync(path.join(root, agent), "utf8"));
  const model = "tests/support/scripted-model.ts";
  files.set("scripted-model.ts", readFileSync(path.join(root, model), "utf8"));
  files.set(
    "hosts/wires.ts",
    readFileSync(path.join(root, "tests/support/hosts/wires.ts"), "utf8"),
  );
  mkdirSync(path.join(dir, "hosts"), { recursive: true });
  for (const [file, text] of files) writeFileSync(path.join(dir, file), text);
  writeFileSync(path.join(dir, "package.json"), '{ "type": "module", "private": true }\n');
  const config = {
    extends: path.join(root, "tsconfig.json"),
    compilerOptions: { rootDir: "/", typeRoots: ["node_modules/@types"] },
    files: [...files.keys()],
  };
  writeFileSync(path.join(dir, "tsconfig.json"), JSON.stringify(config));
  return {
    dir,
    runPage(page, env) {
      // Each page begins with an empty inbox.
      rmSync(path.join(dir, ".sallyport"), { recursive: true, force: true });
      return run([...FLAGS, `${page.name}.ts`], dir, env);
    },
    typeCheck: () =>
      run([path.join(root, "node_modules/typescript/bin/tsc"), "--noEmit", "-p", dir], dir),
    runCommand: (args, until) =>
      run([...FLAGS, path.join(root, "src/cli/bin.ts"), ...args], dir, {}, until),
    [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }),
  };
}

/** `gated` of each framework knows what the tool of its page takes and returns; a misspelt field does not compile. */
function typedPromises(pages: readonly Page[]): string {
  const agents: readonly (readonly [page: string, tools: string])[] = [
    ["ai-sdk", "agent"],
    ["openai-agents", "openai-agent"],
    ["langchain", "langchain-agent"],
    ["mastra", "mastra-agent"],
    ["claude-agent", "claude-tools"],
  ];
  const present = agents.filter(([name]) => pages.some((page) => page.name === name));
  const lines = present.map(([name, tools], index) => {
    const entry = name === "ai-sdk" ? "ai" : name;
    return `import { gated as gated${index} } from "sallyport/${entry}";
import { refund as refund${index} } from "./${tools}.ts";
// @ts-expect-error
gated${index}(refund${index}, { dryRun: ({ input }) => \`\${input.misspelt}\` });
// @ts-expect-error
gated${index}(refund${index}, { undo: ({ output }) => ({ tool: "x", input: { y: output.misspelt } }) });
`;
  });
  return lines.join("");
}

/** The examples of docs/reference/api.md, each in a function of its own. Only compiled: what they act on is declared here. */
function examplesOfExports(): string {
  const rows = tableRows("docs/reference/api.md", "name");
  const names = rows.map(({ name = "" }) => name.slice(1, -1));
  const bodies = rows.map(({ example = "" }, index) => {
    const code = example.slice(1, -1);
    const [, made] = /^const (\{.*?\}|\w+) = /.exec(code) ?? [];
    const used = made === undefined ? "" : `\n  return ${made};`;
    return `export async function example${index}() {\n  ${code}${used}\n}`;
  });
  return `import { ${names.join(", ")} } from "sallyport";
import type { CallRequest, Decision, Gate, Session, Store, Validator } from "sallyport";
import type { DecisionStore } from "sallyport/store";
import type { Tool } from "sallyport/tools";
declare const refund: Tool;
declare const gate: Gate;
declare const session: Session;
declare const store: Store;
declare const decisions: DecisionStore;
declare const decision: Decision;
declare const tech: Validator;
declare const business: Validator;
declare const calls: readonly CallRequest[];
declare const request: CallRequest;
declare const options: Parameters<typeof orchestrate>[1];
declare const read: Parameters<typeof waitsForUpstreamGuard>[0]["read"];
declare const signal: AbortSignal;
declare const error: unknown;
${bodies.join("\n")}
`;
}

function run(
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = {},
  until?: string,
): Promise<Ran> {
  const child = spawn(process.execPath, args, {
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  let [stdout, stderr] = ["", ""];
  const heard = () => {
    if (until !== undefined && (stdout + stderr).includes(until)) child.kill("SIGINT");
  };
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
    heard();
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
    heard();
  });
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, stdout, stderr })));
}
