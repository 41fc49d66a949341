import type { Instant } from "./names.ts";

/**
 * What an identity may do, as `threats` 3.2 has it. An agent only proposes, and only a reviewer approves. `local` is for the
 * command line on the server's own machine: it reads, stops and resumes, and never decides or administers.
 */
export const ROLES = ["agent", "reviewer", "operator", "auditor", "admin", "local"] as const;
export type Role = (typeof ROLES)[number];

export function isRole(name: unknown): name is Role {
  return (ROLES as readonly unknown[]).includes(name);
}

/** A sentence about roles that one identity must not have together, undefined when they fit. */
export function rolesProblem(roles: readonly Role[]): string | undefined {
  if (roles.length === 0) return "Give at least one role.";
  if (new Set(roles).size < roles.length) return "Name each role once.";
  if (roles.includes("agent") && roles.length > 1) {
    return "An agent has no other role: whoever proposes as a program must not decide.";
  }
  if (roles.includes("auditor") && roles.includes("admin")) {
    return "Nobody audits what they administer: give auditor and admin to different identities.";
  }
  return undefined;
}

/**
 * What a token stands for: `token` is handed to programs and to people's tools, `session` lives in a browser's cookie,
 * `link` is good for one sign-in.
 */
export const TOKEN_KINDS = ["token", "session", "link"] as const;
export type TokenKind = (typeof TOKEN_KINDS)[number];

/** Who speaks. All of it comes from a verified token and nothing of it from a request. */
export interface Identity {
  readonly tenant: string;
  /** The name that stands in the trail: `agent:stock`, `person:ada`. */
  readonly subject: string;
  readonly roles: readonly Role[];
  /** On whose behalf an agent acts, empty for nobody: they must not approve what it asks for. */
  readonly owner: string;
}

/** How somebody has decided so far. Counts are since they were seen first; misses since their right was last restored. */
export interface Reviewer {
  readonly id: string;
  /** Suspended: their yes does not count until an operator restores it. */
  readonly status: "trusted" | "suspended";
  readonly approved: number;
  readonly rejected: number;
  /** Decoys they said no to, and decoys they let through. */
  readonly caught: number;
  readonly missed: number;
  /** Yeses since `hourAt`, for at most an hour. */
  readonly hourCount: number;
  readonly hourAt: Instant;
}
