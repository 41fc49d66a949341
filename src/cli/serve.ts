import { existsSync } from "node:fs";
import { hostname } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { createGate, type Gate } from "../gate/create-gate.ts";
import type { GateOptions } from "../gate/options.ts";
import { startUpkeep } from "../gate/upkeep.ts";
import { createServer, type Server, type ServerOptions } from "../http/index.ts";
import { SallyportError } from "../model/errors.ts";
import type { Token } from "../model/identity.ts";
import { type FileHold, holdFile } from "../store/sqlite/database.ts";
import type { Store, TenantStore } from "../store/store.ts";
import { definedFields } from "../util/defined-fields.ts";
import { sha256Hex } from "../util/hash.ts";
import { systemTimers } from "../util/timers.ts";
import { type Anchoring, type OwnAnchors, startAnchoring } from "./anchoring.ts";
import { readLocalAccess, removeLocalAccess, writeLocalAccess } from "./connect.ts";
import { openStore, type StorePlace } from "./open-store.ts";
import { ensurePrivateFolder, stateOf } from "./state-folder.ts";

export interface ServeOptions extends StorePlace {
  readonly tenant: string;
  readonly listenPort: number;
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
  /** Keeps anchors elsewhere than in the state folder. */
  readonly anchors?: OwnAnchors;
  /** At least 16 random bytes; equal secrets in the trail are then recognisable as equal. */
  readonly redactionKey?: Uint8Array | string;
  /** Keeps the epoch file elsewhere than in the state folder; `--epoch-file` takes precedence. */
  readonly epochFile?: string;
  /** How people sign in and which addresses the server has; by default a link on loopback. */
  readonly http?: Pick<ServerOptions, "host" | "remote" | "oidc" | "signIn" | "audit" | "limits">;
};

export interface Served {
  readonly server: Server;
  readonly gate: Gate;
  readonly store: Store;
  readonly link: string;
  close(): Promise<void>;
}

/** Store, gate, upkeep and server of one process. Any number of them may share one database, each with its data folder. */
export async function serve(options: ServeOptions): Promise<Served> {
  ensurePrivateFolder(options.data);
  const hold = lockDataFolder(options.data);
  try {
    const parts = await options.parts({ data: options.data });
    const { redactionKey, epochFile } = parts;
    const place = { ...definedFields({ epochFile }), ...options };
    const store = await openStore(place, definedFields({ redactionKey }));
    const anchoring =
      options.anchors === "off"
        ? undefined
        : startAnchoring(store, parts.anchors ?? stateOf(place), options.onProblem);
    const end = async () => {
      await anchoring?.close();
      await store.close();
    };
    try {
      const served = await serveStore(store, place, { ...parts, anchoring });
      const close = async () => {
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

async function serveStore(
  store: Store,
  options: ServeOptions,
  given: ServedParts & { readonly anchoring: Anchoring | undefined },
): Promise<Served> {
  const { data, tenant, listenPort, person, upkeepMs, onProblem } = options;
  const { started, http = {}, anchoring, ...parts } = given;
  const own = [data, ...stateOf(options).protectedPaths, ...(parts.protectedPaths ?? [])];
  const gate = createGate({ ...parts, store, tenant, protectedPaths: own });
  const server = await createServer({
    store,
    gates: { [tenant]: gate },
    listenPort,
    onProblem,
    ...definedFields({ audit: anchoring?.audit }),
    ...http,
    ...definedFields({ console: consoleFolder() }),
  });
  try {
    await gate.recover();
  } catch (error) {
    // A server that listens but cannot work would keep the process alive for ever.
    await server.close();
    throw error;
  }
  const upkeep = startUpkeep({ gate, everyMs: upkeepMs, onError: onProblem });
  const stop = started?.(gate);
  const link = await server.signInLink({ subject: person });
  const local = await makeLocalToken(server, store.tenant(tenant), options);
  const access = { url: server.url, token: local.token, pid: process.pid };
  writeLocalAccess(data, access);
  return {
    server,
    gate,
    store,
    link,
    async close() {
      removeLocalAccess(data, access);
      await stop?.();
      await upkeep.stop();
      await server.close();
      // A store that does not answer must not block the exit; the next start revokes the token.
      await local.end().catch(onProblem);
    },
  };
}

/** The built console, next to the built code or in a checkout; undefined if it was not built. */
export function consoleFolder(): string | undefined {
  const here = path.dirname(fileURLToPath(import.meta.url));
  const places = [path.join(here, "../console"), path.join(here, "../../dist/console")];
  return places.find((place) => existsSync(path.join(place, "index.html")));
}

/**
 * One server per data folder: two would overwrite each other's access file, and whichever ended first would remove it. The
 * lock belongs to the operating system and ends with the process, so it is never stale. Throws already_exists.
 */
function lockDataFolder(data: string): FileHold {
  const hold = holdFile(path.join(data, "serve.lock"));
  if (hold !== undefined) return hold;
  const hint = `${runningServer(data)} Use that one, stop it, or start this one over another folder with --data.`;
  throw new SallyportError("already_exists", { id: data, hint });
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
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  while (!stop.signal.aborted) {
    // It rejects only when stopped, which the loop sees.
    await systemTimers.sleep(DAY_MS, stop.signal).catch(() => {});
  }
}

/** Not a person: the trail records its actions as those of this machine's commands. */
const SUBJECT = "local:commands";
const BY = { actor: "server" };
const PAGE = 500;

/**
 * The token of the commands on this machine. It reads, stops and resumes; it neither decides nor administers, because whatever
 * runs here as the same user can read its file, agents included. It ends with the server, and one that a killed server left
 * behind ends when the next one starts.
 */
async function makeLocalToken(
  server: Server,
  store: TenantStore,
  { data, database }: StorePlace,
): Promise<{ readonly token: string; end(): Promise<void> }> {
  const note = `commands on ${hostname()} over ${data}`.slice(0, 500);
  const isEarlier = (token: Token) =>
    // Servers on other machines may share a database, each with its own token; a file belongs to one folder.
    token.isLive &&
    token.roles.includes("local") &&
    (database === undefined || token.note === note);
  await endAll(store, isEarlier, "the server started again");
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

async function endAll(
  store: TenantStore,
  which: (token: Token) => boolean,
  reason: string,
): Promise<void> {
  for (const { id } of (await all(store)).filter(which)) {
    await store.tokens.end(id, reason, BY);
  }
}

async function all({ tokens }: TenantStore): Promise<readonly Token[]> {
  const found: Token[] = [];
  for (let after = 0; ; ) {
    const page = await tokens.list({ kind: "token", after, limit: PAGE });
    found.push(...page);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return found;
    after = last.ord;
  }
}
