import {
  data,
  either,
  instant,
  integer,
  key,
  names,
  oneOf,
  place,
  prose,
  type RecordOf,
  record,
  text,
} from "./record.ts";

/**
 * What an identity may do, as in docs/spec/threats.md. An agent only proposes, and only a reviewer approves. `local` is for
 * the command line on the server's own machine: it reads, stops and resumes, and never decides or administers.
 */
export const ROLES = [
  "agent",
  /** Works for one delegation, and its subject is that delegation: it can do nothing else. */
  "subagent",
  /** Carries out what was approved: it takes permits, renews and reports them, and reads nothing else. */
  "executor",
  "reviewer",
  "operator",
  "auditor",
  "admin",
  "local",
] as const;
export type Role = (typeof ROLES)[number];

export function isRole(name: unknown): name is Role {
  return (ROLES as readonly unknown[]).includes(name);
}

/** A sentence about roles that one identity must not have together, undefined when they fit. */
export function rolesProblem(roles: readonly Role[]): string | undefined {
  if (roles.length === 0) return "Give at least one role.";
  if (new Set(roles).size < roles.length) return "Name each role once.";
  if (roles.includes("agent") && roles.length > 1) {
    return "An agent has no other role: a program that proposes must not decide.";
  }
  if (roles.length > 1 && (roles.includes("subagent") || roles.includes("executor"))) {
    return "A sub-agent and an executor have no other role: each is for one thing.";
  }
  if (roles.includes("auditor") && roles.includes("admin")) {
    return "No one audits what they administer: give auditor and admin to different identities.";
  }
  return undefined;
}

/** `token` is for programs and people's tools, `session` is in a browser's cookie, `link` is good for one sign-in. */
export const TOKEN_KINDS = ["token", "session", "link"] as const;
export type TokenKind = (typeof TOKEN_KINDS)[number];

/** Who speaks. All of it comes from a verified token and nothing of it from a request. */
export interface Identity {
  readonly tenant: string;
  /** The name in the audit log: `agent:stock`, `person:ada`. */
  readonly subject: string;
  readonly roles: readonly Role[];
  /** On whose behalf an agent acts, or empty: they must not approve what it asks for. */
  readonly owner: string;
}

/** How each person has decided so far; the key is the person. Counts are since their first decision, misses since they were last restored. */
export const REVIEWERS = record("reviewers", {
  id: key(),
  /** Suspended: their yes does not count until an operator restores it. */
  status: oneOf(["trusted", "suspended"]),
  approved: integer(),
  rejected: integer(),
  /** Decoys they said no to, and decoys they let through. */
  caught: integer(),
  missed: integer(),
  /** Yeses since `hourAt`, for at most an hour. */
  hourCount: integer(),
  hourAt: instant(),
  updatedAt: instant(),
});
export type Reviewer = Omit<RecordOf<typeof REVIEWERS>, "updatedAt">;

/** Decisions known to be bad that are never executed; the key is the decision's id. Nothing else distinguishes them. */
export const DECOYS = record("decoys", { id: key(), createdAt: instant() });

/** Only the SHA-256 of a token's secret is stored: reading the database does not allow anyone to sign in. */
export const TOKENS = record(
  "tokens",
  {
    id: key(),
    kind: oneOf(TOKEN_KINDS),
    /** SHA-256 of the secret, in hexadecimal. */
    hash: text(),
    subject: text(),
    roles: names(ROLES),
    /** Roles on the task list: what of it this program may claim. */
    taskRoles: data<readonly string[]>({ check: Array.isArray }).optional([]),
    owner: text(),
    /** For people: what it is used for. */
    note: prose({ limit: "none" }),
    /** False once it was ended; it may be over by time all the same. */
    isLive: either({ yes: "live", no: "ended" }).as("state"),
    madeBy: text(),
    expiresAt: instant(),
    /** For a session: when its person signed in. */
    createdAt: instant(),
    updatedAt: instant(),
    ord: place(),
  },
  {
    indexes: [
      { name: "by_hash", on: ["hash"], unique: true },
      { name: "by_kind", on: ["kind", "ord"] },
    ],
  },
);
export type Token = Omit<RecordOf<typeof TOKENS>, "hash" | "updatedAt"> & Identity;

/** Whose session it is, recorded when it is opened over HTTP and never changed. */
export const SESSIONS = record(
  "sessions",
  {
    id: key(),
    agent: text(),
    /** On whose behalf the agent acts, or empty. */
    owner: prose({ limit: "none" }).packedIn("facts"),
    workingDirectory: prose({ limit: "none" }).packedIn("facts"),
    /** The claim of a task that it works under. */
    claim: data<{ readonly id: string; readonly fence: number }>().optional().packedIn("facts"),
    /** Facts for guards and validators, as JSON; empty when there are none. */
    metadata: prose({ limit: "none" }).packedIn("facts").optional(""),
    createdAt: instant(),
    ord: place(),
  },
  {
    indexes: [
      { name: "by_agent", on: ["agent", "ord"] },
      { name: "by_ord", on: ["ord"], only: "postgres" },
    ],
  },
);
export type SessionRecord = RecordOf<typeof SESSIONS>;

export interface StoredAnswer {
  readonly status: number;
  readonly body: string;
}

/** Requests that carry an idempotency key, and what was answered to them. */
export const HTTP_KEYS = record(
  "http_keys",
  {
    id: key(),
    route: text(),
    contentHash: text(),
    state: oneOf(["begun", "answered"]),
    fence: integer(),
    leaseUntil: instant(),
    answer: data<StoredAnswer>({ limit: "none" }).optional(),
    expiresAt: instant(),
    createdAt: instant(),
  },
  { indexes: [{ name: "by_expiry", on: ["expires_at"] }] },
);
