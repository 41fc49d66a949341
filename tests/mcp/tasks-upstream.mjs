// @ts-nocheck
// The tools that the `tasks-*` scenarios of the conformance suite ask for, as plain tools: what the suite sees as tasks is the
// gateway's own work. `test_tool_with_task` alone asks for input and then makes a task by itself, which passes through.

import { createInterface } from "node:readline";

const say = (message) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const text = (words) => ({ content: [{ type: "text", text: words }] });

const uncached = { ttlMs: 0, cacheScope: "private" };

const TOOLS = {
  greet: ({ name }) => text(`Hello, ${name}!`),
  slow_compute: async ({ seconds = 0 }) => {
    await new Promise((resolve) => setTimeout(resolve, Math.min(seconds, 2) * 1_000));
    return text(`computed for ${seconds} s`);
  },
  failing_job: () => ({ ...text("The job failed."), isError: true }),
  protocol_error_job: () => {
    throw new Error("The job broke the protocol.");
  },
  confirm_delete: ({ filename }) => text(`deleted ${filename}`),
  multi_input: () => text("got both"),
};

const TASKS = { extensions: { "io.modelcontextprotocol/tasks": {} } };
const ASK = {
  resultType: "input_required",
  requestState: "round-1",
  inputRequests: {
    user_name: {
      method: "elicitation/create",
      params: {
        mode: "form",
        message: "What is your name?",
        requestedSchema: { type: "object", properties: { name: { type: "string" } } },
      },
    },
  },
};
const own = new Map();

function withTask({ inputResponses }) {
  const name = inputResponses?.user_name?.content?.name;
  if (name === undefined) return ASK;
  const taskId = `upstream-${own.size}`;
  const now = new Date().toISOString();
  const task = { taskId, createdAt: now, lastUpdatedAt: now, ttlMs: 60_000, pollIntervalMs: 100 };
  own.set(taskId, { ...task, status: "completed", result: text(`Hello, ${name}!`) });
  return { resultType: "task", ...task, status: "working" };
}

const tools = [...Object.keys(TOOLS), "test_tool_with_task"].map((name) => ({
  name,
  description: `Of the conformance suite: ${name}.`,
  inputSchema: { type: "object" },
}));

createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  if (id === undefined || method === undefined) return;
  const answer = (result) => say({ id, result: { resultType: "complete", ...result } });
  if (method === "server/discover") {
    const capabilities = { tools: {}, ...TASKS };
    const meta = { "io.modelcontextprotocol/serverInfo": { name: "tasks", version: "1" } };
    const supportedVersions = ["2026-07-28"];
    return answer({ supportedVersions, capabilities, ...uncached, _meta: meta });
  }
  if (method === "tools/list") return answer({ tools, ...uncached });
  if (method === "tasks/get" && own.has(params.taskId)) return answer(own.get(params.taskId));
  if (["tasks/get", "tasks/update", "tasks/cancel"].includes(method)) {
    return say({ id, error: { code: -32602, message: "There is no such task." } });
  }
  if (method !== "tools/call") return say({ id, error: { code: -32601, message: "no method" } });
  if (params.name === "test_tool_with_task") return answer(withTask(params));
  try {
    answer(await TOOLS[params.name](params.arguments ?? {}));
  } catch (error) {
    say({ id, error: { code: -32603, message: error.message } });
  }
});
