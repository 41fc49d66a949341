import type { IncomingMessage } from "node:http";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { z } from "zod";
import type { DelegationId } from "../model/delegation.ts";
import { ERRORS, isSallyportError, SallyportError } from "../model/errors.ts";
import type { StoredAnswer, Token } from "../model/identity.ts";
import { isName, parseJson } from "../model/names.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { stopwatch } from "../util/clock.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { renewEvery, type Timers } from "../util/timers.ts";
import { checkFresh, type Signed } from "./authenticate.ts";
import { type Path, pathOf, type RouteName } from "./paths.ts";
import {
  type AccessRule,
  type AccessScope,
  type Call,
  type HttpContext,
  type JsonRoute,
  maySee,
  notFound,
  type RawRoute,
  type RecordKind,
  type RequestLane,
  type Route,
  type Services,
  scopeOf,
} from "./route.ts";

type Handler = (context: HttpContext) => Promise<Response>;

/** One route as the router calls it: authenticate, authorize, check the input, then run the route's code. */
export function handlerOf(name: RouteName, route: Route, services: Services): Handler {
  const place = pathOf(name);
  const respond: Handler = async (context) =>
    route.kind === "open"
      ? route.handle(await inputOf(place, route, context, services), context, services)
      : guarded(name, place, route, context, services);
  return async (context) => {
    const start = stopwatch.now();
    const response = await respond(context).catch((error) => problem(context, error, services));
    services.metrics.request(name, response.status, (stopwatch.now() - start) / 1_000);
    return response;
  };
}

async function guarded(
  name: RouteName,
  place: Path,
  route: JsonRoute | RawRoute,
  context: HttpContext,
  services: Services,
): Promise<Response> {
  const signed = await identified(context, services);
  const scope = checkAccess(name, route.rule, signed.token);
  if ("roles" in route.rule && route.rule.freshSignIn === true) checkFresh(signed, services);
  const leave = enter(route.lane, signed.token, services);
  try {
    const input = await inputOf(place, route, context, services);
    const call = callOf(signed, scope, context.env, services);
    await checkOwner(route.of, input, call);
    if (route.kind === "raw") return await route.handle(input, context, call);
    return await answered(name, route, input, context, call);
  } finally {
    leave();
  }
}

/** What a token may see by this rule. Throws not_allowed. */
export function checkAccess(name: RouteName, rule: AccessRule, token: Token): AccessScope {
  const scope = scopeOf(rule, token);
  if (scope === undefined) {
    const roles = "roles" in rule ? Object.keys(rule.roles).join(" or ") : "";
    const hint = `It takes the role ${roles}, which you do not have; ask someone who has it.`;
    throw new SallyportError("not_allowed", { route: name, hint });
  }
  checkPerson(name, rule, token);
  return scope;
}

/** Authenticates, and assigns the connection to the sender. */
export async function identified(context: HttpContext, services: Services): Promise<Signed> {
  const { incoming } = context.env;
  const knock = services.door.knock(incoming);
  const signed = await services.authenticator.identify(incoming).catch((error: unknown) => {
    if (isSallyportError(error, "unauthenticated")) knock.refused();
    throw error;
  });
  knock.known();
  try {
    services.connections.claim(incoming.socket, signed.token);
  } catch (error) {
    context.header("Connection", "close");
    throw error;
  }
  return signed;
}

async function answered(
  name: RouteName,
  route: JsonRoute,
  input: Record<string, unknown>,
  context: HttpContext,
  call: Call,
): Promise<Response> {
  if (call.key === "" || route.keys === "passed") {
    const body = textOf(name, route, await route.handle(input, call), call);
    return send(context, { status: route.status, body });
  }
  const work = async () => {
    try {
      const answer = await route.handle(input, call);
      const { status, toKeep } = route;
      const sent = { status, body: textOf(name, route, answer, call) };
      if (toKeep === undefined) return { answer: sent };
      return { answer: sent, kept: { status, body: textOf(name, route, toKeep(answer), call) } };
    } catch (error) {
      if (isBug(error)) call.services.report(error);
      return { answer: errorAnswer(error) };
    }
  };
  const terms = { route: name, ifCutOff: route.ifCutOff };
  const done = await once(call, terms, input as JsonValue, work);
  if (done.replayed) context.header("Idempotency-Replayed", "true");
  return send(context, done);
}

