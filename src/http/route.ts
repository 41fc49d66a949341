import type { HttpBindings } from "@hono/node-server";
import type { Context as HonoContext } from "hono";
import type { z } from "zod";
import type { VerifyOptions } from "../audit/verify.ts";
import type { Gate } from "../gate/create-gate.ts";
import type { Session } from "../gate/session.ts";
import { decodeProposal, requestedBy } from "../gate/show.ts";
import type { Decision } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import type { Identity, Role, SessionRecord, Token } from "../model/identity.ts";
import { isName } from "../model/names.ts";
import type { Operation } from "../model/operation.ts";
import type { NotifyChannel } from "../notify/index.ts";
import type { Store, TenantStore } from "../store/store.ts";
import type { Clock } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import type { JsonObject } from "../util/json.ts";
import type { Random } from "../util/random.ts";
import type { Timers } from "../util/timers.ts";
import type { Authenticator, Door, OriginCheck, Signed } from "./authenticate.ts";
import type {
  ConnectionLimits,
  Connections,
  Rate,
  StreamLimits,
  Streams,
  TaskQuota,
  TaskQuotaLimits,
  Turnstile,
} from "./connections.ts";
import type { Feeds } from "./feeds.ts";
import type { Metrics } from "./metrics.ts";
import type { ServedFlow } from "./routes/conversations.ts";
import type { SignInWithOidc } from "./sign-in.ts";
import { idCursor } from "./wire.ts";

export type HttpContext = HonoContext<{ Bindings: HttpBindings }>;

/** What a handler knows besides its input. The actor is always the subject of the verified token. */
export interface Call {
  readonly identity: Token;
  /** The subject of the identity: who acts. */
  readonly by: string;
  readonly signed: Signed;
  readonly gate: Gate;
  readonly store: TenantStore;
  /** Set when only the records of this subject may be shown. */
  readonly own: string | undefined;
  readonly services: Services;
  /** The sender's idempotency key, empty for none. */
  readonly key: string;
  /** Aborted when the sender hangs up before the answer. */
  readonly gone: AbortSignal;
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
  readonly rule: AccessRule;
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
  readonly lane: RequestLane;
  /** The part of the answer that may be stored for its key: not a secret that is shown once. */
  readonly toKeep?: (answer: z.output<Answer>) => z.output<Answer>;
  handle(input: z.output<Input>, call: Call): Promise<z.output<Answer>>;
}

/** A route whose answer is not one JSON value: a stream, a page, a text. */
export interface RawRoute<Input extends z.ZodObject = z.ZodObject> {
  readonly kind: "raw";
  readonly summary: string;
  readonly rule: AccessRule;
  readonly of: RecordKind;
  readonly input: Input;
  readonly contentType: string;
  readonly lane: RequestLane;
  handle(input: z.output<Input>, context: HttpContext, call: Call): Promise<Response>;
}

/** A route without authentication: the rule says why that is right. */
export interface OpenRoute<Input extends z.ZodObject = z.ZodObject> {
  readonly kind: "open";
  readonly summary: string;
  readonly rule: Extract<AccessRule, { anyone: string }>;
  readonly input: Input;
  readonly contentType: string;
  handle(input: z.output<Input>, context: HttpContext, services: Services): Promise<Response>;
}

export type Route = JsonRoute | RawRoute | OpenRoute;

/** `people` is served even when there are too many requests: people and the kill switch do not wait behind agents. */
export type RequestLane = "people" | "agents";

type Chosen = "status" | "keys" | "lane" | "ifCutOff";

/** `rule` and `of` have no default: a route without authorization does not compile. */
export function jsonRoute<Input extends z.ZodObject, Answer extends z.ZodType>(
  route: Omit<JsonRoute<Input, Answer>, "kind" | Chosen> & Partial<Pick<JsonRoute, Chosen>>,
): JsonRoute<Input, Answer> {
  return { kind: "json", status: 200, keys: "kept", lane: "agents", ifCutOff: "again", ...route };
}

