import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { createServer, type Server, type ServerOptions } from "../http/index.ts";
import { createSallyport, type Port } from "../port/create-sallyport.ts";
import type { SallyportOptions } from "../port/options.ts";
import { startUpkeep } from "../port/upkeep.ts";
import type { Store } from "../store/store.ts";
import { type Anchoring, type OwnAnchors, startAnchoring } from "./anchoring.ts";
import { removeLocalAccess, writeLocalAccess } from "./local-access.ts";
import { makeLocalToken } from "./local-token.ts";
import { openStore, type StorePlace } from "./open-store.ts";
import { ensurePrivateFolder } from "./private-folder.ts";
import { lockDataFolder } from "./serve-lock.ts";
import { stateOf } from "./state-folder.ts";

export interface ServeOptions extends StorePlace {
  readonly tenant: string;
  readonly listenPort: number;
  /** Who signs in by the link. */
  readonly person: string;
  readonly parts: (place: { readonly data: string }) => ServedParts | Promise<ServedParts>;
  readonly upkeepMs: number;
  /** Signed heads of the trails outside the data folder; without them a cut end is not noticed. */
  readonly anchors: "on" | "off";
  /** What went wrong beside a request. Shape: push. */
  readonly onProblem: (error: unknown) => void;
}

/** What a host brings: its tools, its reviews, its rules. */
export type ServedParts = Omit<SallyportOptions, "store" | "tenant"> & {
  /** Called once everything runs; what it gives back is called before everything ends. Shape: callback. */
  readonly started?: (port: Port) => () => Promise<void>;
  /** Another place for anchors than the state folder. */
  readonly anchors?: OwnAnchors;
  /** At least 16 random bytes: equal secrets in the trail can be recognised as equal. */
  readonly redactionKey?: Uint8Array | string;
  /** Another place for the epoch file than the state folder; `--epoch-file` comes first. */
  readonly epochFile?: string;
  /** How people sign in and from where the server is reached; a link on loopback when left out. */
  readonly http?: Pick<ServerOptions, "host" | "remote" | "oidc" | "signIn" | "audit" | "limits">;
};

export interface Served {
  readonly server: Server;
  readonly port: Port;
  readonly store: Store;
  readonly link: string;
  close(): Promise<void>;
}

/** Store, port, upkeep and server of one process. Any number of them may share one database, each with its data folder. */
export async function serve(options: ServeOptions): Promise<Served> {
  ensurePrivateFolder(options.data);
  const hold = lockDataFolder(options.data);
  try {
    const parts = await options.parts({ data: options.data });
    const { redactionKey, epochFile } = parts;
    const place = { ...(epochFile === undefined ? {} : { epochFile }), ...options };
    const store = await openStore(place, redactionKey === undefined ? {} : { redactionKey });
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
  const port = createSallyport({ ...parts, store, tenant, protectedPaths: own });
  const folder = consoleFolder();
  const server = await createServer({
    store,
    ports: { [tenant]: port },
    listenPort,
    onProblem,
    ...(anchoring === undefined ? {} : { audit: anchoring.audit }),
    ...http,
    ...(folder === undefined ? {} : { console: folder }),
  });
  try {
    await port.recover();
  } catch (error) {
    // Somebody who listens and cannot work would keep the process, and whoever waits for it, for ever.
    await server.close();
    throw error;
  }
  const upkeep = startUpkeep({ port, everyMs: upkeepMs, onError: onProblem });
  const stop = started?.(port);
  const link = await server.signInLink({ subject: person });
  const local = await makeLocalToken(server, store.tenant(tenant), options);
  const access = { url: server.url, token: local.token, pid: process.pid };
  writeLocalAccess(data, access);
  return {
    server,
    port,
    store,
    link,
    async close() {
      removeLocalAccess(data, access);
      await stop?.();
      await upkeep.stop();
      await server.close();
      // A store that does not answer must not keep the process; the next start ends the token.
      await local.end().catch(onProblem);
    },
  };
}

/** The built console, beside the built code or in a checkout; undefined when it was not built. */
export function consoleFolder(): string | undefined {
  const here = path.dirname(fileURLToPath(import.meta.url));
  const places = [path.join(here, "../console"), path.join(here, "../../dist/console")];
  return places.find((place) => existsSync(path.join(place, "index.html")));
}
