// Sallyport itself as an MCP server: the inbox, decisions and the shared task list as tools. Each tool is a route of the HTTP API
// with its own schema, called with a credential whose rights the server checks. An MCP client is a program, so it sees what an
// agent's token may see; the reviewer's view needs a person's own session. Approving is off unless that person allows it, and
// then each approval is a form that they fill in.

import type { Readable, Writable } from "node:stream";
import { z } from "zod";
import type { RouteName } from "../http/paths.ts";
import { scopeOf } from "../http/route.ts";
import { ROUTES } from "../http/routes.ts";
import { SallyportError } from "../model/errors.ts";
import { ROLES, TOKEN_KINDS } from "../model/identity.ts";
import { errorText } from "../util/error-text.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../util/json.ts";
import { systemRandom } from "../util/random.ts";
import {
  BadMessageError,
  CAPABILITIES_KEY,
  errorMessage,
  isStateless,
  LARGEST_MESSAGE,
  type Message,
  type MessageId,
  metaOf,
  type RequestMessage,
  type ResponseMessage,
  RPC,
  readClientMessage,
  requestMessage,
  resultMessage,
} from "./message.ts";

/** What a tool does, by the route that does it. */
export const INBOX_TOOLS = {
  inbox_list: "interactions.list",
  inbox_get: "interactions.get",
  inbox_preview: "interactions.shown",
  inbox_approve: "interactions.approve",
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
  /**
   * Calls one route with the credential of whoever started this server: a token of an agent, or a person's own session.
   * Shape: callback.
   */
  readonly call: (route: RouteName, input: JsonObject) => Promise<unknown>;
  /**
   * Lets the person approve through forms of the client; says what a question would execute. Left out: nothing is approved.
   * Shape: callback.
   */
  readonly describe?: (id: string) => Promise<InboxQuestion>;
}

/** One question as a person has to see it before answering. */
export interface InboxQuestion {
  readonly type: string;
  readonly hash: string;
  readonly text: string;
  /** Why it cannot be approved on what `text` says; empty when it can. */
  readonly whyNot: string;
}

const VERSIONS = ["2025-06-18", "2025-11-25"];
const STATELESS = ["2026-07-28"];
const ABOUT = { name: "sallyport-inbox", version: "0.1.0" };

/** Serves one client until its input ends. Throws not_allowed before it reads anything if the credential is not fit for it. */
export async function serveInbox(options: InboxServer): Promise<void> {
  const { input, output } = options;
  const send = ({ raw }: Message) => void output.write(`${raw}\n`);
  const inbox = createInbox(options, await offeredTo(options), send);
  output.on("error", () => input.destroy());
  const running = new Set<Promise<void>>();
  let begun = Buffer.alloc(0);
  for await (const piece of input) {
    begun = Buffer.concat([begun, piece as Buffer]);
    for (let end = begun.indexOf(10); end >= 0; end = begun.indexOf(10)) {
      const line = begun.subarray(0, end);
      begun = begun.subarray(end + 1);
      if (line.toString("utf8").trim() === "") continue;
      const work = inbox
        .receive(line)
        .then((response) => response && send(response))
        .finally(() => running.delete(work));
      running.add(work);
    }
    if (begun.length > LARGEST_MESSAGE) {
      send(errorMessage(null, RPC.invalid, `A line is longer than ${LARGEST_MESSAGE} bytes.`));
      break;
    }
  }
  inbox.end();
  await Promise.all(running);
}

const whoAmI = z.object({
  kind: z.enum(TOKEN_KINDS),
  roles: z.array(z.enum(ROLES)).readonly(),
});

/**
 * The tools that the credential may use. A token that reads what all agents do is refused: whoever talks to this server is a
 * program, and a token file of this machine is readable to each of them.
 */
async function offeredTo({ call, describe }: InboxServer): Promise<readonly ToolName[]> {
  const me = whoAmI.parse(await call("me.get", {}));
  const isPerson = me.kind === "session";
  const mayUse = (name: ToolName) => scopeOf(ROUTES[INBOX_TOOLS[name]].rule, me) !== undefined;
  if (!isPerson && scopeOf(ROUTES["interactions.list"].rule, me) !== "own") {
    throw new SallyportError("not_allowed", { what: "inbox", hint: NOT_FIT });
  }
  if (describe !== undefined && !(isPerson && mayUse("inbox_approve"))) {
    const hint = "Approving needs the sign-in link of a reviewer. A token never decides.";
    throw new SallyportError("not_allowed", { what: "approve", hint });
  }
  const names = Object.keys(INBOX_TOOLS) as ToolName[];
  return names.filter((name) => (name === "inbox_approve" ? describe !== undefined : mayUse(name)));
}

