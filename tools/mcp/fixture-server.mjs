// @ts-nocheck
// The server that the conformance suite is run against, directly and through the gateway. The suite asks for its tools,
// prompts and resources by name. `fixture-server.mjs http` prints its address; `fixture-server.mjs stdio` speaks on standard
// input and output. Both eras of the protocol, on the published SDK.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import {
  acceptedContent,
  CLIENT_CAPABILITIES_META_KEY,
  classifyInboundRequest,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
  isInitializeRequest,
  McpServer,
  ProtocolError,
  ResourceTemplate,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod/v4";

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const codec = createRequestStateCodec({ key: crypto.getRandomValues(new Uint8Array(32)) });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const text = (words) => ({ type: "text", text: words });
const say = (words) => ({ content: [text(words)] });
const image = { type: "image", data: PIXEL, mimeType: "image/png" };
const object = (properties, required = Object.keys(properties)) => ({
  type: "object",
  properties,
  required,
});
const form = (message, properties, required) =>
  inputRequired.elicit({ message, requestedSchema: object(properties, required) });
const nameForm = () => form("What is your name?", { name: { type: "string" } });
const confirmForm = () => form("Please confirm", { ok: { type: "boolean" } });
const sample = (words, maxTokens) =>
  inputRequired.createMessage({ messages: [{ role: "user", content: text(words) }], maxTokens });
const state = (value) => codec.mint({ ...value, nonce: randomUUID() });
const answers = (ctx) => ctx.mcpReq.inputResponses;
const accepted = (ctx, key) => acceptedContent(answers(ctx), key);

const isStdio = process.argv[2] === "stdio";
/** Sessions of the era with a handshake. */
const transports = new Map();

/** Asks the client in the middle of a call, in the era in which a server may. */
async function asked(ctx, params) {
  try {
    const { action, content = {} } = await ctx.mcpReq.send({
      method: "elicitation/create",
      params,
    });
    return say(`The user answered: action=${action}, content=${JSON.stringify(content)}`);
  } catch (error) {
    return say(`The client cannot be asked: ${error.message}`);
  }
}

const options = (kind) => [1, 2, 3].map((n) => ({ const: `value${n}`, title: `${kind} ${n}` }));
const PLAIN = ["option1", "option2", "option3"];

const DEFAULTS = object(
  {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  },
  [],
);

