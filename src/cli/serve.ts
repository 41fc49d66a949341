import { existsSync } from "node:fs";
import { hostname } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { removeHookAccess, writeHookAccess } from "../coding-agents/access.ts";
import { HOST_NAMES, type HostName } from "../coding-agents/hosts.ts";
import { type CodingAgentsConfig, withCodingAgents } from "../coding-agents/with-coding-agents.ts";
import { createGate, type Gate } from "../gate/create-gate.ts";
import type { GateOptions } from "../gate/options.ts";
import { startUpkeep } from "../gate/upkeep.ts";
import { createServer, type ServedFlow, type Server, type ServerOptions } from "../http/index.ts";
import { tokensOf } from "../http/sign-in.ts";
import {
  createGateway,
  type McpConfig,
  type McpEndpoint,
  openPins,
  type Pins,
  readMcpConfig,
  serveHttp,
} from "../mcp/index.ts";
import { SallyportError } from "../model/errors.ts";
import type { Token } from "../model/identity.ts";
import { type NotifyConfig, startNotifier } from "../notify/index.ts";
import { type FileHold, holdFile } from "../store/sqlite/database.ts";
import type { Store, TenantStore } from "../store/store.ts";
import { definedFields } from "../util/defined-fields.ts";
import { sha256Hex } from "../util/hash.ts";
import { systemTimers } from "../util/timers.ts";
import { readLocalAccess, removeLocalAccess, writeLocalAccess } from "./connect.ts";
import {
  type HttpConfig,
  type ListenFlags,
  listenOptions,
  readTls,
  withListenFlags,
} from "./listen.ts";
import { openStore } from "./open-store.ts";
import {
  type Anchoring,
  ensurePrivateFolder,
  type OwnAnchors,
  type StateFiles,
  type StorePlace,
  startAnchoring,
  stateOf,
} from "./state-folder.ts";

export interface ServeOptions extends StorePlace {
  readonly tenant: string;
  /** Takes precedence over `http` of the parts. */
  readonly listen: ListenFlags;
  /** Who signs in by the link. */
  readonly person: string;
  readonly parts: (place: { readonly data: string }) => ServedParts | Promise<ServedParts>;
  readonly upkeepMs: number;
  /** Signed anchors outside the data folder; without them truncation is not detected. */
  readonly anchors: "on" | "off";
  /** Receives errors that belong to no request. Shape: push. */
  readonly onProblem: (error: unknown) => void;
}

/** What a host provides: tools, reviews, rules. */
export type ServedParts = Omit<GateOptions, "store" | "tenant"> & {
  /** Called once everything runs; the function it returns is called before shutdown. Shape: callback. */
  readonly started?: (gate: Gate) => () => Promise<void>;
  /** Continues the runs of agents whose answers are in, as `resume` of an adapter does; called after commits and periodically. */
  readonly resume?: (gate: Gate) => Promise<readonly string[]>;
  /**
   * An agent that holds conversations over HTTP and the command line: `createFlow` of `sallyport/flow` over these parts. Give
   * `continueFlows` as `resume`, so that an answer in the inbox wakes a conversation. Shape: callback.
   */
  readonly flow?: (of: { readonly gate: Gate; readonly store: TenantStore }) => ServedFlow;
  /** Keeps anchors elsewhere than in the state folder. */
  readonly anchors?: OwnAnchors;
  /** At least 16 random bytes; equal secrets in the trail are then recognisable as equal. */
  readonly redactionKey?: Uint8Array | string;
  /** Keeps the epoch file elsewhere than in the state folder; `--epoch-file` takes precedence. */
  readonly epochFile?: string;
  /** Gates the tools of coding agents in this project; see `sallyport install`. */
  readonly codingAgents?: CodingAgentsConfig;
  /** Who is notified of what, and how. */
  readonly notify?: NotifyConfig;
  /** How people sign in and which addresses the server has; by default a link on loopback. */
  readonly http?: HttpConfig;
  /** The servers behind the MCP gateway: under /mcp of `sallyport serve`, or of `sallyport mcp`. */
  readonly mcp?: McpConfig;
};

export interface Served {
  readonly server: Server;
  readonly gate: Gate;
  readonly store: Store;
  readonly link: string;
  close(): Promise<void>;
}