/**
 * Only what the schema names is sent. An answer that does not match is a bug and may contain anything, so nothing of it is
 * sent: the operator gets the error, the sender learns whether the request took effect.
 */
function textOf(name: RouteName, route: JsonRoute, answer: unknown, { services }: Call): string {
  const checked = route.answer.safeParse(answer);
  if (checked.success) return JSON.stringify(checked.data);
  services.report(checked.error);
  const hint =
    pathOf(name).method === "GET"
      ? "The answer cannot be sent; the operator's log has the reason."
      : "It was executed, but the answer cannot be sent. Check the record before you send it again.";
  throw new SallyportError("internal_error", { route: name, hint });
}

async function inputOf(
  { method, params }: Path,
  route: Route,
  context: HttpContext,
  { limits, timers }: Services,
): Promise<Record<string, unknown>> {
  const isForm = route.kind === "open" && method === "POST";
  const rest: JsonObject = isForm
    ? {}
    : method === "GET"
      ? queryInput(route, context.req.queries())
      : await readBody(context.env.incoming, limits, timers);
  const fromPath = params.map((param) => [param, context.req.param(param) ?? ""] as const);
  return checkedInput(route, Object.fromEntries(fromPath), rest);
}

function callOf(
  signed: Signed,
  scope: "own" | "tenant",
  { incoming, outgoing }: HttpContext["env"],
  services: Services,
): Call {
  const { token: identity } = signed;
  const { tenant, subject } = identity;
  const gate = services.gates[tenant];
  if (gate === undefined) throw new SallyportError("unauthenticated");
  const header = incoming.headers["idempotency-key"];
  let gone: AbortSignal | undefined;
  return {
    identity,
    by: subject,
    signed,
    gate,
    store: services.store.tenant(tenant),
    own: scope === "own" ? subject : undefined,
    services,
    key: readKey(typeof header === "string" ? header : undefined),
    // Made when a route asks for it: few do.
    get gone() {
      gone ??= hungUp(outgoing);
      return gone;
    },
  };
}

function hungUp(outgoing: HttpContext["env"]["outgoing"]): AbortSignal {
  const stop = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) stop.abort(new Error("the sender hung up"));
  });
  return stop.signal;
}

/** For callers limited to their own records, others' records are not_found. */
async function checkOwner(
  of: RecordKind,
  input: Record<string, unknown>,
  call: Call,
): Promise<void> {
  if (call.own === undefined || of === "list" || of === "none") return;
  const id = String(input["id"]);
  if (!isName(id)) throw notFound(id);
  const sessionId = of === "session" ? id : await sessionOf(of, id, call);
  if (!(await maySee(call, sessionId))) throw notFound(id);
}

async function sessionOf(
  of: "decision" | "interaction" | "operation" | "delegation",
  id: string,
  { gate, own }: Call,
): Promise<string> {
  try {
    if (of !== "delegation") return (await gate[`${of}s`].get(id)).sessionId;
    const { rootSession } = await gate.delegations.get(id as DelegationId);
    // A sub-agent is the delegation itself; for everyone else it belongs to the session at its root.
    return id === own ? id : rootSession;
  } catch (error) {
    throw isSallyportError(error, "not_found") ? notFound(id) : error;
  }
}

/** Approvals and rules need a person; a token can be copied, passed on, or made by an admin. */
function checkPerson(route: string, rule: AccessRule, token: Token): void {
  if ("anyone" in rule || rule.person !== true || token.kind === "session") return;
  const hint =
    "A token never decides or administers. Sign in with a link: in the console, or on the command line with --link.";
  throw new SallyportError("not_allowed", { route, hint });
}