const ENUMS = object(
  {
    untitledSingle: { type: "string", enum: PLAIN },
    titledSingle: { type: "string", oneOf: options("Option") },
    legacyEnum: {
      type: "string",
      enum: ["opt1", "opt2", "opt3"],
      enumNames: ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti: {
      type: "array",
      minItems: 1,
      maxItems: 3,
      items: { type: "string", enum: PLAIN },
    },
    titledMulti: { type: "array", minItems: 1, maxItems: 3, items: { anyOf: options("Choice") } },
  },
  [],
);

const SCHEMA_2020 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

const HEADER_SCHEMA = {
  type: "object",
  properties: { region: { type: "string", "x-mcp-header": "Region" }, level: { type: "integer" } },
};

/** Each tool: what it does, and its schema where it takes arguments. */
const TOOLS = {
  test_x_mcp_header: [
    ({ region = "none" }) => say(`region ${region}`),
    fromJsonSchema(HEADER_SCHEMA),
  ],
  test_missing_capability: [
    (_, ctx) =>
      answers(ctx)?.reply === undefined
        ? inputRequired({ inputRequests: { reply: sample("Say pong", 16) } })
        : say("The client's model answered."),
  ],
  test_streaming_elicitation: [() => say("Only a result is in this stream.")],
  test_logging_tool: [
    async (_, ctx) => {
      await ctx.mcpReq.log("info", "for clients that asked for it");
      return say("logged");
    },
  ],
  test_simple_text: [() => say("This is a simple text response for testing.")],
  test_image_content: [() => ({ content: [image] })],
  test_audio_content: [
    () => ({ content: [{ type: "audio", data: SOUND, mimeType: "audio/wav" }] }),
  ],
  test_embedded_resource: [
    () => ({ content: [resource("test://embedded-resource", "text/plain", "An embedded text.")] }),
  ],
  test_multiple_content_types: [
    () => ({
      content: [
        text("Several types of content:"),
        image,
        resource(
          "test://mixed-content-resource",
          "application/json",
          '{"test":"data","value":123}',
        ),
      ],
    }),
  ],
  test_tool_with_logging: [
    async (_, ctx) => {
      for (const data of ["started", "processing", "completed"]) {
        const params = { level: "info", data: `Tool ${data}` };
        await ctx.mcpReq.notify({ method: "notifications/message", params });
        await pause(50);
      }
      return say("logged three times");
    },
  ],
  test_tool_with_progress: [
    async (_, ctx) => {
      const progressToken = ctx.mcpReq._meta?.progressToken;
      for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
        const params = { progressToken, progress, total: 100 };
        await ctx.mcpReq.notify({ method: "notifications/progress", params });
        await pause(50);
      }
      return say(String(progressToken ?? "none"));
    },
  ],
  test_error_handling: [
    () => {
      throw new Error("This tool intentionally returns an error for testing");
    },
  ],
  test_reconnection: [
    async (_, ctx) => {
      transports.get(ctx.sessionId)?.closeSSEStream(ctx.mcpReq.id);
      await pause(100);
      return say("The answer after the reconnection.");
    },
  ],
  test_sampling: [
    async ({ prompt }, ctx) => {
      const messages = [{ role: "user", content: text(prompt) }];
      try {
        const params = { messages, maxTokens: 100 };
        const { content } = await ctx.mcpReq.send({ method: "sampling/createMessage", params });
        return say(`LLM response: ${content?.text ?? "none"}`);
      } catch (error) {
        return say(`The client has no model: ${error.message}`);
      }
    },
    z.object({ prompt: z.string() }),
  ],
  test_elicitation: [
    ({ message }, ctx) =>
      asked(ctx, { message, requestedSchema: object({ response: { type: "string" } }) }),
    z.object({ message: z.string() }),
  ],
  test_elicitation_sep1034_defaults: [
    (_, ctx) => asked(ctx, { message: "Please check the values", requestedSchema: DEFAULTS }),
  ],
  test_elicitation_sep1330_enums: [
    (_, ctx) => asked(ctx, { message: "Please choose", requestedSchema: ENUMS }),
  ],
  json_schema_2020_12_tool: [
    (given) => say(`Called with ${JSON.stringify(given)}`),
    fromJsonSchema(SCHEMA_2020),
  ],
  test_input_required_result_elicitation: [
    (_, ctx) => {
      const { name } = accepted(ctx, "user_name") ?? {};
      return typeof name === "string"
        ? say(`Hello, ${name}!`)
        : inputRequired({ inputRequests: { user_name: nameForm() } });
    },
  ],
  test_input_required_result_sampling: [
    (_, ctx) => {
      const given = answers(ctx)?.capital_question;
      return given === undefined
        ? inputRequired({
            inputRequests: { capital_question: sample("What is the capital of France?", 100) },
          })
        : say(`Sampling response: ${given.content?.text ?? JSON.stringify(given)}`);
    },
  ],
  test_input_required_result_list_roots: [
    (_, ctx) => {
      const { roots } = answers(ctx)?.client_roots ?? {};
      return Array.isArray(roots)
        ? say(`Client exposed ${roots.length} root(s): ${roots.map(({ uri }) => uri).join(", ")}`)
        : inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
    },
  ],
  test_input_required_result_request_state: [
    async (_, ctx) => {
      if (accepted(ctx, "confirm") === undefined) {
        return inputRequired({
          inputRequests: { confirm: confirmForm() },
          requestState: await state({ tool: "request_state" }),
        });
      }
      if (ctx.mcpReq.requestState() === undefined) {
        throw new ProtocolError(-32602, "requestState is missing");
      }
      return say("state-ok: the state came back as it was");
    },
  ],
  test_input_required_result_multiple_inputs: [
    async (_, ctx) => {
      const { name } = accepted(ctx, "user_name") ?? {};
      const greeting = answers(ctx)?.greeting?.content?.text;
      const roots = answers(ctx)?.client_roots?.roots;
      if (name !== undefined && greeting !== undefined && Array.isArray(roots)) {
        return say(`${greeting} ${name}, ${roots.length} root(s)`);
      }
      return inputRequired({
        inputRequests: {
          user_name: nameForm(),
          greeting: sample("Generate a greeting", 50),
          client_roots: inputRequired.listRoots(),
        },
        requestState: await state({ tool: "multiple_inputs" }),
      });
    },
  ],
  test_input_required_result_multi_round: [
    async (_, ctx) => {
      const { round = 0, name = "?" } = ctx.mcpReq.requestState() ?? {};
      if (round === 0) {
        return inputRequired({
          inputRequests: { step1: form("Step 1: your name?", { name: { type: "string" } }) },
          requestState: await state({ round: 1 }),
        });
      }
      if (round === 1) {
        const given = accepted(ctx, "step1")?.name ?? "?";
        return inputRequired({
          inputRequests: { step2: form("Step 2: your colour?", { color: { type: "string" } }) },
          requestState: await state({ round: 2, name: given }),
        });
      }
      return say(`${name} likes ${accepted(ctx, "step2")?.color ?? "?"}`);
    },
  ],
  test_input_required_result_tampered_state: [
    async (_, ctx) =>
      ctx.mcpReq.requestState() !== undefined && accepted(ctx, "confirm") !== undefined
        ? say("integrity-ok")
        : inputRequired({
            inputRequests: { confirm: confirmForm() },
            requestState: await state({ tool: "tampered_state" }),
          }),
  ],
  test_input_required_result_capabilities: [
    (_, ctx) => {
      if (answers(ctx) !== undefined) return say("The client answered.");
      const declared = ctx.mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
      const inputRequests = {
        ...(declared.elicitation && { user_name: nameForm() }),
        ...(declared.sampling && { greeting: sample("Generate a short greeting", 50) }),
        ...(declared.roots && { client_roots: inputRequired.listRoots() }),
      };
      return Object.keys(inputRequests).length === 0
        ? say("The client declared nothing.")
        : inputRequired({ inputRequests });
    },
  ],
  test_trigger_tool_change: [(_, __, server) => changed("Tool", server)],
  test_trigger_prompt_change: [(_, __, server) => changed("Prompt", server)],
};

