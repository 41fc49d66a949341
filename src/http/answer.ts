import type { IncomingMessage } from "node:http";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import {
  ERRORS,
  type ErrorCode,
  type ErrorDetails,
  isSallyportError,
  SallyportError,
} from "../model/errors.ts";
import { isName } from "../model/names.ts";
import { stopwatch } from "../util/clock.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { checkFresh, type Signed } from "./authenticate.ts";
import { errorAnswer, once, readKey } from "./idempotency.ts";
import { type Path, pathOf, type RouteName } from "./paths.ts";
import { checkedInput, queryInput, readBody } from "./read-input.ts";
import {
  type Call,
  type HttpContext,
  type JsonRoute,
  type RawRoute,
  type RecordKind,
  type Route,
  type Rule,
  scopeOf,
} from "./route.ts";
import type { Services } from "./services.ts";
import { maySee, notFound } from "./session-book.ts";

type Handler = (context: HttpContext) => Promise<Response>;

/** One route as the router calls it: authenticate, authorize, check the input, then run the route's code. */
export function handlerOf(name: RouteName, route: Route, services: Services): Handler {
  const place = pathOf(name);
  return async (context) => {
    const start = stopwatch.now();
    let status = 500;
    try {
      const response =
        route.kind === "open"
          ? await route.handle(await inputOf(place, route, context, services), context, services)
          : await guarded(name, place, route, context, services);
      status = response.status;
      return response;
    } catch (error) {
      const response = problem(context, error, services);
      status = response.status;
      return response;
    } finally {
      services.metrics.request(name, status, (stopwatch.now() - start) / 1_000);
    }
  };
}

async function guarded(
  name: RouteName,
  place: Path,
  route: JsonRoute | RawRoute,
  context: HttpContext,
  services: Services,
): Promise<Response> {
  const { incoming } = context.env;
  const signed = await identified(context, services);
  const scope = scopeOf(route.rule, signed.token);
  if (scope === undefined) throw notAllowed(name);
  checkPerson(name, route.rule, signed);
  if ("roles" in route.rule && route.rule.freshSignIn === true) checkFresh(signed, services);
  const leave = enter(route.lane, signed.token, services);
  try {
    const input = await inputOf(place, route, context, services);
    const call = callOf(signed, scope, incoming, services);
    await checkOwner(route.of, input, call);
    if (route.kind === "raw") return await route.handle(input, context, call);
    return await answered(name, route, input, context, call);
  } finally {
    leave();
  }
}

/** Authenticates, and assigns the connection to the sender. */
async function identified(context: HttpContext, services: Services): Promise<Signed> {
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
    return json(context, route.status, textOf(name, route, await route.handle(input, call), call));
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
  return json(context, done.status, done.body);
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
  incoming: IncomingMessage,
  services: Services,
): Call {
  const { token: identity } = signed;
  const { tenant, subject } = identity;
  const gate = services.gates[tenant];
  if (gate === undefined) throw new SallyportError("unauthenticated");
  const header = incoming.headers["idempotency-key"];
  return {
    identity,
    signed,
    gate,
    store: services.store.tenant(tenant),
    own: scope === "own" ? subject : undefined,
    services,
    key: readKey(typeof header === "string" ? header : undefined),
  };
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
  of: "decision" | "interaction" | "operation",
  id: string,
  { gate }: Call,
): Promise<string> {
  try {
    const room = {
      decision: gate.decisions,
      interaction: gate.interactions,
      operation: gate.operations,
    };
    return (await room[of].get(id)).sessionId;
  } catch (error) {
    if (error instanceof SallyportError && error.code === "not_found") throw notFound(id);
    throw error;
  }
}

/** Approvals and rules need a person; a token can be copied, passed on, or made by an admin. */
function checkPerson(route: string, rule: Rule, { token }: Signed): void {
  if ("anyone" in rule || rule.person !== true || token.kind === "session") return;
  const hint =
    "A token never decides or administers. Sign in with a link: in the console, or on the command line with --link.";
  throw new SallyportError("not_allowed", { route, hint });
}

/**
 * Concurrent requests of agents are limited; people and the kill switch never wait behind them. A flood
 * of one agent or one tenant is refused before it affects others.
 */
function enter(
  lane: "people" | "agents",
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
  const { status, body } = errorAnswer(error);
  if (status === 401) {
    services.metrics.refusedSignIn();
    context.header("WWW-Authenticate", 'Bearer realm="sallyport"');
  }
  if (status === 503 || status === 429) context.header("Retry-After", "1");
  // The rest of an unread body must not be taken for the next request.
  if (!context.env.incoming.complete) context.header("Connection", "close");
  return send(context, status, "application/problem+json", body);
}

function json(context: HttpContext, status: number, body: string): Response {
  return send(
    context,
    status,
    status < 400 ? "application/json" : "application/problem+json",
    body,
  );
}

function send(context: HttpContext, status: number, type: string, body: string): Response {
  return context.body(body, status as ContentfulStatusCode, {
    "Content-Type": type,
    "Cache-Control": "no-store",
  });
}

function notAllowed(route: string): SallyportError {
  const hint = "Your role does not include this; ask someone whose role does.";
  return new SallyportError("not_allowed", { route, hint });
}

/** RFC 9457, with the error code. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ErrorCode;
  readonly retry: string;
  readonly detail: string;
  readonly details: ErrorDetails;
}

/** What a sender learns about an error. Foreign errors are hidden: they may quote anything. */
export function problemOf(error: unknown): Problem {
  const ours = findOurs(error) ?? new SallyportError("internal_error");
  const { code, details, message } = ours;
  const { status, retry, summary } = ERRORS[code];
  return {
    type: `urn:sallyport:error:${code}`,
    title: summary,
    status,
    code,
    retry,
    detail: message,
    details,
  };
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