/**
 * Concurrent requests of agents are limited; people and the kill switch never wait behind them. A flood
 * of one agent or one tenant is refused before it affects others.
 */
export function enter(
  lane: RequestLane,
  { tenant, subject }: Signed["token"],
  { metrics, limits, turnstiles }: Services,
): () => void {
  slowDown(turnstiles.senders.pass(`${tenant}\n${subject}`), "of this sender");
  if (lane === "people") return () => {};
  slowDown(turnstiles.tenants.pass(tenant), "of this tenant's agents");
  const { inFlight } = metrics;
  if (inFlight.value >= limits.inFlight) {
    const hint = "Send the same request again in a moment.";
    throw new SallyportError("overloaded", { limit: limits.inFlight, hint });
  }
  inFlight.value += 1;
  return () => {
    inFlight.value -= 1;
  };
}

function slowDown(waitMs: number, whose: string): void {
  if (waitMs === 0) return;
  const hint = `Too many requests ${whose}: retry in ${waitMs} ms, with fewer at a time.`;
  throw new SallyportError("too_fast", { waitMs, hint });
}

export function problem(context: HttpContext, error: unknown, services: Services): Response {
  if (isBug(error)) services.report(error);
  const answer = errorAnswer(error);
  const { status } = answer;
  if (status === 401) {
    services.metrics.refusedSignIn();
    context.header("WWW-Authenticate", 'Bearer realm="sallyport"');
  }
  if (status === 503 || status === 429) context.header("Retry-After", "1");
  // The rest of an unread body must not be taken for the next request.
  if (!context.env.incoming.complete) context.header("Connection", "close");
  return send(context, answer);
}

function send(context: HttpContext, { status, body }: StoredAnswer): Response {
  return context.body(body, status as ContentfulStatusCode, {
    "Content-Type": status < 400 ? "application/json" : "application/problem+json",
    "Cache-Control": "no-store",
  });
}

/** An answer of several lines of JSON, each sent as soon as it is known. */
interface AnswerLines {
  send(line: Readonly<Record<string, unknown>>): void;
  /** The last line: the error, as another route would answer it. */
  fail(error: unknown): void;
  end(): void;
}

export function openLines(context: HttpContext, { services, gone }: Call): AnswerLines {
  const out = context.env.outgoing;
  // The connection is not reused, so its end is the end of the answer.
  out.useChunkedEncodingByDefault = false;
  out.writeHead(200, {
    ...Object.fromEntries(context.res.headers),
    "Content-Type": "application/jsonl",
    "Cache-Control": "no-store",
    Connection: "close",
    "X-Accel-Buffering": "no",
  });
  out.flushHeaders();
  const write = (line: string) => {
    // Reports that a slow reader leaves unread are dropped; the answer is not.
    if (!gone.aborted) out.write(`${line}\n`);
  };
  return {
    send(line) {
      const isAnswer = "answer" in line;
      if (isAnswer || out.writableLength <= services.limits.listenerBytes) {
        write(JSON.stringify(line));
      }
    },
    fail(error) {
      if (isBug(error)) services.report(error);
      write(`{"error":${errorAnswer(error).body}}`);
    },
    end: () => void out.end(),
  };
}

/** What is sent for an error: RFC 9457, with the error code. Foreign errors are hidden: they may quote anything. */
function errorAnswer(error: unknown): StoredAnswer {
  const {
    code,
    details,
    message: detail,
  } = findOurs(error) ?? new SallyportError("internal_error");
  const { status, retry, summary: title } = ERRORS[code];
  const type = `urn:sallyport:error:${code}`;
  return { status, body: JSON.stringify({ type, title, status, code, retry, detail, details }) };
}

/** True for internal errors that a sender cannot act on. */
function isBug(error: unknown): boolean {
  return findOurs(error) === undefined;
}

