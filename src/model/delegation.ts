import type { SessionId } from "./decision.ts";
import { data, flag, instant, integer, key, oneOf, prose, text } from "./field.ts";
import type { CompletionPromise } from "./promise.ts";
import { type RecordOf, record } from "./record.ts";

/** What a sub-agent is sent out for. */
export const ROLES = ["research", "doc", "code", "review", "verify"] as const;
export type Role = (typeof ROLES)[number];

/** What a sub-agent may write. Reading is a matter of its tools and of the permission check. */
export const WRITE_PERMISSIONS = [
  "none",
  "documents-and-artefact",
  "plan-approved-files",
  "evidence-through-tool",
] as const;
export type WritePermission = (typeof WRITE_PERMISSIONS)[number];

export const DEFAULT_PERMISSION = {
  research: "none",
  doc: "documents-and-artefact",
  code: "plan-approved-files",
  review: "none",
  verify: "evidence-through-tool",
} as const satisfies Record<Role, WritePermission>;

/** Verify may leave evidence through its tool, but touches no file: it may work beside others. */
export const READ_ONLY_ROLES: readonly Role[] = ["research", "review", "verify"];

export function isReadOnlyRole(role: Role): boolean {
  return READ_ONLY_ROLES.includes(role);
}

export function isRole(name: unknown): name is Role {
  return typeof name === "string" && (ROLES as readonly string[]).includes(name);
}

/** The life of a delegation. `revoked` stops everything below it too; time that is over needs no state of its own. */
export const DELEGATION_MOVES = {
  active: ["reported", "failed", "revoked"],
  reported: [],
  failed: [],
  revoked: [],
} as const satisfies Record<string, readonly string[]>;
export type DelegationState = keyof typeof DELEGATION_MOVES;

export const DELEGATION_STATES = Object.keys(DELEGATION_MOVES) as readonly DelegationState[];

/** The id of a delegation is the id of the sub-agent's session: whoever knows the session knows what binds it. */
export type DelegationId = `dlg-${string}`;

const PREFIX = "dlg-";

/** True for the session of a sub-agent. The name alone tells, so no path can forget to ask. */
export function isDelegated(sessionId: SessionId): sessionId is DelegationId {
  return sessionId.startsWith(PREFIX);
}

export function delegationId(unique: string): DelegationId {
  return `${PREFIX}${unique}`;
}

/** What was handed to a sub-agent; the key is its session id. Checked again after reading: a changed row binds nobody less. */
export const DELEGATIONS = record(
  "delegations",
  {
    id: key<DelegationId>(),
    parentSession: text<SessionId>(),
    rootSession: text<SessionId>(),
    /** The run it belongs to, empty for none. */
    runId: text(),
    traceId: text(),
    promiseId: text(),
    state: oneOf(DELEGATION_STATES),
    /** The delegations it hangs on, the root's first, itself last. All of them must be active. */
    chain: data<readonly DelegationId[]>({ check: Array.isArray }),
    /** The sub-agent, then whoever delegated to it, up to the root. */
    agents: data<readonly string[]>(),
    /** The person on whose behalf all of them act; empty when nobody was named. */
    owner: text(),
    task: prose(),
    /** Everything the sub-agent is told. */
    capsule: prose(),
    promise: data<CompletionPromise>(),
    /** What it may do: where it may write, what it may call, how much, how long. It only shrinks downwards. */
    scope: {
      planId: text(),
      role: oneOf(ROLES),
      writePermission: oneOf(WRITE_PERMISSIONS),
      /** Absolute paths, and ids of other resources, such as `sql:shop/orders`. */
      planFiles: data<readonly string[]>().packedIn("scope"),
      /** Absolute paths of documents, and of folders that hold nothing else. */
      documents: data<readonly string[]>().packedIn("scope"),
      /** Absolute path of the artefact of the phase in which it was handed over; empty for none. */
      artefact: prose().packedIn("scope"),
      /** Names of tools, `files.*` for all of a family, `*` for all. */
      tools: data<readonly string[]>().packedIn("scope"),
      /** How many levels it may delegate further; 0 for none. */
      depth: integer().packedIn("scope"),
      /** How many calls it may still carry out, those of everybody below it included. */
      calls: integer(0).as("calls_left"),
      expiresAt: instant(),
    },
    workingDirectory: prose(),
    tokenHash: text(),
    /** What came back, cut to its limit. */
    output: prose().optional(""),
    /** Undefined until it has reported. */
    promiseMet: flag().optional(),
    /** Why it failed or was revoked. */
    reason: prose().optional(""),
    createdAt: instant(),
    updatedAt: instant(),
  },
  {
    indexes: [
      { name: "by_parent", on: ["parent_session", "ord"] },
      { name: "by_root", on: ["root_session", "ord"] },
      { name: "by_state", on: ["state", "ord"] },
    ],
    check: ({ id, chain }) => (chain.at(-1) === id ? undefined : "chain"),
  },
);
export type Delegation = Omit<RecordOf<typeof DELEGATIONS>, "promiseId">;
export type Scope = Delegation["scope"];

/** Places for children beside each other. A parent has a few, and a child needs one, so no race gives it more children. */
export const DELEGATION_SLOTS = record(
  "delegation_slots",
  { id: key(), parentSession: text<SessionId>(), childId: text(), updatedAt: instant() },
  { indexes: [{ name: "by_parent", on: ["parent_session", "ord"] }] },
);

/**
 * The delegations that bind somebody who takes back what was done under this one: a sub-agent is bound by its own and all
 * above it, whoever is above only by those above themselves, and a root or anybody from outside by none.
 */
export function boundTo(
  { chain, agents }: Pick<Delegation, "chain" | "agents">,
  by: string,
): readonly DelegationId[] {
  const at = agents.indexOf(by);
  return at < 0 || at >= chain.length ? [] : chain.slice(0, chain.length - at);
}