function changed(what, server) {
  if (isStdio) server[`send${what}ListChanged`]();
  else modern.notify[`${what.toLowerCase()}sChanged`]();
  return say(`published a change of ${what.toLowerCase()}s`);
}

function resource(uri, mimeType, words) {
  return { type: "resource", resource: { uri, mimeType, text: words } };
}

const user = (content) => ({ messages: [{ role: "user", content }] });

function makeServer() {
  const server = new McpServer(
    { name: "conformance-fixture", version: "1.0.0" },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
      },
      requestState: { verify: codec.verify },
    },
  );
  for (const [name, [run, inputSchema = z.object({})]] of Object.entries(TOOLS)) {
    const about = { description: `Of the conformance suite: ${name}.`, inputSchema };
    server.registerTool(name, about, async (given, ctx) => run(given, ctx, server));
  }
  addResources(server);
  addPrompts(server);
  server.server.setRequestHandler("logging/setLevel", async () => ({}));
  server.server.setRequestHandler("completion/complete", async () => ({
    completion: { values: [], total: 0, hasMore: false },
  }));
  return server;
}

function addResources(server) {
  const add = (name, mimeType, content) => {
    const uri = `test://${name}`;
    const about = { title: name, description: `The resource ${name}.`, mimeType };
    server.registerResource(name, uri, about, async () => ({
      contents: [{ uri, mimeType, ...content }],
    }));
  };
  add("static-text", "text/plain", { text: "This is the content of the static text resource." });
  add("static-binary", "image/png", { blob: PIXEL });
  add("watched-resource", "text/plain", { text: "watched" });
  server.registerResource(
    "template",
    new ResourceTemplate("test://template/{id}/data", { list: undefined }),
    {
      title: "template",
      description: "A resource with a parameter.",
      mimeType: "application/json",
    },
    async (uri, { id }) => ({
      contents: [
        {
          uri: String(uri),
          mimeType: "application/json",
          text: JSON.stringify({ id, data: `of ${id}` }),
        },
      ],
    }),
  );
  for (const method of ["resources/subscribe", "resources/unsubscribe"]) {
    server.server.setRequestHandler(method, async () => ({}));
  }
}