function findOurs(error: unknown): SallyportError | undefined {
  for (let link = error, hops = 0; link instanceof Error && hops < 16; hops += 1) {
    if (link instanceof SallyportError) return link;
    link = link.cause;
  }
  return undefined;
}

/** Query values are text; the schema says which are numbers and lists. */
function queryInput(route: Route, query: Readonly<Record<string, string[]>>): JsonObject {
  const input: JsonObject = {};
  for (const [field, texts] of Object.entries(query)) {
    const schema = Object.hasOwn(route.input.shape, field) ? route.input.shape[field] : undefined;
    input[field] = queryValue(schema, texts);
  }
  return input;
}

function queryValue(schema: z.core.$ZodType | undefined, texts: readonly string[]): JsonValue {
  const type = schema === undefined ? "string" : innerType(schema);
  if (type === "array") return [...texts];
  const [text = ""] = texts;
  if (texts.length > 1) throw invalid("query", "Give each name in the query once.");
  if (type === "number" && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}

function innerType(schema: z.core.$ZodType): string {
  const { def } = schema._zod;
  const inner = (def as { innerType?: z.core.$ZodType }).innerType;
  return inner === undefined ? def.type : innerType(inner);
}

/** Path, query or body as one checked value. Throws invalid_input with the location of the error, never with the value. */
function checkedInput(
  route: Route,
  params: Readonly<Record<string, string>>,
  rest: JsonObject,
): Record<string, unknown> {
  const twice = Object.keys(params).find((param) => Object.hasOwn(rest, param));
  if (twice !== undefined) throw invalid(twice, `Say ${twice} in the path only.`);
  const result = route.input.safeParse({ ...rest, ...params });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = issue?.path.map(String).join(".") || "input";
  throw invalid(where.slice(0, 200), hintOf(issue));
}

/** zod's messages are used where they name only types and limits. */
function hintOf(issue: z.core.$ZodIssue | undefined): string {
  if (issue === undefined) return "The input is invalid.";
  if (issue.code === "unrecognized_keys") {
    const keys = issue.keys.slice(0, 5).map((key) => JSON.stringify(key.slice(0, 60)));
    return `Unknown fields: ${keys.join(", ")}. Leave them out.`;
  }
  return `${issue.message}.`;
}

function invalid(what: string, hint: string): SallyportError {
  return new SallyportError("invalid_input", { what, hint });
}

interface BodyLimits {
  readonly bodyBytes: number;
  readonly bodyMs: number;
}

/**
 * The JSON object in a request's body, {} for none. Counted while it is received and aborted as soon as it is too large or too
 * slow; parsed once, strictly. Throws payload_too_large, invalid_json, invalid_input.
 */
async function readBody(
  request: IncomingMessage,
  limits: BodyLimits,
  timers: Timers,
): Promise<JsonObject> {
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > limits.bodyBytes) throw tooLarge(limits.bodyBytes);
  const bytes = await readBytes(request, limits, timers);
  if (bytes.length === 0) return {};
  const type = request.headers["content-type"] ?? "";
  // This also blocks HTML forms of other pages: forms cannot send this type.
  if (!/^application\/json(?:\s*;\s*charset=utf-8)?$/i.test(type)) {
    throw invalid("content-type", "Send the body as application/json.");
  }
  const value = parseJson(bytes, { maxBytes: limits.bodyBytes });
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalid("body", "Send one JSON object.");
  }
  return value;
}

/** The body as it was sent, for a signature over its bytes. */
export function readRaw(
  request: IncomingMessage,
  limits: BodyLimits,
  timers: Timers,
): Promise<Buffer> {
  return readBytes(request, limits, timers);
}

/** The body of a form, as text. */
export async function readForm(
  request: IncomingMessage,
  limits: BodyLimits,
  timers: Timers,
): Promise<URLSearchParams> {
  return new URLSearchParams((await readBytes(request, limits, timers)).toString("utf8"));
}

