// @ts-nocheck
// An MCP server that answers as it should, and around each answer sends what no server should: responses to requests that it
// was not sent, forged ids, broken lines, changed definitions, huge schemas. MESSAGES of them, by SEED.

import { createInterface } from "node:readline";

const { SEED = "1", MESSAGES = "100" } = process.env;
let seed = Number(SEED);
let left = Number(MESSAGES);

/** A small generator; the same seed sends the same messages. */
function dice(sides) {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return Math.floor((seed / 2 ** 32) * sides);
}

const line = (value) =>
  process.stdout.write(`${typeof value === "string" ? value : JSON.stringify(value)}\n`);
const deep = (depth) => "[".repeat(depth) + "]".repeat(depth);
const schema = { type: "object", properties: { line: { type: "string" } } };
const tool = (more = {}) => ({
  name: "touch",
  description: "Touches.",
  inputSchema: schema,
  ...more,
});

const ODD = [
  () => ({ jsonrpc: "2.0", id: dice(50), result: { content: [{ type: "text", text: "forged" }] } }),
  () => ({
    jsonrpc: "2.0",
    id: `sallyport-${dice(50)}`,
    result: { tools: [tool({ name: "forged" })] },
  }),
  () => ({ jsonrpc: "2.0", id: `sallyport-${dice(50)}`, error: { code: 1, message: "forged" } }),
  () => ({ jsonrpc: "2.0", id: null, result: {} }),
  () => ({ jsonrpc: "2.0", id: {}, method: 5 }),
  () => ({ jsonrpc: "1.0", id: 1, result: {} }),
  () => ({ jsonrpc: "2.0", id: dice(5), method: "roots/list", params: {} }),
  () => ({ jsonrpc: "2.0", id: dice(5), method: "tools/call", params: { name: "touch" } }),
  () => ({ jsonrpc: "2.0", method: "notifications/tools/list_changed" }),
  () => ({
    jsonrpc: "2.0",
    method: "notifications/progress",
    params: { progressToken: {}, progress: "x" },
  }),
  () => ({ jsonrpc: "2.0", id: dice(50), result: "text", error: [] }),
  () => "{",
  () => "\u0000\u0001\ufffd",
  () => "null",
  () => '"text"',
  () => deep(dice(20_000)),
  () => `{"__proto__":{"polluted":true},"jsonrpc":"2.0","id":${dice(50)},"result":{}}`,
  () => `[${'{"jsonrpc":"2.0"},'.repeat(dice(50))}{}]`,
  () => "x".repeat(dice(100_000)),
];

function listed() {
  const schemas = [
    schema,
    {
      type: "object",
      properties: Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`p${n}`, {}])),
    },
    { $ref: "#" },
    { type: "array" },
    "text",
    null,
    { type: "object", properties: { line: { pattern: "(a+)+$" } } },
  ];
  const names = ["touch", "touch", "t0uch", "../touch", "tou\u200bch", 5, null, "x".repeat(500)];
  const pick = (list) => list[dice(list.length)];
  return [
    tool(),
    ...Array.from({ length: dice(6) }, () =>
      tool({ name: pick(names), inputSchema: pick(schemas) }),
    ),
    null,
    5,
  ];
}

createInterface({ input: process.stdin }).on("line", (text) => {
  for (let burst = Math.min(left, 25); burst > 0; burst -= 1, left -= 1)
    line(ODD[dice(ODD.length)]());
  const { id, method, params = {} } = JSON.parse(text);
  if (method === undefined || id === undefined) return;
  const say = (result) => line({ jsonrpc: "2.0", id, result });
  if (method === "initialize") {
    const { protocolVersion } = params;
    say({
      protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "hostile", version: "1" },
    });
  } else if (method === "tools/list") say({ tools: listed() });
  else if (method === "tools/call") say({ content: [{ type: "text", text: "touched" }] });
  else say({ left });
});
