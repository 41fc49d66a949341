// A model on loopback that says what a script tells it to, for agents that run as programs of their own. It speaks the Messages
// API of Anthropic, streamed and whole, and the other formats in hosts/wires.ts.

import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { WIRES, type Wire } from "./hosts/wires.ts";

/** What the model says in one turn: calls, or else words. */
export interface ScriptedTurn {
  readonly calls?: readonly {
    readonly id: string;
    readonly name: string;
    /** A text for a freeform tool of Codex, such as `apply_patch`. */
    readonly input: unknown;
    /** Codex offers the tools of an MCP server inside a namespace. */
    readonly namespace?: string;
  }[];
  readonly text?: string;
}

export interface ScriptedRequest {
  /** What the user said, all of it; a sub-agent gets its own task. */
  readonly prompt: string;
  /** The results of its calls that the model was told so far, in their order. */
  readonly results: readonly { readonly id: string; readonly text: string }[];
  /** Names of the tools that it was offered. */
  readonly tools: readonly string[];
}

export type Script = (request: ScriptedRequest) => ScriptedTurn;

export interface ScriptedModel extends AsyncDisposable {
  readonly url: string;
  /** Lets the process end although the model still listens. */
  unref(): void;
}

interface MessagesRequest {
  readonly model: string;
  readonly stream?: boolean;
  readonly messages: readonly { readonly role: string; readonly content: string | Part[] }[];
  readonly tools?: readonly { readonly name: string }[];
}

/** The script is asked for every turn; it finds out from the results how far the conversation is. */
export async function startScriptedModel(script: Script): Promise<ScriptedModel> {
  const server = createServer((request, response) => {
    answer(script, request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    unref: () => void server.unref(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(script: Script, request: IncomingMessage, response: ServerResponse) {
  const { pathname } = new URL(request.url ?? "/", "http://model");
  if (request.method !== "POST") {
    response.writeHead(pathname === "/" ? 200 : 404).end();
    return;
  }
  if (pathname === "/v1/messages/count_tokens") {
    response.writeHead(200, JSON_TYPE).end(JSON.stringify({ input_tokens: 1 }));
    return;
  }
  const wire = WIRES.find(({ matches }) => matches(pathname));
  if (wire !== undefined) return answerOn(wire, pathname, script, request, response);
  if (pathname !== "/v1/messages") {
    response.writeHead(404).end();
    return;
  }
  const asked = (await json(request)) as MessagesRequest;
  const { calls = [], text = "" } = script(readRequest(asked));
  const content = [
    ...(calls.length === 0 || text !== "" ? [{ type: "text", text }] : []),
    ...calls.map(({ id, name, input }) => ({ type: "tool_use", id, name, input })),
  ];
  const message = {
    // Hosts take blocks with the same id for parts of one message.
    id: `msg_${randomUUID()}`,
    type: "message",
    role: "assistant",
    model: asked.model,
    content,
    stop_reason: calls.length > 0 ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  };
  if (asked.stream !== true) {
    response.writeHead(200, JSON_TYPE).end(JSON.stringify(message));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const { type, ...data } of eventsOf(message)) {
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  }
  response.end();
}

async function answerOn(
  wire: Wire,
  pathname: string,
  script: Script,
  request: IncomingMessage,
  response: ServerResponse,
) {
  const body = (await json(request)) as never;
  const turn = script(wire.read(body));
  if (!wire.isStreamed(pathname, body)) {
    response.writeHead(200, JSON_TYPE).end(JSON.stringify(wire.whole(turn, body)));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const { event, data } of wire.events(turn, body)) {
    const text = typeof data === "string" ? data : JSON.stringify(data);
    response.write(`${event === undefined ? "" : `event: ${event}\n`}data: ${text}\n\n`);
  }
  response.end();
}

const JSON_TYPE = { "content-type": "application/json" };

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly input?: unknown;
}

/** The same message as the events of a stream. */
function eventsOf(message: { readonly content: readonly Block[]; readonly stop_reason: string }) {
  const { content, stop_reason } = message;
  const blocks = content.flatMap((block, index) => {
    const isText = block.type === "text";
    const empty = isText ? { type: "text", text: "" } : { ...block, input: {} };
    const delta = isText
      ? { type: "text_delta", text: block.text }
      : { type: "input_json_delta", partial_json: JSON.stringify(block.input) };
    return [
      { type: "content_block_start", index, content_block: empty },
      { type: "content_block_delta", index, delta },
      { type: "content_block_stop", index },
    ];
  });
  return [
    { type: "message_start", message: { ...message, content: [], stop_reason: null } },
    ...blocks,
    {
      type: "message_delta",
      delta: { stop_reason, stop_sequence: null },
      usage: { output_tokens: 1 },
    },
    { type: "message_stop" },
  ];
}

function readRequest({ messages, tools = [] }: MessagesRequest): ScriptedRequest {
  const said = messages
    .filter(({ role }) => role === "user")
    .flatMap(({ content }): (string | Part)[] =>
      typeof content === "string" ? [content] : content,
    );
  const results = said.filter(isToolResult);
  return {
    prompt: said.map((part) => (typeof part === "string" ? part : (part.text ?? ""))).join("\n"),
    results: results.map(({ tool_use_id: id, content }) => ({ id, text: textOf(content) })),
    tools: tools.map(({ name }) => name),
  };
}

interface Part {
  readonly type: string;
  readonly text?: string;
}

interface ToolResult extends Part {
  readonly tool_use_id: string;
  readonly content?: string | readonly Part[];
}

function isToolResult(part: string | Part): part is ToolResult {
  return typeof part !== "string" && part.type === "tool_result";
}

function textOf(content: ToolResult["content"] = ""): string {
  return typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("\n");
}
