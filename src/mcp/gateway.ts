// The gateway: the tools of its upstreams in one gate, and any number of conversations with clients.

import type { Gate } from "../gate/create-gate.ts";
import type { SheetCall } from "../tools/define-tool.ts";
import type { UndoRecipe } from "../tools/tool-call.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { systemClock } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import { errorText } from "../util/error-text.ts";
import { createIds } from "../util/ids.ts";
import type { JsonObject } from "../util/json.ts";
import { systemRandom } from "../util/random.ts";
import { toolResultOf } from "./answers.ts";
import type { McpConfig, UndoConfig, UpstreamConfig } from "./config.ts";
import { type McpConversation, openConversation, type Reply } from "./conversation.ts";
import { createGatedCalls, type LiveCalls } from "./gated-calls.ts";
import { paramHeaders } from "./http-headers.ts";
import { openHttpWire } from "./http-wire.ts";
import { probeAnswerOf, probeInput, withKey } from "./lost-calls.ts";
import { errorMessage, type RequestMessage, RPC, withParams } from "./message.ts";
import { createOfferedTools, type OfferedTool } from "./offered-tools.ts";
import type { Pins } from "./pins.ts";
import { openSharedStdioWire, openStdioWire } from "./stdio-wire.ts";
import { withoutTasks } from "./tasks.ts";
import { type Snapshot, snapshotInput, snapshotOf, undoOf } from "./undo.ts";
import { type Introduction, openUpstream, type Upstream } from "./upstream.ts";
import type { Wire, WireEvents } from "./wire.ts";

export interface Gateway {
  /** A client is here. Calls are recorded under its session. */
  open(client: ClientPlace): McpConversation;
  close(): Promise<void>;
}

export interface ClientPlace {
  /** The session of its calls; every process that continues it passes the same id. Left out: a new one. */
  readonly session?: string;
  /** Who its calls are recorded for. Left out: the agent of the configuration. */
  readonly agent?: string;
  /** Several stateless clients are behind it, whose requests may have the same ids. */
  readonly isShared?: boolean;
  /** The person on whose behalf it acts; they cannot approve what it asks for. */
  readonly owner?: string;
  /** Takes what answers no request. Shape: push. */
  readonly send: Reply;
  /** Resolves when the client can take more. Shape: callback. */
  readonly ready?: () => Promise<void> | undefined;
}

export interface GatewayOptions {
  /** Upkeep must run over it, so that what is approved elsewhere is executed here. */
  readonly gate: Gate;
  readonly config: McpConfig;
  readonly pins: Pins;
  /** For the operator. Shape: push. */
  readonly onProblem: (text: string) => void;
}

const AGENT = "mcp";
const HOLD_MS = 10_000;

