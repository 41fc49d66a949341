// Sallyport itself as an MCP server: the inbox, decisions and the shared task list as tools. Each tool is a route of the HTTP API
// with its own schema, called with a credential whose rights the server checks. Nothing here decides: approving is for people.

import type { Readable, Writable } from "node:stream";
import { z } from "zod";
import type { RouteName } from "../http/paths.ts";
import { ROUTES } from "../http/routes.ts";
import { SallyportError } from "../model/errors.ts";
import { errorText } from "../util/error-text.ts";
import { isJsonObject, type JsonObject } from "../util/json.ts";
import {
  BadMessageError,
  errorMessage,
  isStateless,
  LARGEST_MESSAGE,
  type Message,
  type RequestMessage,
  type ResponseMessage,
  RPC,
  readClientMessage,
  resultMessage,
} from "./message.ts";

/** What a tool does, by the route that does it. */
export const INBOX_TOOLS = {
  inbox_list: "interactions.list",
  inbox_get: "interactions.shown",
  decision_list: "decisions.list",
  decision_status: "decisions.get",
  task_list: "tasks.list",
  task_get: "tasks.get",
  task_claim: "tasks.claim",
  task_claim_next: "tasks.claimNext",
  task_complete: "tasks.complete",
  task_fail: "tasks.fail",
  task_release: "tasks.release",
} as const satisfies Record<string, RouteName>;

type ToolName = keyof typeof INBOX_TOOLS;

export interface InboxServer {
  readonly input: Readable;
  readonly output: Writable;
  /** Calls one route with the credential of whoever started this server. Shape: callback. */
  readonly call: (route: RouteName, input: JsonObject) => Promise<unknown>;
}

const VERSIONS = ["2025-06-18", "2025-11-25"];
const STATELESS = ["2026-07-28"];
const ABOUT = { name: "sallyport-inbox", version: "0.1.0" };

/** Serves one client until its input ends. */
export async function serveInbox({ input, output, call }: InboxServer): Promise<void> {
  const send = ({ raw }: Message) => void output.write(`${raw}\n`);
  output.on("error", () => input.destroy());
  const running = new Set<Promise<void>>();
  let begun = Buffer.alloc(0);
  for await (const piece of input) {
    begun = Buffer.concat([begun, piece as Buffer]);
    for (let end = begun.indexOf(10); end >= 0; end = begun.indexOf(10)) {
      const line = begun.subarray(0, end);
      begun = begun.subarray(end + 1);
      if (line.toString("utf8").trim() === "") continue;
      const work = answered(line, call)
        .then((response) => response && send(response))
        .finally(() => running.delete(work));
      running.add(work);
    }
    if (begun.length > LARGEST_MESSAGE) {
      send(errorMessage(null, RPC.invalid, `A line is longer than ${LARGEST_MESSAGE} bytes.`));
      break;
    }
  }
  await Promise.all(running);
}

async function answered(
  line: Uint8Array,
  call: InboxServer["call"],
): Promise<ResponseMessage | undefined> {
  let message: Message;
  try {
    message = readClientMessage(line);
  } catch (error) {
    const code = error instanceof BadMessageError ? error.code : RPC.internal;
    return errorMessage(null, code, errorText(error));
  }
  if (message.kind !== "request") return undefined;
  const kind = isStateless(message) ? { resultType: "complete" } : {};
  const result = await resultOf(message, call);
  return "code" in result
    ? errorMessage(message.id, Number(result["code"]), String(result["message"]))
    : resultMessage(message.id, { ...kind, ...result });
}

async function resultOf(
  { method, params }: RequestMessage,
  call: InboxServer["call"],
): Promise<JsonObject> {
  const capabilities = { tools: {} };
  const uncached = isStateless({ params }) ? { ttlMs: 0, cacheScope: "private" } : {};
  switch (method) {
    case "initialize": {
      const asked = String(params["protocolVersion"]);
      const protocolVersion = VERSIONS.includes(asked) ? asked : "2025-11-25";
      return { protocolVersion, capabilities, serverInfo: ABOUT };
    }
    case "server/discover":
      return {
        supportedVersions: STATELESS,
        capabilities,
        ...uncached,
        _meta: { "io.modelcontextprotocol/serverInfo": ABOUT },
      };
    case "ping":
      return {};
    case "tools/list":
      return {
        tools: Object.keys(INBOX_TOOLS).map((name) => definitionOf(name as ToolName)),
        ...uncached,
      };
    case "tools/call":
      return called(params, call);
    default:
      return { code: RPC.unknownMethod, message: `There is no method ${JSON.stringify(method)}.` };
  }
}

function definitionOf(name: ToolName): JsonObject {
  const route = ROUTES[INBOX_TOOLS[name]];
  const schema = z.toJSONSchema(route.input, { io: "input", unrepresentable: "any" });
  const isRead = !/claim|complete|fail|release/.test(name);
  return {
    name,
    description: route.summary,
    inputSchema: JSON.parse(JSON.stringify({ ...schema, type: "object" })),
    annotations: { readOnlyHint: isRead, destructiveHint: false, openWorldHint: false },
  };
}

async function called(params: JsonObject, call: InboxServer["call"]): Promise<JsonObject> {
  const { name, arguments: input = {} } = params;
  if (typeof name !== "string" || !Object.hasOwn(INBOX_TOOLS, name) || !isJsonObject(input)) {
    return {
      code: RPC.invalidParams,
      message: "There is no such tool, or its arguments are none.",
    };
  }
  try {
    const answer = await call(INBOX_TOOLS[name as ToolName], input);
    return { content: [{ type: "text", text: JSON.stringify(answer) }] };
  } catch (error) {
    const code = error instanceof SallyportError ? `${error.code}: ` : "";
    return { content: [{ type: "text", text: `${code}${errorText(error)}` }], isError: true };
  }
}
