// The proof that an installed hook works: the real host is run once, headless, against a small model on loopback that asks for a
// command the rules deny. The command would delete a folder made for this purpose. The folder must still be there, and the
// host must have told the model Sallyport's reason: a hook that was skipped and a tool that failed by itself are no proof.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { json } from "node:stream/consumers";
import { errorText } from "../util/error-text.ts";
import type { HostName } from "./hosts.ts";

export interface CanaryPlace {
  readonly host: HostName;
  /** The host's own program; its name on the PATH when left out. */
  readonly program?: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** The project whose settings are to be proved; without it, those that hold in every folder. */
  readonly project?: string;
}

export interface CanaryResult {
  readonly ok: boolean;
  readonly text: string;
}

const CANARY_MS = 120_000;

export async function runCanary({
  host,
  program,
  env,
  project,
}: CanaryPlace): Promise<CanaryResult> {
  const root = realpathSync(mkdtempSync(path.join(tmpdir(), "sallyport-canary-")));
  const kept = path.join(root, "kept");
  mkdirSync(kept);
  const model = await startModel(host, `rm -rf ${kept}`);
  try {
    const { args, more } = RUNS[host](model.url);
    const [file = "", ...first] = program ?? [PROGRAMS[host]];
    const whole = { ...env, ...more };
    const ended = await runHost(file, [...first, ...args], {
      cwd: project ?? root,
      env: whole,
    });
    if (!existsSync(kept)) {
      return {
        ok: false,
        text: `${host} ran a command that the rules deny: the hook does not work`,
      };
    }
    if (model.told() === undefined) {
      return { ok: false, text: `${host} did not get as far as a tool call (${ended})` };
    }
    const isOurs = /Sallyport|refused by rule/.test(model.told() ?? "");
    return isOurs
      ? { ok: true, text: `${host} asked the hook, and deny denied` }
      : { ok: false, text: `${host} did not ask the hook: ${(model.told() ?? "").slice(0, 200)}` };
  } catch (error) {
    return { ok: false, text: `${host} could not be started: ${errorText(error)}` };
  } finally {
    model.close();
    rmSync(root, { recursive: true, force: true });
  }
}

export const PROGRAMS: Readonly<Record<HostName, string>> = {
  "claude-code": "claude",
  codex: "codex",
  gemini: "gemini",
  opencode: "opencode",
};

interface Run {
  readonly args: readonly string[];
  readonly more: NodeJS.ProcessEnv;
}

/** The user's own settings are used, so that what they switch off is noticed; only the model is another one. */
const RUNS: Readonly<Record<HostName, (url: string) => Run>> = {
  "claude-code": (url) => ({
    args: ["-p", "Go.", "--output-format", "json", "--allowedTools", "Bash"],
    more: {
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: "canary",
      DISABLE_AUTOUPDATER: "1",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    },
  }),
  codex: (url) => {
    const provider = `{ name = "canary", base_url = "${url}/v1", wire_api = "responses", env_key = "CANARY_KEY" }`;
    const settings = [
      "model=canary",
      "model_provider=canary",
      `model_providers.canary=${provider}`,
    ];
    const flags = settings.flatMap((one) => ["-c", one]);
    const fixed = ["--skip-git-repo-check", "--json", "-s", "danger-full-access"];
    return { args: ["exec", ...fixed, ...flags, "Go."], more: { CANARY_KEY: "canary" } };
  },
  gemini: (url) => ({
    args: [
      "-p",
      "Go.",
      "-o",
      "json",
      "-m",
      "gemini-2.5-flash",
      "--skip-trust",
      "--approval-mode",
      "yolo",
    ],
    more: { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: "canary", GEMINI_CLI_NO_RELAUNCH: "true" },
  }),
  opencode: (url) => {
    const options = { baseURL: `${url}/v1`, apiKey: "canary" };
    const canary = { npm: "@ai-sdk/openai-compatible", options, models: { canary: {} } };
    const config = { provider: { canary }, model: "canary/canary" };
    return {
      args: ["run", "--format", "json", "Go."],
      more: { OPENCODE_CONFIG_CONTENT: JSON.stringify(config), OPENCODE_DISABLE_MODELS_FETCH: "1" },
    };
  },
};

function runHost(
  file: string,
  args: readonly string[],
  how: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      ...how,
      stdio: ["ignore", "ignore", "pipe"],
      timeout: CANARY_MS,
      killSignal: "SIGKILL",
    });
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr = `${stderr}${chunk}`.slice(-500);
    });
    child.on("error", reject);
    child.on("close", (code, signal) =>
      resolve(`it ended with ${signal ?? code}: ${stderr.trim()}`),
    );
  });
}