function readBytes(request: IncomingMessage, limits: BodyLimits, timers: Timers): Promise<Buffer> {
  const { bodyBytes, bodyMs } = limits;
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  const stopWaiting = timers.after(bodyMs, () => {
    fail(invalid("body", `Send the whole body within ${bodyMs} ms.`));
  });
  function fail(error: Error): void {
    stopWaiting();
    request.removeAllListeners("data");
    reject(error);
  }
  request.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > bodyBytes) fail(tooLarge(bodyBytes));
    else chunks.push(chunk);
  });
  request.on("end", () => {
    stopWaiting();
    resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
  });
  const cutOff = () => fail(invalid("body", "The body ended too early. Send the request again."));
  request.on("error", cutOff);
  request.on("close", () => {
    if (!request.complete) cutOff();
  });
  return promise;
}

function tooLarge(limit: number): SallyportError {
  const hint = "Send less, or a reference to the data instead of the data.";
  return new SallyportError("payload_too_large", { limit, hint });
}

/** A key as its sender wrote it; empty for none. Throws invalid_input. */
function readKey(header: string | undefined): string {
  if (header === undefined) return "";
  if (/^[\x21-\x7e]{1,255}$/.test(header)) return header;
  throw invalid("Idempotency-Key", "An Idempotency-Key is 1 to 255 visible ASCII characters.");
}

interface Attempt {
  /** What is sent. */
  readonly answer: StoredAnswer;
  /** What is stored for the key, if different. */
  readonly kept?: StoredAnswer;
}

/**
 * Executes a request once for its key. Throws key_reused when the key was used with other content, still_running while
 * it is in progress. A failure that wrote nothing is not stored.
 */
async function once(
  call: Call,
  { route, ifCutOff }: { readonly route: string; readonly ifCutOff: "again" | "ask" },
  content: JsonValue,
  work: () => Promise<Attempt>,
): Promise<StoredAnswer & { readonly replayed: boolean }> {
  const { store, identity, services, key } = call;
  const { subject: actor } = identity;
  const id = sha256Hex(canonicalJson([actor, key]));
  const contentHash = sha256Hex(canonicalJson([route, content]));
  const { keyLeaseMs: leaseMs, keyKeepMs: keepMs } = services.limits;
  const begun = await store.httpKeys.begin({ id, route, contentHash, actor }, { leaseMs, keepMs });
  switch (begun.found) {
    case "answer":
      services.metrics.replayed();
      return { ...begun.answer, replayed: true };
    case "other_content":
      throw new SallyportError("key_reused", { hint: "Use a new key for a new request." });
    case "running":
      throw new SallyportError("still_running", {
        hint: "Send the same request again in a moment.",
      });
    case "nothing":
      break;
  }
  // A short, renewed lease: a retry does not wait long for a dead process, and never overtakes a slow one.
  const stopRenewing = renewEvery(leaseMs / 3, services.timers, () =>
    store.httpKeys.renew(id, begun.fence, leaseMs, actor),
  );
  const doing = begun.again && ifCutOff === "ask" ? { answer: errorAnswer(cutOff()) } : work();
  const { answer, kept = answer } = await Promise.resolve<Attempt>(doing).finally(stopRenewing);
  if (isWorthRepeating(answer)) await store.httpKeys.forget(id, begun.fence, actor);
  else await store.httpKeys.answer(id, begun.fence, kept, actor);
  return { ...answer, replayed: false };
}

function cutOff(): SallyportError {
  const hint =
    "The first request with this key was interrupted. Check whether it took effect before you send it with a new key.";
  return new SallyportError("outcome_unknown", { hint });
}

function isWorthRepeating({ status, body }: StoredAnswer): boolean {
  if (status < 500 && status !== 409 && status !== 429) return false;
  const { retry } = JSON.parse(body) as { retry?: string };
  return retry === "safe" || retry === "later";
}