function addPrompts(server) {
  const description = "A prompt of the conformance suite.";
  server.registerPrompt("test_simple_prompt", { description }, async () =>
    user(text("This is a simple prompt for testing.")),
  );
  server.registerPrompt(
    "test_prompt_with_arguments",
    { description, argsSchema: z.object({ arg1: z.string(), arg2: z.string() }) },
    async ({ arg1, arg2 }) => user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );
  server.registerPrompt(
    "test_prompt_with_embedded_resource",
    { description, argsSchema: z.object({ resourceUri: z.string() }) },
    async ({ resourceUri }) => ({
      messages: [
        { role: "user", content: resource(resourceUri, "text/plain", "An embedded text.") },
        { role: "user", content: text("Please use the text above.") },
      ],
    }),
  );
  server.registerPrompt("test_prompt_with_image", { description }, async () => ({
    messages: [
      { role: "user", content: image },
      { role: "user", content: text("What is this?") },
    ],
  }));
  server.registerPrompt("test_input_required_result_prompt", { description }, async (ctx) => {
    const { context } = accepted(ctx, "user_context") ?? {};
    return typeof context === "string"
      ? user(text(`Use this context: ${context}`))
      : inputRequired({
          inputRequests: { user_context: form("Which context?", { context: { type: "string" } }) },
        });
  });
}

/** Events of sessions, for clients that come back. */
function eventStore() {
  const events = [];
  return {
    async storeEvent(streamId, message) {
      const id = `${streamId}::${events.length + 1}`;
      events.push({ id, streamId, message, number: events.length + 1 });
      return id;
    },
    async replayEventsAfter(lastId, { send }) {
      const [streamId, number] = lastId.split("::");
      for (const event of events) {
        const isLater = event.streamId === streamId && event.number > Number(number);
        if (isLater && Object.keys(event.message ?? {}).length > 0)
          await send(event.id, event.message);
      }
      return streamId;
    },
  };
}

const modern = createMcpHandler(makeServer);
const modernHandler = toNodeHandler(modern);

async function bodyOf(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  try {
    return JSON.parse(Buffer.concat(pieces).toString("utf8"));
  } catch {
    return undefined;
  }
}

async function handle(request, response) {
  const refuse = (status, code, message) =>
    response
      .writeHead(status, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message } }));
  const { host = "", origin, "mcp-session-id": sessionId } = request.headers;
  const isLocal = (name) => ["127.0.0.1", "localhost", "[::1]"].includes(name);
  if (!isLocal(host.replace(/:\d+$/, "")) || (origin && !isLocal(new URL(origin).hostname))) {
    return refuse(403, -32000, "Only for this machine.");
  }
  const body = request.method === "POST" ? await bodyOf(request) : undefined;
  const { kind } = classifyInboundRequest({
    httpMethod: request.method,
    protocolVersionHeader: request.headers["mcp-protocol-version"],
    mcpMethodHeader: request.headers["mcp-method"],
    body,
  });
  if (kind !== "legacy") return modernHandler(request, response, body);
  const known = transports.get(sessionId);
  if (known !== undefined) return known.handleRequest(request, response, body);
  if (sessionId !== undefined) return refuse(404, -32001, "This session is over.");
  if (!isInitializeRequest(body)) return refuse(400, -32000, "There is no session.");
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    eventStore: eventStore(),
    retryInterval: 500,
    onsessioninitialized: (id) => void transports.set(id, transport),
  });
  transport.onclose = () => void transports.delete(transport.sessionId);
  await makeServer().connect(transport);
  return transport.handleRequest(request, response, body);
}

if (isStdio) serveStdio(makeServer);
else {
  const server = createServer((request, response) => {
    handle(request, response).catch((error) => {
      console.error(error);
      response.destroy();
    });
  });
  server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
    process.stdout.write(`http://127.0.0.1:${server.address().port}/mcp\n`);
  });
}