/** Asks for the command in its first turn, and notes what it is told. */
async function startModel(host: HostName, command: string) {
  let told: string | undefined;
  const server = createServer(async (request, response) => {
    try {
      const body = request.method === "POST" ? ((await json(request)) as object) : {};
      const { pathname } = new URL(request.url ?? "/", "http://model");
      const events = WIRES[host].answer(JSON.stringify(body), command, pathname);
      if (events === undefined) return void response.writeHead(404).end();
      const result = WIRES[host].result.exec(JSON.stringify(body));
      if (result !== null) told = JSON.stringify(body).slice(result.index, result.index + 4_000);
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const event of events) {
        const type = "type" in event ? `event: ${event.type}\n` : "";
        response.write(`${type}data: ${JSON.stringify(event)}\n\n`);
      }
      response.end(host === "opencode" ? "data: [DONE]\n\n" : undefined);
    } catch {
      response.writeHead(500).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    told: () => told,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

interface Wire {
  /** Where the result of a call stands in a request. */
  readonly result: RegExp;
  /** Undefined for a request that is not for the model. */
  answer(body: string, command: string, pathname: string): readonly object[] | undefined;
}

const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };

const WIRES: Readonly<Record<HostName, Wire>> = {
  "claude-code": {
    result: /"type":"tool_result"/,
    answer(body, command, pathname) {
      if (pathname !== "/v1/messages") return undefined;
      const isOver = this.result.test(body);
      const block = isOver
        ? { type: "text", text: "" }
        : { type: "tool_use", id: "toolu_canary", name: "Bash", input: {} };
      const input = JSON.stringify({ command, description: "canary" });
      const delta = isOver
        ? { type: "text_delta", text: "done" }
        : { type: "input_json_delta", partial_json: input };
      const stop_reason = isOver ? "end_turn" : "tool_use";
      const about = { id: "msg_canary", type: "message", role: "assistant", model: "canary" };
      return [
        { type: "message_start", message: { ...about, content: [], stop_reason: null, usage } },
        { type: "content_block_start", index: 0, content_block: block },
        { type: "content_block_delta", index: 0, delta },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage },
        { type: "message_stop" },
      ];
    },
  },
  codex: {
    result: /"type":"function_call_output"/,
    answer(body, command, pathname) {
      if (!pathname.endsWith("/responses")) return undefined;
      const text = [{ type: "output_text", text: "done", annotations: [] }];
      const item = this.result.test(body)
        ? { type: "message", id: "msg_1", role: "assistant", status: "completed", content: text }
        : {
            type: "function_call",
            id: "fc_1",
            call_id: "call_canary",
            name: "exec_command",
            arguments: JSON.stringify({ cmd: command }),
            status: "completed",
          };
      const response = { id: "resp_1", object: "response", model: "canary", status: "completed" };
      return [
        { type: "response.created", response: { ...response, output: [] } },
        { type: "response.output_item.done", output_index: 0, item },
        { type: "response.completed", response: { ...response, output: [item], usage } },
      ];
    },
  },
  gemini: {
    result: /"functionResponse"/,
    answer(body, command, pathname) {
      if (!/enerateContent$/.test(pathname)) return undefined;
      const call = { functionCall: { name: "run_shell_command", args: { command } } };
      const parts = [this.result.test(body) ? { text: "done" } : call];
      const content = { role: "model", parts };
      return [{ candidates: [{ content, finishReason: "STOP", index: 0 }] }];
    },
  },
  opencode: {
    result: /"role":"tool"/,
    answer(body, command, pathname) {
      if (!pathname.endsWith("/chat/completions")) return undefined;
      const isOver = this.result.test(body);
      const args = JSON.stringify({ command, description: "canary" });
      const call = { index: 0, id: "call_1", type: "function" };
      const tool_calls = [{ ...call, function: { name: "bash", arguments: args } }];
      const delta = {
        role: "assistant",
        content: isOver ? "done" : "",
        ...(isOver ? {} : { tool_calls }),
      };
      const chunk = { id: "c", object: "chat.completion.chunk", created: 1, model: "canary" };
      const end = isOver ? "stop" : "tool_calls";
      return [
        { ...chunk, choices: [{ index: 0, delta, finish_reason: null }] },
        { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: end }] },
      ];
    },
  },
};
