import type { HttpBindings } from "@hono/node-server";
import type { Context as HonoContext } from "hono";
import type { z } from "zod";
import type { TenantStore } from "../store/store.ts";
import type { Token } from "../store/tokens.ts";
import type { Signed } from "./authenticate.ts";
import type { RecordKind, Rule } from "./rule.ts";
import type { ServedPort, Services } from "./services.ts";

export type HttpContext = HonoContext<{ Bindings: HttpBindings }>;

/** What a handler knows beside its input. The subject of the verified token is the only name for who does it. */
export interface Call {
  readonly identity: Token;
  readonly signed: Signed;
  readonly port: ServedPort;
  readonly store: TenantStore;
  /** Set when only the records of this subject may be shown. */
  readonly own: string | undefined;
  readonly services: Services;
  /** The sender's idempotency key, empty for none. */
  readonly key: string;
}

/**
 * One route as data: who may use it, what goes in, what comes out, and the code between. Names in the path, query and body
 * are one input, so a route has one schema, a client call one object and a document one page.
 */
export interface JsonRoute<
  Input extends z.ZodObject = z.ZodObject,
  Answer extends z.ZodType = z.ZodType,
> {
  readonly kind: "json";
  readonly summary: string;
  readonly rule: Rule;
  readonly of: RecordKind;
  readonly input: Input;
  readonly answer: Answer;
  readonly status: 200 | 201;
  /**
   * What an idempotency key does here: `kept` stores the answer, `passed` hands the key on to the port, which has keys of its
   * own. Only for routes that change something.
   */
  readonly keys: "kept" | "passed";
  /** What to do when a kept request was cut off by a crash: most can be done again, because what they change refuses a second time. */
  readonly ifCutOff: "again" | "ask";
  /** Served even when there are too many requests: people and the kill switch do not wait behind agents. */
  readonly lane: "people" | "agents";
  /** What of an answer may be kept for its key: a secret that is shown once may not. */
  readonly toKeep?: (answer: z.output<Answer>) => z.output<Answer>;
  handle(input: z.output<Input>, call: Call): Promise<z.output<Answer>>;
}

/** A route that answers something else than one JSON value: a stream, a page, a text. */
export interface RawRoute<Input extends z.ZodObject = z.ZodObject> {
  readonly kind: "raw";
  readonly summary: string;
  readonly rule: Rule;
  readonly of: RecordKind;
  readonly input: Input;
  readonly contentType: string;
  readonly lane: "people" | "agents";
  handle(input: z.output<Input>, context: HttpContext, call: Call): Promise<Response>;
}

/** A route before anybody is known: the rule says why that is right. */
export interface OpenRoute<Input extends z.ZodObject = z.ZodObject> {
  readonly kind: "open";
  readonly summary: string;
  readonly rule: Extract<Rule, { anyone: string }>;
  readonly input: Input;
  readonly contentType: string;
  handle(input: z.output<Input>, context: HttpContext, services: Services): Promise<Response>;
}

export type Route = JsonRoute | RawRoute | OpenRoute;

type Chosen = "status" | "keys" | "lane" | "ifCutOff";

/** `rule` and `of` have no default: a route that does not say who may use it does not compile. */
export function jsonRoute<Input extends z.ZodObject, Answer extends z.ZodType>(
  route: Omit<JsonRoute<Input, Answer>, "kind" | Chosen> & Partial<Pick<JsonRoute, Chosen>>,
): JsonRoute<Input, Answer> {
  return { kind: "json", status: 200, keys: "kept", lane: "agents", ifCutOff: "again", ...route };
}

export function rawRoute<Input extends z.ZodObject>(
  route: Omit<RawRoute<Input>, "kind" | "lane"> & Partial<Pick<RawRoute, "lane">>,
): RawRoute<Input> {
  return { kind: "raw", lane: "people", ...route };
}

export function openRoute<Input extends z.ZodObject>(
  route: Omit<OpenRoute<Input>, "kind">,
): OpenRoute<Input> {
  return { kind: "open", ...route };
}
