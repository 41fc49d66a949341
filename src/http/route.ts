import type { HttpBindings } from "@hono/node-server";
import type { Context as HonoContext } from "hono";
import type { z } from "zod";
import type { Identity, Role, Token } from "../model/identity.ts";
import type { TenantStore } from "../store/store.ts";
import type { Signed } from "./authenticate.ts";
import type { ServedGate, Services } from "./services.ts";

export type HttpContext = HonoContext<{ Bindings: HttpBindings }>;

/** What a handler knows besides its input. The actor is always the subject of the verified token. */
export interface Call {
  readonly identity: Token;
  readonly signed: Signed;
  readonly gate: ServedGate;
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
   * What an idempotency key does here: `kept` stores the answer, `passed` forwards the key to the gate, which has its
   * own keys. Only for routes that change state.
   */
  readonly keys: "kept" | "passed";
  /** What to do after a crash during a kept request: most can be repeated, because their change refuses a second time. */
  readonly ifCutOff: "again" | "ask";
  /** Served even when there are too many requests: people and the kill switch do not wait behind agents. */
  readonly lane: "people" | "agents";
  /** The part of the answer that may be stored for its key: not a secret that is shown once. */
  readonly toKeep?: (answer: z.output<Answer>) => z.output<Answer>;
  handle(input: z.output<Input>, call: Call): Promise<z.output<Answer>>;
}

/** A route whose answer is not one JSON value: a stream, a page, a text. */
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

/** A route without authentication: the rule says why that is right. */
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

/** `rule` and `of` have no default: a route without authorization does not compile. */
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

/**
 * Who may use a route. A role that is not named may not. `own`: only records of sessions that this subject opened;
 * everything else is not_found. `tenant`: all records of the tenant.
 */
export type Rule =
  | {
      readonly roles: Readonly<Partial<Record<Role, Scope>>>;
      /** Counts only from a person's own session: a bearer token, whatever its roles, is refused. */
      readonly person?: true;
      /** The person must have signed in within `signIn.freshMs`. */
      readonly freshSignIn?: true;
    }
  | { readonly anyone: Reason };

export type Scope = "own" | "tenant";
/** Why no sign-in is needed. */
type Reason = string;

/** Which record a route is about, so that ownership is checked in one place. `list`: the route filters its own result. */
export type RecordKind = "session" | "decision" | "interaction" | "operation" | "list" | "none";

/** The widest scope that one of the roles gives, undefined when none does. */
export function scopeOf(rule: Rule, { roles }: Pick<Identity, "roles">): Scope | undefined {
  if ("anyone" in rule) return "tenant";
  const scopes = roles.map((role) => rule.roles[role]);
  return scopes.includes("tenant") ? "tenant" : scopes.find((scope) => scope !== undefined);
}

/**
 * The rows of the table of duties, each under its name. Only a reviewer decides, and only in a session of their own; an agent
 * only sees its own records. What a bearer token may do is every row without `person`: propose, read, undo, work, check the
 * trail, stop and resume, and tighten.
 */
export const RULES = {
  everybody: {
    roles: {
      agent: "tenant",
      reviewer: "tenant",
      operator: "tenant",
      auditor: "tenant",
      admin: "tenant",
      local: "tenant",
    },
  },
  propose: { roles: { agent: "own", operator: "own" } },
  read: {
    roles: {
      agent: "own",
      reviewer: "tenant",
      operator: "tenant",
      auditor: "tenant",
      admin: "tenant",
      local: "tenant",
    },
  },
  /** What was done and what is asked, for everyone but agents. */
  readAll: {
    roles: {
      reviewer: "tenant",
      operator: "tenant",
      auditor: "tenant",
      admin: "tenant",
      local: "tenant",
    },
  },
  /** Approving something irreversible also needs a recent sign-in: the routes check that, because it depends on the record. */
  decide: { roles: { reviewer: "tenant" }, person: true },
  /** Unknown outcomes: reviewers know what was meant, operators what happened. */
  settle: { roles: { reviewer: "tenant", operator: "tenant" }, person: true },
  pass: { roles: { reviewer: "tenant", operator: "tenant" }, person: true },
  undo: { roles: { agent: "own", operator: "tenant" } },
  work: { roles: { agent: "tenant", operator: "tenant" } },
  manageWork: { roles: { operator: "tenant" } },
  restoreReviewer: { roles: { operator: "tenant" }, person: true },
  checkAudit: {
    roles: { operator: "tenant", auditor: "tenant", admin: "tenant", local: "tenant" },
  },
  stop: { roles: { operator: "tenant", admin: "tenant", local: "tenant" } },
  /** Loosening a rule takes two people: one proposes, another admin confirms. Every reviewer may revoke it. */
  proposePolicy: { roles: { operator: "tenant" }, person: true, freshSignIn: true },
  tighten: { roles: { reviewer: "tenant", operator: "tenant", admin: "tenant" } },
  administer: { roles: { admin: "tenant" }, person: true, freshSignIn: true },
  /** Who has access: reading it needs no recent sign-in. */
  readAccess: { roles: { admin: "tenant" }, person: true },
  /** A person's own sign-in on another device. */
  ownLink: {
    roles: { reviewer: "tenant", operator: "tenant", auditor: "tenant", admin: "tenant" },
    person: true,
    freshSignIn: true,
  },
} as const satisfies Record<string, Rule>;
