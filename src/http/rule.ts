import type { Identity, Role } from "../model/identity.ts";

/**
 * Who may use a route. A role that is not named may not. `own`: only records of sessions that this subject opened;
 * everything else is answered as if it were not there. `tenant`: all records of the tenant.
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
/** Why nobody has to be signed in. */
type Reason = string;

/** Which record a route is about, so that one place checks whose it is. `list`: the route narrows what it shows by itself. */
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
  /** What was done and what is asked, for whoever is not an agent. */
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
  /** What was lost on the way: reviewers know what was meant, operators what happened. */
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
  /** Rules are loosened by two: one proposes, an admin who is somebody else confirms. Anybody who decides may take them back. */
  proposePolicy: { roles: { operator: "tenant" }, person: true, freshSignIn: true },
  tighten: { roles: { reviewer: "tenant", operator: "tenant", admin: "tenant" } },
  administer: { roles: { admin: "tenant" }, person: true, freshSignIn: true },
  /** Who has access: looking needs no recent sign-in. */
  readAccess: { roles: { admin: "tenant" }, person: true },
  /** A person's own sign-in on another device. */
  ownLink: {
    roles: { reviewer: "tenant", operator: "tenant", auditor: "tenant", admin: "tenant" },
    person: true,
    freshSignIn: true,
  },
} as const satisfies Record<string, Rule>;
