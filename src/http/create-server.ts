import { readFile } from "node:fs/promises";
import { createServer as createNodeServer, type Server as NodeServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import type { VerifyOptions } from "../audit/verify.ts";
import type { Gate } from "../gate/create-gate.ts";
import { SallyportError } from "../model/errors.ts";
import type { Identity } from "../model/identity.ts";
import type { Store } from "../store/store.ts";
import { type Clock, stopwatch, systemClock } from "../util/clock.ts";
import { type Random, systemRandom } from "../util/random.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import { handlerOf, problem } from "./answer.ts";
import { createAuthenticator, createOriginCheck, Door } from "./authenticate.ts";
import {
  Connections,
  callerAddress,
  Streams,
  Turnstile,
  taskQuotas,
  withinOpenFiles,
} from "./connections.ts";
import { checkExposure, type ExposureOptions, localOrigins } from "./exposure.ts";
import { createFeeds } from "./feeds.ts";
import { type McpMount, mountMcp } from "./mcp.ts";
import { createMetrics } from "./metrics.ts";
import { PATHS, pathOf, type RouteName } from "./paths.ts";
import {
  createSessionBook,
  type HttpContext,
  type HttpLimits,
  type ServedChannels,
  type Services,
  type SignInTerms,
} from "./route.ts";
import type { ServedFlow } from "./routes/conversations.ts";
import { openApiDocument, ROUTES } from "./routes.ts";
import {
  contentSecurityPolicy,
  htmlPage,
  makeSignInLink,
  makeToken,
  type NewServerToken,
  type OidcOptions,
  STYLE_HASH,
  signInWithOidc,
} from "./sign-in.ts";

export interface ServerOptions extends ExposureOptions {
  /** The store of the gates: tokens and idempotency keys are kept in it too. */
  readonly store: Store;
  /** One gate for each tenant. */
  readonly gates: Readonly<Record<string, Gate>>;
  /** An agent that holds conversations with people and programs, one for each tenant that has one. */
  readonly flows?: Readonly<Record<string, ServedFlow>>;
  /** 0 for a free one. */
  readonly listenPort?: number;
  readonly oidc?: OidcOptions;
  /** Channels of notifications whose receivers may answer here. */
  readonly notify?: ServedChannels;
  /** A folder with the built web console. */
  readonly console?: string;
  /** The MCP gateway of each tenant that has one, under /mcp. */
  readonly mcp?: Readonly<Record<string, McpMount>>;
  readonly signIn?: Partial<Omit<SignInTerms, "cookie">>;
  readonly limits?: Partial<HttpLimits>;
  readonly audit?: Pick<VerifyOptions, "anchors" | "publicKeys">;
  /** Receives internal errors; senders only learn that one happened. Shape: push. */
  readonly onProblem?: (error: unknown) => void;
  readonly clock?: Clock;
  readonly timers?: Timers;
  readonly random?: Random;
}

export interface Server extends AsyncDisposable {
  /** Its address for people, like http://127.0.0.1:4100. */
  readonly url: string;
  /** Its address for programs on the same machine. */
  readonly localUrl: string;
  /** New connections get this certificate; those that are open keep theirs. Throws TypeError for a server without TLS. */
  replaceCertificate(tls: NonNullable<ServerOptions["tls"]>): void;
  /** A link that signs one person in, once, within a few minutes. */
  signInLink(person: Partial<Identity> & { readonly subject: string }): Promise<string>;
  /** A token for a program. Its secret is not stored. */
  makeToken(token: NewServerToken): Promise<string>;
  /** Accepts no new requests, gives those in progress time to finish, then closes. */
  close(): Promise<void>;
}

const LIMITS: HttpLimits = {
  bodyBytes: 1024 * 1024,
  bodyMs: 10_000,
  keyLeaseMs: 5_000,
  keyKeepMs: 24 * 3_600_000,
  inFlight: 512,
  senderRate: { perSecond: 500, burst: 1_000 },
  tenantRate: { perSecond: 2_000, burst: 4_000 },
  strangerRate: { perSecond: 50, burst: 200 },
  // One agent holds at most 256 of 4,096, all agents 3,072, strangers 256: at least 768 are left for people.
  connections: { total: 4_096, strangers: 256, perSender: 256, agents: 3_072 },
  streams: { perAgent: 8, agentsPerTenant: 128, perPerson: 256 },
  openTasks: { most: 10_000, mostBytes: 32 * 1024 * 1024 },
  heartbeatMs: 2_000,
  listenerBytes: 1024 * 1024,
};

const SIGN_IN: Omit<SignInTerms, "cookie"> = {
  sessionMs: 12 * 3_600_000,
  linkMs: 10 * 60_000,
  inviteMs: 24 * 3_600_000,
  tokenMs: 366 * 24 * 3_600_000,
  freshMs: 15 * 60_000,
  roles: ["reviewer", "operator", "admin"],
};

const NODE = { maxHeaderSize: 16 * 1024 };
const CLOSE_MS = 10_000;
const SWEEP_MS = 20;
const SWEEP_KEYS_MS = 10 * 60_000;
const SWEPT_AT_ONCE = 100;
const TOKEN_MEMORY_MS = 1_000;

/** Serves gates over HTTP. Throws TypeError for options that would let strangers in. */
export async function createServer(options: ServerOptions): Promise<Server> {
  const { store, gates, host = "127.0.0.1", listenPort = 0, remote, oidc, tls } = options;
  checkExposure(options, oidc !== undefined);
  const tenants = Object.keys(gates);
  if (tenants.length === 0) throw new TypeError("createServer needs at least one gate.");
  const { clock = systemClock, timers = systemTimers, random = systemRandom } = options;
  const node =
    tls === undefined
      ? createNodeServer(NODE)
      : createTlsServer({ ...NODE, ...tls, minVersion: "TLSv1.2" });
  const given = { ...LIMITS, ...options.limits };
  const limits = { ...given, connections: withinOpenFiles(given.connections) };
  const connections = new Connections(limits.connections);
  limitTime(node);
  node.maxConnections = limits.connections.total;
  node.on("connection", (socket) => connections.accept(socket));
  const { port: bound } = await listen(node, listenPort, host);
  const local = localOrigins(bound, host, tls !== undefined);
  const origins = createOriginCheck([...(remote?.origins ?? []), ...local]);
  // Browsers send the cookies of one port to all ports of a machine.
  const cookie = `${origins.isSecure ? "__Host-" : ""}sallyport_${bound}`;
  const signIn = { ...SIGN_IN, ...options.signIn, cookie };
  const [firstTenant = ""] = tenants;
  const addressOf = callerAddress(options.trustedProxies ?? []);
  let isOpen = true;
  const metrics = createMetrics();
  const feeds = createFeeds(store, timers);
  const services: Services = {
    store,
    gates,
    flows: options.flows ?? {},
    authenticator: createAuthenticator({
      store,
      tenants: new Set(tenants),
      cookie,
      memoryMs: TOKEN_MEMORY_MS,
      stopwatch,
    }),
    origins,
    sessions: createSessionBook(),
    feeds,
    metrics,
    connections,
    streams: new Streams(limits.streams),
    taskQuota: taskQuotas(limits.openTasks, stopwatch),
    door: new Door({ rate: limits.strangerRate, cookie, stopwatch, addressOf }),
    turnstiles: {
      senders: new Turnstile(limits.senderRate, stopwatch),
      tenants: new Turnstile(limits.tenantRate, stopwatch),
    },
    oidc:
      oidc === undefined
        ? undefined
        : signInWithOidc(oidc, { tenant: firstTenant, freshMs: signIn.freshMs }),
    notify: options.notify,
    clock,
    timers,
    random,
    limits,
    signIn,
    audit: options.audit ?? {},
    openapi: once(() => openApiDocument(ROUTES)),
    isOpen: () => isOpen,
    report: options.onProblem ?? ((error) => process.emitWarning(String(error))),
  };
  const files = options.console === undefined ? noConsole : consoleFolder(options.console);
  const app = createApp(services, files, options.mcp);
  node.on("request", getRequestListener(app.fetch, { overrideGlobalObjects: false }));
  const stopSweeping = sweepKeys(services, tenants);
  async function close(): Promise<void> {
    if (!isOpen) return;
    isOpen = false;
    stopSweeping();
    feeds.close();
    await closeNode(node, timers);
    metrics.close();
  }
  return {
    url: origins.main,
    localUrl: tls === undefined ? (local[0] ?? origins.main) : origins.main,
    replaceCertificate(next) {
      if (!("setSecureContext" in node)) throw new TypeError("This server speaks plain HTTP.");
      node.setSecureContext(next);
    },
    signInLink: ({ tenant = firstTenant, subject, roles = services.signIn.roles, owner = "" }) =>
      makeSignInLink({ tenant, subject, roles, owner }, services, "server"),
    makeToken: async (token) =>
      (await makeToken({ tenant: firstTenant, ...token }, services, "server")).secret,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Deletes stored answers that are too old to be repeated; any number of servers may do so concurrently. */
function sweepKeys({ store, timers, report }: Services, tenants: readonly string[]): () => void {
  async function sweep(): Promise<void> {
    for (const tenant of tenants) {
      const { httpKeys } = store.tenant(tenant);
      while ((await httpKeys.sweep(SWEPT_AT_ONCE, "server")) === SWEPT_AT_ONCE);
    }
  }
  let stop = next();
  function next(): () => void {
    return timers.after(SWEEP_KEYS_MS, () => {
      sweep().catch(report);
      stop = next();
    });
  }
  return () => stop();
}

/** A client that sends or reads too slowly is disconnected. */
function limitTime(node: NodeServer): void {
  node.headersTimeout = 10_000;
  node.requestTimeout = 30_000;
  node.keepAliveTimeout = 30_000;
  node.maxRequestsPerSocket = 0;
}

async function listen(node: NodeServer, port: number, host: string): Promise<AddressInfo> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  node.once("error", reject);
  node.listen(port, host, resolve);
  try {
    await promise;
  } catch (error) {
    throw cannotListen(error, port, host);
  }
  node.off("error", reject);
  return node.address() as AddressInfo;
}

function cannotListen(error: unknown, port: number, host: string): unknown {
  const code = error instanceof Error && "code" in error ? error.code : "";
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: `Port ${port} of ${host} is in use by another program, perhaps by another server of yours. Stop that one, or choose another port (--port).`,
    EACCES: `This account may not listen on port ${port}. Choose one above 1023 (--port).`,
    EADDRNOTAVAIL: `${host} is no address of this machine. Choose one that is (--host).`,
  };
  const hint = reasons[String(code)];
  return hint === undefined
    ? error
    : new SallyportError("invalid_input", { what: "port", hint }, error);
}

async function closeNode(node: NodeServer, timers: Timers): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  node.close(() => resolve());
  const giveUp = timers.after(CLOSE_MS, () => node.closeAllConnections());
  // Node closes connections that are idle now; those that become idle a moment later would stay until they time out.
  let stop = sweepIdle();
  function sweepIdle(): () => void {
    node.closeIdleConnections();
    return timers.after(SWEEP_MS, () => {
      stop = sweepIdle();
    });
  }
  await promise;
  stop();
  giveUp();
}

