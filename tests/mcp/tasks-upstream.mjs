// @ts-nocheck
// The tools that the `tasks-*` scenarios of the conformance suite ask for, as plain tools of a server without tasks: what the
// suite sees as tasks is the gateway's own work.

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

const tools = Object.keys(TOOLS).map((name) => ({
  name,
  description: `Of the conformance suite: ${name}.`,
  inputSchema: { type: "object" },
}));

createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  if (id === undefined || method === undefined) return;
  const answer = (result) => say({ id, result: { resultType: "complete", ...result } });
  if (method === "server/discover") {
    const capabilities = { tools: {} };
    const meta = { "io.modelcontextprotocol/serverInfo": { name: "tasks", version: "1" } };
    const supportedVersions = ["2026-07-28"];
    return answer({ supportedVersions, capabilities, ...uncached, _meta: meta });
  }
  if (method === "tools/list") return answer({ tools, ...uncached });
  if (method !== "tools/call") return say({ id, error: { code: -32601, message: "no method" } });
  try {
    answer(await TOOLS[params.name](params.arguments ?? {}));
  } catch (error) {
    say({ id, error: { code: -32603, message: error.message } });
  }
});
