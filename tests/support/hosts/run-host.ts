// The published coding agents as processes: headless, with their own home folder, against a scripted model on loopback.
// Each host is one entry of HOSTS: how to start it, and how its model asks for a shell command or a new file.

import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { ScriptedTurn } from "../scripted-model.ts";

const modules = path.join(import.meta.dirname, "../../../tools/hosts/node_modules");

export type HostName = "claude-code" | "codex" | "gemini" | "opencode";
type Call = NonNullable<ScriptedTurn["calls"]>[number];

/** Where one run takes place. `home` holds the settings of the user, `project` is the working folder. */
export interface HostPlace {
  readonly home: string;
  readonly project: string;
  readonly modelUrl: string;
  readonly env?: NodeJS.ProcessEnv;
  /** An MCP server that the host starts. */
  readonly mcp?: HostMcp;
}

export interface HostMcp {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface HostRun extends HostPlace {
  readonly prompt?: string;
  /** The session to continue, where the host can. */
  readonly resume?: string;
  readonly args?: readonly string[];
  /** Ends the run; the process gets SIGKILL. */
  readonly signal?: AbortSignal;
}

export interface HostOutcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Host {
  readonly name: HostName;
  /** Settings that every run needs besides those under test; merged by the caller where a file is shared. */
  prepare(place: HostPlace): void;
  run(run: HostRun): Promise<HostOutcome>;
  shell(id: string, command: string): Call;
  write(id: string, file: string, content: string): Call;
}

export const HOSTS: Readonly<Record<HostName, Host>> = {
  "claude-code": {
    name: "claude-code",
    prepare({ home, mcp }) {
      mkdirSync(path.join(home, ".claude"), { recursive: true });
      if (mcp === undefined) return;
      writeFileSync(claudeMcp(home), JSON.stringify({ mcpServers: { [mcp.name]: started(mcp) } }));
    },
    run(given) {
      const { prompt = "Go.", resume, args = [], modelUrl, mcp } = given;
      const file = path.join(modules, "@anthropic-ai/claude-code-linux-x64/claude");
      const again = resume === undefined ? [] : ["--resume", resume];
      const fixed = ["--output-format", "json", "--model", "claude-sonnet-4-5"];
      const own = mcp === undefined ? "" : `,mcp__${mcp.name}`;
      const tools = ["--allowedTools", `Bash,Write,Edit,Read,Agent${own}`];
      const servers =
        mcp === undefined ? [] : ["--strict-mcp-config", "--mcp-config", claudeMcp(given.home)];
      const all = ["-p", prompt, ...again, ...fixed, ...tools, ...servers, ...args];
      return program(file, all, given, {
        ANTHROPIC_BASE_URL: modelUrl,
        ANTHROPIC_API_KEY: "none",
        DISABLE_AUTOUPDATER: "1",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        IS_SANDBOX: "1",
      });
    },
    shell: (id, command) => ({ id, name: "Bash", input: { command, description: "go" } }),
    write: (id, file_path, content) => ({ id, name: "Write", input: { file_path, content } }),
  },
  codex: {
    name: "codex",
    prepare({ home, modelUrl, mcp }) {
      mkdirSync(path.join(home, ".codex"), { recursive: true });
      const config = `${codexConfig(modelUrl)}${mcp === undefined ? "" : codexMcp(mcp)}`;
      writeFileSync(path.join(home, ".codex/config.toml"), config);
    },
    run(given) {
      const { prompt = "Go.", resume, args = [] } = given;
      const fixed = ["--skip-git-repo-check", "--json"];
      const sandbox = ["-s", "danger-full-access"];
      const command =
        resume === undefined
          ? ["exec", ...fixed, ...sandbox, ...args, prompt]
          : ["exec", ...sandbox, "resume", ...fixed, ...args, resume, prompt];
      return program(codexProgram(), command, given, codexEnv(given));
    },
    shell: (id, cmd) => ({ id, name: "exec_command", input: { cmd } }),
    write(id, file, content) {
      const lines = content.replace(/\n$/, "").split("\n");
      const added = lines.map((line) => `+${line}`).join("\n");
      const input = `*** Begin Patch\n*** Add File: ${file}\n${added}\n*** End Patch`;
      return { id, name: "apply_patch", input };
    },
  },
  gemini: {
    name: "gemini",
    prepare({ home, mcp }) {
      mkdirSync(path.join(home, ".gemini"), { recursive: true });
      const auth = { security: { auth: { selectedType: "gemini-api-key" } } };
      const servers = mcp === undefined ? {} : { mcpServers: { [mcp.name]: started(mcp) } };
      const settings = JSON.stringify({ ...auth, ...servers });
      writeFileSync(path.join(home, ".gemini/settings.json"), settings);
    },
    run(given) {
      const { prompt = "Go.", args = [], modelUrl } = given;
      const file = path.join(modules, "@google/gemini-cli/bundle/gemini.js");
      const fixed = ["-o", "json", "-m", "gemini-2.5-flash", "--skip-trust"];
      const all = [file, "-p", prompt, ...fixed, "--approval-mode", "yolo", ...args];
      return program(process.execPath, all, given, {
        GOOGLE_GEMINI_BASE_URL: modelUrl,
        GEMINI_API_KEY: "x",
        GEMINI_CLI_NO_RELAUNCH: "true",
      });
    },
    shell: (id, command) => ({ id, name: "run_shell_command", input: { command } }),
    write: (id, file_path, content) => ({ id, name: "write_file", input: { file_path, content } }),
  },
  opencode: {
    name: "opencode",
    prepare({ project, modelUrl }) {
      writeFileSync(path.join(project, "opencode.json"), JSON.stringify(opencodeConfig(modelUrl)));
    },
    run(given) {
      const { prompt = "Go.", args = [] } = given;
      const file = path.join(modules, "opencode-linux-x64/bin/opencode");
      return program(file, ["run", "--format", "json", ...args, prompt], given, {
        OPENCODE_DISABLE_MODELS_FETCH: "1",
        OPENCODE_DISABLE_AUTOUPDATE: "1",
      });
    },
    shell: (id, command) => ({ id, name: "bash", input: { command, description: "go" } }),
    write: (id, filePath, content) => ({ id, name: "write", input: { filePath, content } }),
  },
};

export function claudeMcp(home: string): string {
  return path.join(home, ".claude/mcp.json");
}

function started({ command, args, env }: HostMcp) {
  return { command, args, env };
}

/** `required`: otherwise Codex asks its model before the server is there. */
function codexMcp({ name, command, args, env }: HostMcp): string {
  const pairs = Object.entries(env).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  return `
[mcp_servers.${name}]
command = ${JSON.stringify(command)}
args = ${JSON.stringify(args)}
env = { ${pairs.join(", ")} }
required = true
startup_timeout_sec = 60
`;
}

/** How each host is started. */
export const HOST_PROGRAMS: Readonly<Record<HostName, () => readonly string[]>> = {
  "claude-code": () => [path.join(modules, "@anthropic-ai/claude-code-linux-x64/claude")],
  codex: () => [codexProgram()],
  gemini: () => [process.execPath, path.join(modules, "@google/gemini-cli/bundle/gemini.js")],
  opencode: () => [path.join(modules, "opencode-linux-x64/bin/opencode")],
};

export function codexProgram(): string {
  return path.join(modules, "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex");
}

export function codexEnv({ home }: Pick<HostPlace, "home">): NodeJS.ProcessEnv {
  return { CODEX_HOME: path.join(home, ".codex"), SCRIPTED_KEY: "none" };
}

export function codexConfig(modelUrl: string): string {
  return `model = "scripted"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "${modelUrl}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
`;
}

export function opencodeConfig(modelUrl: string) {
  const options = { baseURL: `${modelUrl}/v1`, apiKey: "none" };
  const models = { scripted: { name: "scripted" } };
  const provider = {
    scripted: { npm: "@ai-sdk/openai-compatible", name: "scripted", options, models },
  };
  return { provider, model: "scripted/scripted", autoupdate: false };
}

/** Nothing of the machine's own settings reaches the host. */
function program(
  file: string,
  args: readonly string[],
  { home, project, env = {}, signal }: HostRun,
  own: NodeJS.ProcessEnv,
): Promise<HostOutcome> {
  const { PATH } = process.env;
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: project,
      env: { PATH, HOME: home, TERM: "dumb", ...own, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      killSignal: "SIGKILL",
      ...(signal === undefined ? {} : { signal }),
    });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (chunk) => {
      stdout += chunk;
    });
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    child.on("error", (error) => (error.name === "AbortError" ? undefined : reject(error)));
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}