function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** The router: every path of the table, each behind its authorization, and the console's files. Nothing else is served. */
function createApp(
  services: Services,
  files: Console = noConsole,
  mcp: ServerOptions["mcp"] = undefined,
): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.use("*", async (context, next) => {
    for (const [header, value] of Object.entries(SECURITY_HEADERS)) context.header(header, value);
    context.header("Content-Security-Policy", NO_PAGE_POLICY);
    try {
      services.origins.check(context.env.incoming);
    } catch (error) {
      return problem(context, error, services);
    }
    return next();
  });
  for (const name of Object.keys(PATHS) as RouteName[]) {
    const { method, path } = pathOf(name);
    app.on(method, path, handlerOf(name, ROUTES[name], services));
  }
  if (mcp !== undefined) mountMcp(app, mcp, services);
  app.get("*", async (context) => {
    const { pathname } = new URL(context.req.url);
    const response = pathname.startsWith("/v1/") ? undefined : await files(context, pathname);
    return response ?? problem(context, unknownPath(), services);
  });
  app.notFound((context) => problem(context, unknownPath(), services));
  app.onError((error, context) => problem(context, error, services));
  return app;
}

function unknownPath(): SallyportError {
  return new SallyportError("not_found", {
    hint: "See GET /v1/openapi.json for the available routes.",
  });
}