export function createGateway({ gate, config, pins, onProblem }: GatewayOptions): Gateway {
  const {
    upstreams,
    agent = AGENT,
    holdMs = HOLD_MS,
    roots = "refuse",
    tasks: asTasks = "offer",
    refuse = [],
  } = config;
  const ids = createIds({ clock: systemClock, random: systemRandom });
  const live: LiveCalls = new Map();
  const refusals = new Map<string, JsonObject>();
  /** What was there before the first attempt of calls that may be repeated, by their keys. */
  const befores = new Map<string, Snapshot>();
  const conversations = new Set<McpConversation>();
  /** The open connections to each upstream by the session of their client, for calls whose client waits no longer. */
  const links = new Map<string, Map<Upstream, string>>();
  /** The gateway's own connections, for calls whose client is gone: an approved call needs none. */
  const own = new Map<string, Upstream>();
  let isClosed = false;
  /** How the last client of each upstream introduced itself. */
  const introductions = new Map<string, Introduction>();

  const tools = createOfferedTools({
    registry: gate.tools,
    upstreams,
    pins,
    onProblem,
    async call(tool, asked, undo) {
      const { input: approved, callId, signal } = asked;
      const waited = live.get(callId);
      const isLive = waited !== undefined && !waited.taken;
      const upstream = isLive ? waited.upstream : linkFor(tool.upstream, asked.sessionId);
      if (upstream === undefined) {
        // An earlier attempt may have arrived, so this is no answer.
        if (tool.isRepeatable && asked.fence > 1) throw new Error(notConnected(tool.upstream).text);
        return notConnected(tool.upstream);
      }
      const input = withKey(asked, tool.key);
      if (input === undefined) return { text: OWN_KEY, isError: true };
      if (isLive) waited.taken = true;
      const snapshot = undo === undefined ? undefined : await before(tool, upstream, undo, asked);
      const headers = paramHeaders(tool.headerParams, input);
      const wire = { ...(isLive ? waited.wire : {}), headers, signal };
      const isSame = isLive && canonicalJson(waited.input) === canonicalJson(approved);
      const response = isSame
        ? await upstream.request(messageFor(tool, waited.request, input), wire)
        : await upstream.ask("tools/call", paramsOf(tool.name, input), wire);
      if (response.error !== undefined) remember(refusals, callId, response.error);
      const result = toolResultOf(response);
      if (result.isError === true && tool.key !== undefined && asked.fence > 1) {
        // The server may refuse the key because the first attempt has arrived.
        throw new Error(`${tool.name} answered the repeated call with an error: ${result.text}`);
      }
      if (undo === undefined || result.isError === true) return result;
      const done = { input: approved, result: response.result ?? {}, snapshot };
      return { ...result, undo: madeUndo(undo, tool.upstream, done) };
    },
    async probe(tool, { probe, undo }, asked) {
      const { input, idempotencyKey: key, sessionId, signal } = asked;
      const upstream = linkFor(tool.upstream, sessionId);
      if (upstream === undefined) throw new Error(notConnected(tool.upstream).text);
      const params = paramsOf(probe.tool, probeInput(probe, { input, key }));
      const response = await upstream.ask("tools/call", params, { signal });
      const answer = probeAnswerOf(probe, { input, key }, response);
      if (answer.happened !== true || undo === undefined) return answer;
      const hasBefore = "tool" in undo && undo.snapshot !== undefined;
      const snapshot = hasBefore ? (befores.get(key) ?? LOST) : undefined;
      const done = { input, result: {}, snapshot };
      const made = madeUndo(undo, tool.upstream, done);
      return { happened: true, result: { text: String(answer.result), undo: made } };
    },
    snapshot: (tool, undo, asked) => {
      const upstream = live.get(asked.callId)?.upstream ?? linkFor(tool.upstream, asked.sessionId);
      if (upstream === undefined) throw new Error(notConnected(tool.upstream).text);
      return take(upstream, undo, asked);
    },
  });

  /** A repeated attempt finds what the first one did, so only what was there before that one is what an undo restores. */
  async function before(
    { isRepeatable }: OfferedTool,
    upstream: Upstream,
    undo: UndoConfig,
    asked: SheetCall<JsonObject>,
  ): Promise<Snapshot | undefined> {
    const { idempotencyKey, fence } = asked;
    const isPlain = "irreversible" in undo || undo.snapshot === undefined;
    if (isPlain || !isRepeatable) return take(upstream, undo, asked);
    const known = befores.get(idempotencyKey);
    if (known !== undefined) return known;
    if (fence > 1) return LOST;
    const taken = await take(upstream, undo, asked);
    if (taken !== undefined) remember(befores, idempotencyKey, taken);
    return taken;
  }

  /** That of the session itself, which may hold what the call is about; otherwise one of the gateway's own. */
  function linkFor(name: string, session: string): Upstream | undefined {
    const all = [...(links.get(name) ?? [])];
    const theirs = all.findLast(([one, of]) => of === session && one.isReady());
    return theirs?.[0] ?? ownLink(name);
  }

  function ownLink(name: string): Upstream | undefined {
    if (isClosed) return undefined;
    const known = own.get(name);
    const one = upstreams.find((upstream) => upstream.name === name);
    const introduced = introductions.get(name);
    if (known !== undefined || one === undefined || introduced === undefined) return known;
    const upstream = openUpstream(
      name,
      (wire) => openWire(one, {}, wire),
      {
        // There is no client that could answer, and none that would listen.
        onMessage(message) {
          if (message.kind !== "request") return;
          upstream.send(errorMessage(message.id, RPC.unknownMethod, NO_CLIENT));
        },
        onReady: () => {},
        onEnd: (reason) => onProblem(`${name}: ${reason}; it is started again`),
        onProblem: (text) => onProblem(`${name}: ${text}`),
      },
      introduced,
    );
    own.set(name, upstream);
    return upstream;
  }

  function openLink(
    one: UpstreamConfig,
    client: ClientPlace,
    session: string,
    events: Parameters<Parameters<typeof openConversation>[0]["open"]>[1],
  ): Upstream {
    const { name } = one;
    const upstream: Upstream = openUpstream(name, (wire) => openWire(one, client, wire), {
      onMessage: events.onMessage,
      onReady() {
        const introduced = upstream.introduction();
        if (introduced !== undefined) introductions.set(name, introduced);
        events.onReady(upstream);
      },
      onEnd: (reason) => onProblem(`${name}: ${reason}; it is started again`),
      onProblem: (text) => onProblem(`${name}: ${text}`),
      ...(client.ready === undefined ? {} : { ready: client.ready }),
    });
    const known = links.get(name) ?? new Map();
    links.set(name, known.set(upstream, session));
    return upstream;
  }

  return {
    open(client) {
      const { session: id, agent: asked, owner, send } = client;
      const session = gate.sessions.open({
        agent: asked ?? agent,
        ...(id === undefined ? {} : { id }),
        ...(owner === undefined ? {} : { owner }),
      });
      const calls = createGatedCalls({
        session,
        live,
        holdMs,
        refusals,
        newId: () => ids.next(),
        onProblem,
      });
      const opened: Upstream[] = [];
      const conversation = openConversation({
        config: upstreams,
        refused: roots === "refuse" ? ["roots", ...refuse] : refuse,
        offerTasks: asTasks === "offer",
        tools,
        calls,
        client: send,
        onProblem,
        open(one, events) {
          const link = openLink(one, client, session.id, events);
          opened.push(link);
          return link;
        },
      });
      conversations.add(conversation);
      return {
        ...conversation,
        async close() {
          conversations.delete(conversation);
          for (const link of opened) links.get(link.name)?.delete(link);
          await conversation.close();
        },
      };
    },
    async close() {
      isClosed = true;
      // What is approved from now on waits for a process that has the tools.
      tools.close();
      await Promise.all([...conversations].map((one) => one.close()));
      await Promise.all([...own.values()].map((one) => one.close()));
    },
  };
}