const NOT_FIT =
  "This token reads what every agent does. Use a token that has the role agent alone, or the sign-in link of a person.";

interface Inbox {
  /** The answer to one line; undefined where none is due. Never throws. */
  receive(line: Uint8Array): Promise<ResponseMessage | undefined>;
  /** Nothing more will be answered. */
  end(): void;
}

/** What a person answered to a form. */
interface Reply {
  readonly action: JsonValue | undefined;
  readonly content: JsonValue | undefined;
}

const NO_REPLY: Reply = { action: "cancel", content: undefined };

/** A question that a client of the stateless era was asked, until it calls again. */
interface Asked {
  readonly id: string;
  readonly hash: string;
}

/** Forms that one client may leave open. */
const MOST_FORMS = 100;

function createInbox(
  { call, describe }: InboxServer,
  offered: readonly ToolName[],
  send: (message: Message) => void,
): Inbox {
  let canShowForms = false;
  let lastForm = 0;
  /** Forms that wait for their answer, with the request of the client that each belongs to. */
  const forms = new Map<MessageId, { readonly of: MessageId; reply(given: Reply): void }>();
  const rounds = new Map<string, Asked>();

  async function receive(line: Uint8Array): Promise<ResponseMessage | undefined> {
    let message: Message;
    try {
      message = readClientMessage(line);
    } catch (error) {
      const code = error instanceof BadMessageError ? error.code : RPC.internal;
      return errorMessage(null, code, errorText(error));
    }
    if (message.kind === "response") {
      const { action, content } = message.result ?? {};
      forms.get(message.id)?.reply({ action, content });
      return undefined;
    }
    if (message.kind === "notification") {
      if (message.method !== "notifications/cancelled") return undefined;
      const { requestId } = message.params;
      for (const { of, reply } of forms.values()) if (of === requestId) reply(NO_REPLY);
      return undefined;
    }
    const kind = isStateless(message) ? { resultType: "complete" } : {};
    const result = await resultOf(message);
    return "code" in result
      ? errorMessage(message.id, Number(result["code"]), String(result["message"]))
      : resultMessage(message.id, { ...kind, ...result });
  }

  async function resultOf(request: RequestMessage): Promise<JsonObject> {
    const { method, params } = request;
    const capabilities = { tools: {} };
    const uncached = isStateless({ params }) ? { ttlMs: 0, cacheScope: "private" } : {};
    switch (method) {
      case "initialize": {
        const asked = String(params["protocolVersion"]);
        const protocolVersion = VERSIONS.includes(asked) ? asked : "2025-11-25";
        canShowForms = hasForms(params["capabilities"]);
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
        return { tools: offered.map(definitionOf), ...uncached };
      case "tools/call":
        return called(request);
      default:
        return {
          code: RPC.unknownMethod,
          message: `There is no method ${JSON.stringify(method)}.`,
        };
    }
  }

  async function called(request: RequestMessage): Promise<JsonObject> {
    const { name, arguments: input = {} } = request.params;
    const tool = offered.find((one) => one === name);
    if (tool === undefined || !isJsonObject(input)) {
      return {
        code: RPC.invalidParams,
        message: "There is no such tool, or its arguments are none.",
      };
    }
    try {
      if (tool === "inbox_approve") return await approve(request, input);
      return textResult(JSON.stringify(await call(INBOX_TOOLS[tool], input)));
    } catch (error) {
      const code = error instanceof SallyportError ? `${error.code}: ` : "";
      return refused(`${code}${errorText(error)}`);
    }
  }

  /** A model may ask for an approval, but a person gives it: they see what would run and type the beginning of its hash. */
  async function approve(request: RequestMessage, input: JsonObject): Promise<JsonObject> {
    const read = toApprove.safeParse(input);
    if (!read.success) return refused(NOT_NAMED);
    const { id, hash } = read.data;
    const { requestState, inputResponses } = request.params;
    const isLater = isStateless(request);
    const isAble = isLater ? hasForms(metaOf(request)[CAPABILITIES_KEY]) : canShowForms;
    if (!isAble) return refused(NO_FORMS);
    if (isLater && requestState !== undefined) {
      const state = String(requestState);
      const asked = rounds.get(state);
      rounds.delete(state);
      if (asked?.id !== id || asked.hash !== hash) return refused(NO_ROUND);
      const given = isJsonObject(inputResponses) ? inputResponses["approval"] : undefined;
      const { action, content } = isJsonObject(given) ? given : NO_REPLY;
      return approved({ id, hash }, { action, content });
    }
    const question = await describe?.(id);
    if (question?.type !== "confirm") return refused("Not approved: it is not a call that waits.");
    if (question.hash !== hash) return refused(OTHER_HASH);
    if (question.whyNot !== "") return refused(`Not approved: ${question.whyNot}`);
    const params = formFor(question);
    if (!isLater) return approved({ id, hash }, await filledIn(request.id, params));
    const state = Buffer.from(systemRandom.bytes(32)).toString("base64url");
    rounds.set(state, { id, hash });
    const [oldest] = rounds.keys();
    if (rounds.size > MOST_FORMS && oldest !== undefined) rounds.delete(oldest);
    const inputRequests = { approval: { method: "elicitation/create", params } };
    return { resultType: "input_required", inputRequests, requestState: state };
  }

  /** The person's answer; that they gave none when the client cancels or ends. */
  function filledIn(of: MessageId, params: JsonObject): Promise<Reply> {
    if (forms.size >= MOST_FORMS) return Promise.resolve(NO_REPLY);
    lastForm += 1;
    const id = `sallyport-form-${lastForm}`;
    return new Promise((resolve) => {
      forms.set(id, {
        of,
        reply(given) {
          forms.delete(id);
          resolve(given);
        },
      });
      send(requestMessage(id, "elicitation/create", params));
    });
  }

  async function approved({ id, hash }: Asked, reply: Reply): Promise<JsonObject> {
    const typed = isJsonObject(reply.content) ? reply.content["hash"] : undefined;
    if (reply.action !== "accept") return refused("Not approved: the person did not accept it.");
    if (typeof typed !== "string" || typed.trim().toLowerCase() !== codeOf(hash)) {
      return refused("Not approved: what was typed is not the beginning of the hash.");
    }
    return textResult(JSON.stringify(await call("interactions.approve", { id, hash })));
  }

  return {
    receive,
    end() {
      for (const { reply } of [...forms.values()]) reply(NO_REPLY);
    },
  };
}

const NOT_NAMED =
  "Not approved: give the id and the hash of one question, as inbox_get returned them.";
const NO_FORMS =
  "Not approved: this MCP client shows no forms (the capability elicitation), so it cannot ask a person. Use the console or sallyport review.";
const NO_ROUND = "Not approved: no form is open for this question and hash. Ask for it again.";
const OTHER_HASH =
  "Not approved: that is not the hash of this question. Read it again with inbox_get; it may have changed.";

const toApprove = z.strictObject({
  /** Of the question. */
  id: z.string().min(1).max(200),
  /** As `inbox_get` returned it. */
  hash: z.string().min(1).max(128),
});

/** Without a mode a client means forms. */
function hasForms(capabilities: JsonValue | undefined): boolean {
  const claimed = isJsonObject(capabilities) ? capabilities["elicitation"] : undefined;
  return isJsonObject(claimed) && ("form" in claimed || Object.keys(claimed).length === 0);
}

/** Long enough not to be typed by mistake, short enough to be typed. */
function codeOf(hash: string): string {
  return hash.slice(0, 8).toLowerCase();
}

function formFor({ text, hash }: InboxQuestion): JsonObject {
  return {
    mode: "form",
    message: `An agent asks you to approve this call:\n${text}\nIts hash is ${hash}.`,
    requestedSchema: {
      type: "object",
      properties: {
        hash: {
          type: "string",
          title: `Type ${codeOf(hash)} to approve`,
          description: "The first eight characters of the hash. Decline if you are not sure.",
          minLength: 8,
          maxLength: 8,
        },
      },
      required: ["hash"],
    },
  };
}

function textResult(text: string): JsonObject {
  return { content: [{ type: "text", text }] };
}

function refused(text: string): JsonObject {
  return { ...textResult(text), isError: true };
}

function definitionOf(name: ToolName): JsonObject {
  const route = ROUTES[INBOX_TOOLS[name]];
  const isApproval = name === "inbox_approve";
  const input = isApproval ? toApprove : route.input;
  const schema = z.toJSONSchema(input, { io: "input", unrepresentable: "any" });
  const isRead = !/approve|claim|complete|fail|release/.test(name);
  return {
    name,
    description: isApproval ? ABOUT_APPROVAL : route.summary,
    inputSchema: JSON.parse(JSON.stringify({ ...schema, type: "object" })),
    annotations: { readOnlyHint: isRead, destructiveHint: isApproval, openWorldHint: false },
  };
}

const ABOUT_APPROVAL =
  "Ask the person to approve a question in a form that shows what would be executed. It is executed once, if they accept.";