/** The web console's built files. Undefined for any other path. */
type Console = (context: HttpContext, pathname: string) => Promise<Response | undefined>;

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".webmanifest": "application/manifest+json",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
};

/** Plain path segments only: no spelling of `..` matches. */
const FILE = /^(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$/;

/** A folder as a bundler makes it: `index.html` for every page, names with a hash under `assets`. */
function consoleFolder(folder: string): Console {
  const root = path.resolve(folder);
  return async (context, pathname) => {
    const type = FILE.test(pathname) ? TYPES[path.extname(pathname)] : undefined;
    const isAsset = pathname === "/assets" || pathname.startsWith("/assets/");
    // Only files below assets: the page would be cached as that file for a year.
    if (isAsset && (type === undefined || type === TYPES[".html"])) return undefined;
    const isPage = type === undefined || pathname === "/index.html";
    const file = isPage ? "index.html" : pathname.slice(1);
    const bytes = await readFile(path.join(root, file)).catch(() => undefined);
    if (bytes === undefined) return undefined;
    context.header("Content-Security-Policy", contentSecurityPolicy());
    context.header("Cache-Control", isAsset ? "public, max-age=31536000, immutable" : "no-cache");
    const contentType = isPage ? TYPES[".html"] : type;
    return context.body(new Uint8Array(bytes), 200, { "Content-Type": contentType ?? "" });
  };
}

/** The landing page after sign-in if there is no console. */
const noConsole: Console = async (context, pathname) => {
  if (pathname !== "/") return undefined;
  context.header("Content-Security-Policy", contentSecurityPolicy([STYLE_HASH]));
  context.header("Cache-Control", "no-store");
  return context.html(
    htmlPage("Sallyport", "<p>The server runs. There is no console in this installation.</p>"),
  );
};

/** For every response. */
const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  // Not "no-referrer": with it browsers send `Origin: null` with forms, and sign-in links would not work.
  "Referrer-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
};

/** The policy of everything that is not a page: nothing is allowed. */
const NO_PAGE_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox";