/** Who may use a route, which record it is about, and whether it is served when agents already use their share. */
export function access(rule: keyof typeof RULES, of: RecordKind, lane: RequestLane = "agents") {
  return { rule: RULES[rule], of, lane };
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
export type AccessRule =
  | {
      readonly roles: Readonly<Partial<Record<Role, AccessScope>>>;
      /** Counts only from a person's own session: a bearer token, whatever its roles, is refused. */
      readonly person?: true;
      /** The person must have signed in within `signIn.freshMs`. */
      readonly freshSignIn?: true;
    }
  | { readonly anyone: Reason };

export type AccessScope = "own" | "tenant";
/** Why no sign-in is needed. */
type Reason = string;

/** Which record a route is about, so that ownership is checked in one place. `list`: the route filters its own result. */
export type RecordKind =
  | "session"
  | "decision"
  | "interaction"
  | "operation"
  | "delegation"
  | "list"
  | "none";

/** The widest scope that one of the roles gives, undefined when none does. */
export function scopeOf(
  rule: AccessRule,
  { roles }: Pick<Identity, "roles">,
): AccessScope | undefined {
  if ("anyone" in rule) return "tenant";
  const scopes = roles.map((role) => rule.roles[role]);
  return scopes.includes("tenant") ? "tenant" : scopes.find((scope) => scope !== undefined);
}

const PEOPLE = {
  reviewer: "tenant",
  operator: "tenant",
  auditor: "tenant",
  admin: "tenant",
} as const satisfies Partial<Record<Role, AccessScope>>;
const READERS = { ...PEOPLE, local: "tenant" } as const satisfies Partial<
  Record<Role, AccessScope>
>;

/**
 * The rows of the table of duties, each under its name. Only a reviewer decides, and only in a session of their own; an agent
 * only sees its own records. What a bearer token may do is every row without `person`: propose, read, undo, work, check the
 * trail, stop and resume, and tighten.
 */
export const RULES = {
  everybody: { roles: { agent: "tenant", ...READERS } },
  propose: { roles: { agent: "own", operator: "own" } },
  read: { roles: { agent: "own", ...READERS } },
  /** What was done and what is asked, for everyone but agents. */
  readAll: { roles: READERS },
  /** Approving something irreversible also needs a recent sign-in: the routes check that, because it depends on the record. */
  decide: { roles: { reviewer: "tenant" }, person: true },
  /** Overriding a finding loosens a session, as a rule would. */
  override: { roles: { reviewer: "tenant" }, person: true, freshSignIn: true },
  /** Unknown outcomes and tools that failed: reviewers know what was meant, operators what happened. */
  settle: { roles: { reviewer: "tenant", operator: "tenant" }, person: true },
  pass: { roles: { reviewer: "tenant", operator: "tenant" }, person: true },
  undo: { roles: { agent: "own", operator: "tenant" } },
  /** A person undoes one call: an operator any, a reviewer what they approved themselves, for a while. The route checks that. */
  undoOwn: { roles: { reviewer: "tenant", operator: "tenant" }, person: true },
  /** External executors: an agent carries out what its own sessions asked for, an operator's program whatever is approved. */
  execute: { roles: { agent: "own", executor: "tenant", operator: "tenant" } },
  findWork: { roles: { executor: "tenant", operator: "tenant" } },
  /** A sub-agent over its own delegation: the subject of its token is the delegation. */
  workFor: { roles: { subagent: "own" } },
  delegate: { roles: { agent: "own", subagent: "own", operator: "own" } },
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
  /** Ending one's own sign-ins needs no recent one: a person who lost a device must be able to do it from any other. */
  ownSignIns: { roles: PEOPLE, person: true },
  /** A person's own sign-in on another device. */
  ownLink: { roles: PEOPLE, person: true, freshSignIn: true },
} as const satisfies Record<string, AccessRule>;

/** What the routes of one server share. */
export interface Services {
  readonly store: Store;
  /** By tenant. */
  readonly gates: Readonly<Record<string, Gate>>;
  /** The agent that holds conversations, by tenant. */
  readonly flows: Readonly<Record<string, ServedFlow>>;
  readonly authenticator: Authenticator;
  readonly origins: OriginCheck;
  readonly sessions: SessionBook;
  readonly feeds: Feeds;
  readonly metrics: Metrics;
  readonly connections: Connections;
  readonly streams: Streams;
  readonly door: Door;
  readonly taskQuota: TaskQuota;
  readonly turnstiles: { readonly senders: Turnstile; readonly tenants: Turnstile };
  readonly oidc: SignInWithOidc | undefined;
  readonly notify: ServedChannels | undefined;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly limits: HttpLimits;
  /** What a verification of the trail is compared with. */
  readonly audit: Pick<VerifyOptions, "anchors" | "publicKeys">;
  readonly signIn: SignInTerms;
  openapi(): Record<string, unknown>;
  /** False once the server is closing. */
  isOpen(): boolean;
  report(error: unknown): void;
}

/** Channels whose receivers answer: buttons in Slack. */
export interface ServedChannels {
  readonly tenant: string;
  readonly channels: Readonly<Record<string, NotifyChannel>>;
}

export interface HttpLimits {
  readonly bodyBytes: number;
  /** How long receiving a body may take. */
  readonly bodyMs: number;
  /** How long a keyed request may be silent before it counts as interrupted. */
  readonly keyLeaseMs: number;
  readonly keyKeepMs: number;
  /** Concurrent requests of agents; more are refused and may be repeated. */
  readonly inFlight: number;
  /** Rate limit of one sender; more is refused and may be repeated. */
  readonly senderRate: Rate;
  /** Rate limit of all agents of a tenant together, so that they do not slow down other tenants. */
  readonly tenantRate: Rate;
  /** How many unknown tokens of one address are looked up; more are refused and may be repeated. */
  readonly strangerRate: Rate;
  readonly connections: ConnectionLimits;
  readonly streams: StreamLimits;
  /** Limit of unfinished tasks that one sender added. */
  readonly openTasks: TaskQuotaLimits;
  readonly heartbeatMs: number;
  /** How much may be buffered for a slow listener before it is disconnected; it resumes where it was. */
  readonly listenerBytes: number;
}

export interface SignInTerms {
  readonly cookie: string;
  readonly sessionMs: number;
  readonly linkMs: number;
  /** How long an invitation may wait to be confirmed, and its link to be used. */
  readonly inviteMs: number;
  /** The longest life that a program's token may be given. */
  readonly tokenMs: number;
  /**
   * How recent a sign-in must be to approve something irreversible, to propose or confirm rules, and to administer. Other
   * decisions need a live session.
   */
  readonly freshMs: number;
  /** Default roles of a signed-in person. */
  readonly roles: readonly Role[];
}

export type SessionBook = ReturnType<typeof createSessionBook>;

const MOST_REMEMBERED = 10_000;

/** The owner of a session never changes, so it is cached. */
export function createSessionBook() {
  const known = new Map<string, SessionRecord>();
  return {
    async peek({ store }: Pick<Call, "store">, id: string): Promise<SessionRecord | undefined> {
      const key = JSON.stringify([store.tenant, id]);
      const before = known.get(key);
      if (before !== undefined) return before;
      const record = await store.sessions.peek(id);
      if (record === undefined) return undefined;
      if (known.size >= MOST_REMEMBERED) known.clear();
      known.set(key, record);
      return record;
    },
  };
}

/** True if the caller may see this session's records. */
export async function maySee(call: Call, sessionId: string): Promise<boolean> {
  if (call.own === undefined) return true;
  if (call.identity.roles.includes("subagent")) return call.own === sessionId;
  return (await call.services.sessions.peek(call, sessionId))?.agent === call.own;
}

/** The same answer for another owner's, another tenant's and a missing session, so that nothing is revealed. */
export function notFound(id: string): SallyportError {
  const hint = "Check the id; records of others are reported as missing too.";
  return new SallyportError("not_found", { id, hint });
}

/** The session that a list is filtered by. Callers limited to their own sessions must name one. */
export async function narrowed(
  call: Call,
  sessionId: string | undefined,
  field = "sessionId",
): Promise<string | undefined> {
  if (call.own === undefined) return sessionId;
  if (sessionId === undefined) {
    const hint = `Name one of your sessions with \`${field}\`.`;
    throw new SallyportError("invalid_input", { what: field, hint });
  }
  if (!(await maySee(call, sessionId))) throw notFound(sessionId);
  return sessionId;
}

/**
 * The session as the gate has it. Operators also reach sessions opened inside the program. Its folder must still
 * be one that the operator lists; a rollback has the folders of the calls that it undoes. Throws not_allowed.
 */
export async function gateSession(
  call: Call,
  id: string,
  use: "work" | "rollback" = "work",
): Promise<Session> {
  const record = await call.services.sessions.peek(call, id);
  const { agent = "unknown", owner = "", workingDirectory: asked = "" } = record ?? {};
  const known = record?.metadata ?? "";
  const metadata = known === "" ? {} : { metadata: JSON.parse(known) as JsonObject };
  const workingDirectory = use === "rollback" ? "" : await call.gate.sessions.folderFor(asked);
  const { claim } = record ?? {};
  return call.gate.sessions.open({
    id,
    agent,
    owner,
    workingDirectory,
    ...metadata,
    ...definedFields({ claim }),
  });
}

/** A session as lists show it. */
type KnownSession = Omit<SessionRecord, "ord" | "claim" | "metadata"> &
  Partial<Pick<SessionRecord, "claim">>;

/** How many decisions, and how many bytes of them, one page scans. A page may be short although there are more. */
const LOOKED_AT = 500;
const LOOKED_AT_BYTES = 8 * 1024 * 1024;
/** Each may hold a megabyte, so they are read in parts. */
const PART = 16;

/** Cursor of the second part of the list: no decision has this id. */
export const SECOND_PART = "0";

/**
 * Sessions that a program opened directly are not stored; they are found by their decisions, each by its
 * first decision since then.
 */
export async function askingSessions(
  call: Call,
  {
    after,
    since,
    limit,
  }: { readonly after: string; readonly since?: string; readonly limit: number },
): Promise<{ items: readonly KnownSession[]; next: string | null }> {
  const { gate, services } = call;
  const window = definedFields({ since });
  const items: KnownSession[] = [];
  const seen = new Set<string>();
  let last = after === SECOND_PART ? undefined : after;
  for (let [count, bytes] = [0, 0]; count < LOOKED_AT && bytes < LOOKED_AT_BYTES; ) {
    const place = definedFields({ after: last });
    const decisions = await gate.decisions.list({ ...window, ...place, limit: PART });
    for (const decision of decisions) {
      const { id, sessionId, diff } = decision;
      [last, count, bytes] = [id, count + 1, bytes + diff.raw.byteLength];
      if (seen.has(sessionId)) continue;
      seen.add(sessionId);
      if ((await services.sessions.peek(call, sessionId)) !== undefined) continue;
      const [first] = await gate.decisions.list({ ...window, sessionId, limit: 1 });
      if (first?.id !== id) continue;
      items.push(sessionOfDecision(decision));
      if (items.length >= limit) return { items, next: idCursor(id) };
    }
    if (decisions.length < PART) return { items, next: null };
    await new Promise<void>((resolve) => services.timers.soon(resolve));
  }
  return { items, next: last === undefined ? null : idCursor(last) };
}

/** One session, from what is stored of it; undefined if nothing is. */
export async function findSession(call: Call, id: string): Promise<KnownSession | undefined> {
  if (!isName(id)) return undefined;
  const opened = await call.services.sessions.peek(call, id);
  if (opened !== undefined || call.own !== undefined) return opened;
  const [decision] = await call.gate.decisions.list({ sessionId: id, limit: 1 });
  if (decision !== undefined) return sessionOfDecision(decision);
  const { operations } = await call.gate.operations.listNewest(id, { limit: 1 });
  const [operation] = operations;
  return operation === undefined ? undefined : sessionOfOperation(operation);
}

function sessionOfDecision(decision: Decision): KnownSession {
  const { sessionId: id, createdAt } = decision;
  const { chain, owner } = requestedBy(decision);
  const agent = chain[0] ?? "unknown";
  return { id, agent, owner, workingDirectory: folderOf(decision), createdAt };
}

function folderOf(decision: Decision): string {
  try {
    return decodeProposal(decision).calls[0]?.workingDirectory ?? "";
  } catch {
    // Staged by another platform: it has no folder.
    return "";
  }
}

function sessionOfOperation({
  sessionId,
  chain,
  workingDirectory,
  createdAt,
}: Operation): KnownSession {
  return { id: sessionId, agent: chain[0] ?? "unknown", owner: "", workingDirectory, createdAt };
}
