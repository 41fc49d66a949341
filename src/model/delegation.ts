import type { SessionId } from "./decision.ts";
import type { Instant } from "./names.ts";
import type { CompletionPromise } from "./promise.ts";

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

export function isWritePermission(name: unknown): name is WritePermission {
  return typeof name === "string" && (WRITE_PERMISSIONS as readonly string[]).includes(name);
}

/** The life of a delegation. `revoked` stops everything below it too; time that is over needs no state of its own. */
export const DELEGATION_MOVES = {
  active: ["reported", "failed", "revoked"],
  reported: [],
  failed: [],
  revoked: [],
} as const satisfies Record<string, readonly string[]>;
export type DelegationState = keyof typeof DELEGATION_MOVES;

export function isDelegationState(name: unknown): name is DelegationState {
  return typeof name === "string" && Object.hasOwn(DELEGATION_MOVES, name);
}

/** Of what was handed over: where the sub-agent may write, what it may call, how much, how long. It only shrinks downwards. */
export interface Scope {
  readonly planId: string;
  readonly role: Role;
  readonly writePermission: WritePermission;
  /** Absolute paths, and ids of other resources, such as `sql:shop/orders`. */
  readonly planFiles: readonly string[];
  /** Absolute paths of documents, and of folders that hold nothing else. */
  readonly documents: readonly string[];
  /** Absolute path of the artefact of the phase in which it was handed over; empty for none. */
  readonly artefact: string;
  /** Names of tools, `files.*` for all of a family, `*` for all. */
  readonly tools: readonly string[];
  /** How many calls it may still carry out, those of everybody below it included. */
  readonly calls: number;
  readonly expiresAt: Instant;
  /** How many levels it may delegate further; 0 for none. */
  readonly depth: number;
}

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

export interface Delegation {
  readonly id: DelegationId;
  readonly state: DelegationState;
  /** The delegations it hangs on, the root's first, itself last. All of them must be active. */
  readonly chain: readonly DelegationId[];
  /** The sub-agent, then whoever delegated to it, up to the root. */
  readonly agents: readonly string[];
  /** The person on whose behalf all of them act; empty when nobody was named. */
  readonly owner: string;
  readonly parentSession: SessionId;
  readonly rootSession: SessionId;
  /** The run it belongs to, empty for none. */
  readonly runId: string;
  readonly traceId: string;
  readonly task: string;
  /** Everything the sub-agent is told. */
  readonly capsule: string;
  readonly promise: CompletionPromise;
  readonly scope: Scope;
  readonly workingDirectory: string;
  readonly tokenHash: string;
  /** What came back, cut to its limit. */
  readonly output: string;
  /** Undefined until it has reported. */
  readonly promiseMet: boolean | undefined;
  /** Why it failed or was revoked. */
  readonly reason: string;
  readonly createdAt: Instant;
  readonly updatedAt: Instant;
}

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