function openWire(
  one: UpstreamConfig,
  { isShared }: Pick<ClientPlace, "isShared">,
  events: WireEvents,
): Wire {
  const { url, headers, command = "", args = [], env, cwd } = one;
  if (url !== undefined) return openHttpWire({ url, ...definedFields({ headers }) }, events);
  const place = { command, args, ...definedFields({ env, cwd }) };
  return isShared === true ? openSharedStdioWire(place, events) : openStdioWire(place, events);
}

const NO_CLIENT = "The client of this call is gone.";
const LOST: Snapshot = { lost: true };
const OWN_KEY = "Not executed: its idempotency key is set by the gateway. Leave that argument out.";
const MOST_REMEMBERED = 1_000;

function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > MOST_REMEMBERED && oldest !== undefined) map.delete(oldest);
}

function notConnected(name: string) {
  const text = `Not executed: the upstream ${name} is not connected. Call it again later.`;
  return { text, isError: true };
}

/** What is there before a write. Throws when the upstream does not answer: nothing was written then. */
async function take(
  upstream: Upstream,
  undo: UndoConfig,
  { input, signal }: SheetCall<JsonObject>,
): Promise<Snapshot | undefined> {
  if ("irreversible" in undo || undo.snapshot === undefined) return undefined;
  const params = paramsOf(undo.snapshot.tool, snapshotInput(undo.snapshot, input));
  return snapshotOf(await upstream.ask("tools/call", params, { signal }));
}

/** The call has succeeded, whether or not an undo can be made of its answer. */
function madeUndo(...given: Parameters<typeof undoOf>): UndoRecipe {
  try {
    return undoOf(...given);
  } catch (error) {
    const manualGuide = `No undo could be made: ${errorText(error)}. Look at the target.`;
    return { irreversible: true, manualGuide };
  }
}

/** The client's own message, under the upstream's name of the tool and with its key. */
function messageFor(
  { name, isRead, key }: OfferedTool,
  request: RequestMessage,
  input: JsonObject,
): RequestMessage {
  const { params } = request;
  const isPlain = params["name"] === name && key === undefined;
  const arguments_ = key === undefined ? {} : { arguments: input };
  const named = isPlain ? request : withParams(request, { ...params, name, ...arguments_ });
  return isRead ? named : withoutTasks(named);
}

function paramsOf(name: string, input: object) {
  return { name, arguments: input as Parameters<Upstream["ask"]>[1] };
}
