import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { serve } from "../src/cli/serve.ts";
import { createClient } from "../src/client/create-client.ts";
import { readHookAccess } from "../src/coding-agents/access.ts";
import type { Result } from "./report.ts";

const ROUNDS = 40;
const CALLS = 1_000;
const bin = path.join(import.meta.dirname, "../dist/cli/bin.js");

/** What the hook of a coding agent adds to a call, beside a process of Node that does nothing, and a session of 1,000 calls. */
export async function* hookBenches(wanted: (name: string) => boolean): AsyncGenerator<Result> {
  if (!wanted("hook.")) return;
  if (!existsSync(bin))
    throw new Error("run npm run build first: the hook is measured as it is published");
  const root = mkdtempSync(path.join(tmpdir(), "sallyport-bench-"));
  const [project, data] = [path.join(root, "project"), path.join(root, "data")];
  mkdirSync(project);
  const served = await serve({
    data,
    tenant: "default",
    listen: { port: 0 },
    person: "person:you",
    upkeepMs: 60_000,
    anchors: "off",
    state: path.join(root, "state"),
    onProblem: console.error,
    parts: () => ({ tools: [], codingAgents: { project } }),
  });
  try {
    const times = { bare: [] as number[], before: [] as number[], after: [] as number[] };
    const hook = [bin, "hook", "claude-code", "--data", data];
    for (let n = 0; n < ROUNDS; n += 1) {
      times.bare.push(await timed(["-e", "0"], ""));
      times.before.push(await timed(hook, event("PreToolUse", n, project)));
      times.after.push(await timed(hook, event("PostToolUse", n, project)));
    }
    const bare = median(times.bare);
    yield { name: "hook.node", value: bare, unit: "ms p50" };
    for (const name of ["before", "after"] as const) {
      const value = median(times[name]);
      const ratio = value / bare;
      yield {
        name: `hook.${name}`,
        value,
        unit: "ms p50",
        against: "node",
        ratio,
        goal: "<= 150 ms",
      };
    }
    yield* session(data, project);
  } finally {
    await served.close();
    rmSync(root, { recursive: true, force: true });
  }
}

/** The same requests as the hook sends, without its processes. */
async function* session(data: string, project: string): AsyncGenerator<Result> {
  const access = readHookAccess(data);
  if (access === undefined) throw new Error("the server wrote no access file");
  const client = createClient({ url: access.url, token: access.tokens["claude-code"] });
  const { id } = await client.sessions.open({ id: "thousand" });
  const start = performance.now();
  for (let n = 0; n < CALLS; n += 1) {
    const callId = `toolu_${n}`;
    const input = { host: "claude-code", tool: "Write", cwd: project, input: written(n, project) };
    const call = { id, callId, tool: "coding.edit", input };
    const { answer } = await client.sessions.permit(call, { idempotencyKey: callId });
    if (answer !== "permitted") throw new Error(`call ${n} was answered with ${answer}`);
    await client.sessions.report({ id, key: callId, outcome: "executed", output: "ok" });
  }
  const ms = (performance.now() - start) / CALLS;
  yield { name: "hook.session.1000", value: ms, unit: "ms/call", goal: "<= 20" };
}

const written = (n: number, project: string) => ({
  file_path: path.join(project, `file-${n % 20}.txt`),
  content: `${n}\n`,
});

function event(hook_event_name: string, n: number, cwd: string): string {
  const about = { session_id: "bench", cwd, hook_event_name, tool_use_id: `toolu_${n}` };
  const tool_input = { file_path: path.join(cwd, "a.txt"), content: `${n}\n` };
  return JSON.stringify({ ...about, tool_name: "Write", tool_input, tool_response: "ok" });
}

function timed(args: readonly string[], input: string): Promise<number> {
  const start = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: ["pipe", "ignore", "inherit"] });
    child.stdin.end(input);
    child.on("error", reject);
    child.on("close", (code) =>
      code === 0
        ? resolve(performance.now() - start)
        : reject(new Error(`the hook ended with ${code}`)),
    );
  });
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
