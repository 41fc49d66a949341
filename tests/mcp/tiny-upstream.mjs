// @ts-nocheck
// A hand-written MCP server on standard input and output, without any SDK. It logs every line that reaches it (WIRE_LOG) and
// writes one line per effect (LEDGER), so that a test can say what arrived and what happened. Both eras of the protocol.

import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const {
  WIRE_LOG = "",
  LEDGER = "",
  STATE = "",
  TOOLS = "",
  REVISION = "",
  PIDS = "",
} = process.env;
if (PIDS !== "") appendFileSync(PIDS, `${process.pid}\n`);
if (WIRE_LOG !== "") appendFileSync(WIRE_LOG, "start\n");

const object = (properties) => ({ type: "object", properties, additionalProperties: false });
const text = { type: "string" };

/** TOOLS replaces the definitions; a file, so that a test can change them while the server runs. */
function tools() {
  if (TOOLS !== "" && existsSync(TOOLS)) return JSON.parse(readFileSync(TOOLS, "utf8"));
  return [
    {
      name: "append",
      description: "Appends a line to the ledger.",
      inputSchema: object({ line: text }),
      annotations: { readOnlyHint: true },
    },
    {
      name: "count",
      description: "Counts the lines of the ledger.",
      inputSchema: object({}),
      outputSchema: { type: "object", properties: { lines: { type: "integer" } } },
    },
    { name: "put", description: "Sets a value.", inputSchema: object({ key: text, value: text }) },
    { name: "get", description: "Reads a value.", inputSchema: object({ key: text }) },
    { name: "die", description: "Ends after its effect.", inputSchema: object({ line: text }) },
    { name: "later", description: "Takes its time.", inputSchema: object({ line: text }) },
    { name: "fail", description: "Refuses.", inputSchema: object({}) },
    { name: "slow", description: "Reports progress.", inputSchema: object({}) },
    { name: "roots", description: "Asks for the client's folders.", inputSchema: object({}) },
  ];
}

const say = (message) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const block = (words) => [{ type: "text", text: words }];
const ledger = () => (existsSync(LEDGER) ? readFileSync(LEDGER, "utf8").split("\n").length - 1 : 0);
const state = () => (existsSync(STATE) ? JSON.parse(readFileSync(STATE, "utf8")) : {});
const waiting = new Map();

function call({ id, params }) {
  const { name, arguments: input = {}, _meta = {} } = params;
  const done = (result) => say({ id, result: { ...kind(params), ...result } });
  switch (name) {
    case "append":
      appendFileSync(LEDGER, `${input.line}\n`);
      return done({ content: block(`appended ${input.line}`) });
    case "count":
      return done({ content: block(String(ledger())), structuredContent: { lines: ledger() } });
    case "put":
      writeFileSync(STATE, JSON.stringify({ ...state(), [input.key]: input.value }));
      return done({ content: block(`put ${input.key}`) });
    case "get":
      return done({ content: block(String(state()[input.key] ?? "")) });
    case "once": {
      // Dies after its effect; the same key again only gets the answer.
      const { [input.key]: before = "", ...values } = state();
      const isError = input.line === "strict";
      if (before === "paid") return done({ content: block(`paid ${input.line} before`), isError });
      writeFileSync(STATE, JSON.stringify({ ...values, [input.key]: "paid", target: input.line }));
      appendFileSync(LEDGER, `${input.line}\n`);
      return process.exit(3);
    }
    case "late":
      // Dies before its effect, once.
      if (state().died === undefined) {
        writeFileSync(STATE, JSON.stringify({ ...state(), died: true }));
        return process.exit(3);
      }
      appendFileSync(LEDGER, `${input.line}\n`);
      return done({ content: block(`late ${input.line}`) });
    case "entries":
      if (input.refuse === true) return done({ content: block("no ledger"), isError: true });
      if (input.broken === true) return say({ id, error: { code: -32603, message: "disk error" } });
      return done({ content: block(existsSync(LEDGER) ? readFileSync(LEDGER, "utf8") : "none") });
    case "die":
      appendFileSync(LEDGER, `${input.line}\n`);
      return process.exit(3);
    case "later":
      return setTimeout(() => {
        appendFileSync(LEDGER, `${input.line}\n`);
        done({ content: block(`later ${input.line}`) });
      }, 500);
    case "fail":
      return done({ content: block("no, thank you"), isError: true });
    case "slow":
      say({
        method: "notifications/progress",
        params: { progressToken: _meta.progressToken, progress: 1, total: 2 },
      });
      return done({ content: block("slow") });
    case "roots":
      waiting.set("ask-1", (answer) => done({ content: block(JSON.stringify(answer)) }));
      return say({ id: "ask-1", method: "roots/list", params: {} });
    default:
      return say({ id, error: { code: -32602, message: `no tool ${name}` } });
  }
}

const VERSION = "io.modelcontextprotocol/protocolVersion";
const kind = (params) => (params?._meta?.[VERSION] === undefined ? {} : { resultType: "complete" });

createInterface({ input: process.stdin }).on("line", (line) => {
  if (WIRE_LOG !== "") appendFileSync(WIRE_LOG, `${line}\n`);
  const message = JSON.parse(line);
  const { id, method, params = {} } = message;
  if (method === undefined) return waiting.get(id)?.(message.result ?? message.error);
  if (id === undefined) return;
  const serverInfo = { name: "tiny", version: `1${REVISION}` };
  const capabilities = { tools: { listChanged: true } };
  switch (method) {
    case "initialize":
      return say({
        id,
        result: { protocolVersion: params.protocolVersion, capabilities, serverInfo },
      });
    case "server/discover":
      return say({
        id,
        result: { ...kind(params), supportedVersions: ["2026-07-28"], capabilities, serverInfo },
      });
    case "tools/list":
      return say({ id, result: { ...kind(params), tools: tools() } });
    case "tools/call":
      return call(message);
    case "ping":
      return say({ id, result: {} });
    default:
      return say({ id, error: { code: -32601, message: `no method ${method}` } });
  }
});