/** A store and the gate over it, which protects the files of both. */
export async function openGate(
  given: StorePlace,
  tenant: string,
  parts: ServedParts,
): Promise<{ readonly store: Store; readonly gate: Gate; readonly state: StateFiles }> {
  const { redactionKey, epochFile } = parts;
  const place = { ...definedFields({ epochFile }), ...given };
  const state = stateOf(place);
  const store = await openStore(place, definedFields({ redactionKey }));
  try {
    const own = [place.data, ...state.protectedPaths, ...(parts.protectedPaths ?? [])];
    const { codingAgents: coding } = parts;
    const whole =
      coding === undefined
        ? parts
        : withCodingAgents(parts, coding, path.join(place.data, "snapshots"));
    return { store, state, gate: createGate({ ...whole, store, tenant, protectedPaths: own }) };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Store, gate, upkeep and server of one process. Any number of them may share one database, each with its data folder. */
export async function serve(options: ServeOptions): Promise<Served> {
  ensurePrivateFolder(options.data);
  const hold = lockDataFolder(options.data);
  try {
    const parts = await options.parts({ data: options.data });
    const http = withListenFlags(parts.http ?? {}, options.listen);
    // Before the store is opened: a server that must not listen leaves nothing behind.
    const listening = listenOptions(http);
    const { store, gate, state } = await openGate(options, options.tenant, parts);
    const anchoring =
      options.anchors === "off"
        ? undefined
        : startAnchoring(store, parts.anchors ?? state, options.onProblem);
    const end = async () => {
      await anchoring?.close();
      await store.close();
    };
    try {
      const served = await serveGate(gate, store, options, { ...parts, listening, anchoring });
      const stopReading = rereadCertificate(http.tls, served.server, options.onProblem);
      const close = async () => {
        stopReading();
        await served.close();
        await end();
        hold.release();
      };
      return { ...served, close };
    } catch (error) {
      await end();
      throw error;
    }
  } catch (error) {
    hold.release();
    throw error;
  }
}

async function serveGate(
  gate: Gate,
  store: Store,
  { data, database, tenant, person, upkeepMs, onProblem }: ServeOptions,
  {
    started,
    resume,
    flow,
    codingAgents,
    mcp,
    notify,
    listening,
    anchoring,
  }: Pick<ServedParts, "started" | "resume" | "flow" | "codingAgents" | "mcp" | "notify"> & {
    readonly listening: Partial<ServerOptions>;
    readonly anchoring: Anchoring | undefined;
  },
): Promise<Served> {
  const gateway = mcp === undefined ? undefined : serveGateway(gate, mcp, data, onProblem);
  const server = await createServer({
    store,
    ...definedFields({ mcp: gateway && { [tenant]: gateway } }),
    gates: { [tenant]: gate },
    flows: flow === undefined ? {} : { [tenant]: flow({ gate, store: store.tenant(tenant) }) },
    onProblem,
    ...definedFields({
      audit: anchoring?.audit,
      notify: notify && { tenant, channels: notify.channels },
    }),
    ...listening,
    ...definedFields({ console: builtConsoleFolder() }),
  });
  try {
    await gate.recover();
  } catch (error) {
    // A server that listens but cannot work would keep the process alive for ever.
    await server.close();
    throw error;
  }
  const upkeep = startUpkeep({
    gate,
    everyMs: upkeepMs,
    onError: onProblem,
    ...definedFields({ resume: resume && (() => resume(gate)) }),
  });
  const notifier =
    notify &&
    startNotifier({
      gate,
      store,
      tenant,
      config: notify,
      baseUrl: server.url,
      onError: onProblem,
    });
  const stop = started?.(gate);
  const link = await server.signInLink({ subject: person });
  const local = await makeLocalToken(server, store.tenant(tenant), { data, database });
  const access = { url: server.localUrl, token: local.token, pid: process.pid };
  writeLocalAccess(data, access);
  const hooks = codingAgents && (await openHooks(server, store.tenant(tenant), data));
  return {
    server,
    gate,
    store,
    link,
    async close() {
      removeLocalAccess(data, access);
      await hooks?.end().catch(onProblem);
      await stop?.();
      await gateway?.close();
      await notifier?.stop();
      await upkeep.stop();
      await server.close();
      // A store that does not answer must not block the exit; the next start revokes the token.
      await local.end().catch(onProblem);
    },
  };
}

/** Checks the configuration first: a server must not start with a gateway that cannot. */
function serveGateway(
  gate: Gate,
  given: McpConfig,
  data: string,
  onProblem: (error: unknown) => void,
): McpEndpoint {
  const config = readMcpConfig(given);
  const say = (text: string) => onProblem(`mcp: ${text}`);
  const gateway = createGateway({ gate, config, pins: mcpPins(data), onProblem: say });
  const endpoint = serveHttp(gateway);
  return {
    ...endpoint,
    async close() {
      await endpoint.close();
      await gateway.close();
    },
  };
}

/** The definitions of upstream tools that were accepted. */
export function mcpPins(data: string): Pins {
  return openPins(path.join(data, "mcp-pins.json"));
}

/** A certificate that was renewed takes effect without a restart. Returns a function that stops this. */
function rereadCertificate(
  tls: HttpConfig["tls"],
  server: Server,
  onProblem: ServeOptions["onProblem"],
): () => void {
  if (tls === undefined) return () => {};
  const reread = () => {
    try {
      server.replaceCertificate(readTls(tls));
    } catch (error) {
      // The server goes on with the certificate that it has.
      onProblem(error);
    }
  };
  process.on("SIGHUP", reread);
  return () => process.off("SIGHUP", reread);
}

/** The built console, next to the built code or in a checkout; undefined if it was not built. */
export function builtConsoleFolder(): string | undefined {
  const here = path.dirname(fileURLToPath(import.meta.url));
  const places = [path.join(here, "../console"), path.join(here, "../../dist/console")];
  return places.find((place) => existsSync(path.join(place, "index.html")));
}

const LOCK = "serve.lock";

/**
 * One server per data folder: two would overwrite each other's access file, and whichever ended first would remove it. The
 * lock belongs to the operating system and ends with the process, so it is never stale. Throws already_exists.
 */
function lockDataFolder(data: string): FileHold {
  const hold = holdFile(path.join(data, LOCK));
  if (hold !== undefined) return hold;
  const hint = `${runningServer(data)} Use that one, stop it, or start this one over another folder with --data.`;
  throw new SallyportError("already_exists", { id: data, hint });
}

/** Whether a server runs over this data folder now; one that was killed leaves its access file, but no lock. */
export function isServed(data: string): boolean {
  const hold = existsSync(data) ? holdFile(path.join(data, LOCK)) : undefined;
  hold?.release();
  return existsSync(data) && hold === undefined;
}

function runningServer(data: string): string {
  const access = readLocalAccess(data);
  return access === undefined
    ? `Another server is starting over the data folder ${data}.`
    : `A server already runs over the data folder ${data}: pid ${access.pid}, at ${access.url}.`;
}

const DAY_MS = 24 * 3_600_000;

/**
 * Waits for Ctrl+C or a termination signal. Keeps the process alive meanwhile: a listener for signals does
 * not, and a worker over a file has nothing else that would.
 */
export async function untilStopped(): Promise<void> {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    // Not once: a framework of the host may exit in the middle when no one else listens. A second signal ends it immediately.
    process.on(signal, () => (stop.signal.aborted ? process.exit(130) : stop.abort()));
  }
  while (!stop.signal.aborted) {
    // It rejects only when stopped, which the loop sees.
    await systemTimers.sleep(DAY_MS, stop.signal).catch(() => {});
  }
}

/** Not a person: the trail records its actions as those of this machine's commands. */
const SUBJECT = "local:commands";
const BY = { actor: "server" };

/** A token for the hooks of each coding agent. Like the token of the commands they end with the server. */
async function openHooks(
  server: Server,
  store: TenantStore,
  data: string,
): Promise<{ end(): Promise<void> }> {
  const note = `hooks on ${hostname()} over ${data}`.slice(0, 500);
  const endAll = async (why: string) => {
    for await (const token of tokensOf(store, "token")) {
      if (token.isLive && token.note === note) await store.tokens.end(token.id, why, BY);
    }
  };
  await endAll("the server started again");
  const tokens: [HostName, string][] = [];
  for (const subject of HOST_NAMES) {
    const terms = { tenant: store.tenant, subject, roles: ["agent"], note } as const;
    tokens.push([subject, await server.makeToken(terms)]);
  }
  const all = Object.fromEntries(tokens) as Record<HostName, string>;
  writeHookAccess(data, { url: server.localUrl, pid: process.pid, tokens: all });
  return {
    async end() {
      removeHookAccess(data);
      await endAll("the server stopped");
    },
  };
}

/**
 * The token of the commands on this machine. It reads, stops and resumes; it neither decides nor administers, because whatever
 * runs here as the same user can read its file, agents included. It ends with the server, and one that a killed server left
 * behind ends when the next one starts.
 */
async function makeLocalToken(
  server: Server,
  store: TenantStore,
  { data, database }: { readonly data: string; readonly database: string | undefined },
): Promise<{ readonly token: string; end(): Promise<void> }> {
  const note = `commands on ${hostname()} over ${data}`.slice(0, 500);
  const isEarlier = (token: Token) =>
    // Servers on other machines may share a database, each with its own token; a file belongs to one folder.
    token.isLive &&
    token.roles.includes("local") &&
    (database === undefined || token.note === note);
  for await (const earlier of tokensOf(store, "token")) {
    if (isEarlier(earlier)) await store.tokens.end(earlier.id, "the server started again", BY);
  }
  const token = await server.makeToken({
    tenant: store.tenant,
    subject: SUBJECT,
    roles: ["local"],
    note,
  });
  return {
    token,
    async end() {
      const own = await store.tokens.find(sha256Hex(token));
      if (own !== undefined) await store.tokens.end(own.id, "the server stopped", BY);
    },
  };
}
