import { z } from "zod";
import type { Delegations } from "../../delegation/delegations.ts";
import {
  DELEGATION_MOVES,
  type Delegation,
  type DelegationId,
  type DelegationState,
  ROLES,
  WRITE_PERMISSIONS,
} from "../../model/delegation.ts";
import { SallyportError } from "../../model/errors.ts";
import type { Session } from "../../port/session.ts";
import { defined } from "../defined.ts";
import { type Call, jsonRoute } from "../route.ts";
import { RULES } from "../rule.ts";
import {
  DEFAULT_PAGE,
  instant,
  list,
  name,
  pageFrom,
  pageOf,
  paging,
  reason,
} from "../wire/common.ts";
import { promise } from "../wire/promise.ts";

const STATES = Object.keys(DELEGATION_MOVES) as [DelegationState, ...DelegationState[]];

const delegation = z.object({
  id: z.string(),
  state: z.enum(STATES),
  chain: list(z.string()),
  agents: list(z.string()),
  owner: z.string(),
  parentSession: z.string(),
  rootSession: z.string(),
  runId: z.string(),
  traceId: z.string(),
  task: z.string(),
  capsule: z.string(),
  promise,
  scope: z.object({
    planId: z.string(),
    role: z.enum(ROLES),
    writePermission: z.enum(WRITE_PERMISSIONS),
    planFiles: list(z.string()),
    documents: list(z.string()),
    artefact: z.string(),
    tools: list(z.string()),
    calls: z.number(),
    expiresAt: instant,
    depth: z.number(),
  }),
  workingDirectory: z.string(),
  output: z.string(),
  promiseMet: z.boolean().optional(),
  reason: z.string(),
  createdAt: instant,
  updatedAt: instant,
});

export const delegationRoutes = {
  "delegations.list": jsonRoute({
    summary: "Hand-overs below a session, or all that hang on one root.",
    rule: RULES.readAll,
    of: "none",
    input: z.strictObject({
      rootSession: name.optional(),
      parentSession: name.optional(),
      ...paging,
    }),
    answer: pageOf(delegation),
    async handle({ rootSession, parentSession, cursor, limit = DEFAULT_PAGE }, call) {
      const found = await roomOf(call).list(defined({ rootSession, parentSession }));
      return pageFrom(found.map(shown), cursor, limit);
    },
  }),
  "delegations.get": jsonRoute({
    summary: "One hand-over: task, scope, promise, report.",
    rule: RULES.readAll,
    of: "none",
    input: z.strictObject({ id: name }),
    answer: delegation,
    handle: async ({ id }, call) => shown(await roomOf(call).get(id as DelegationId)),
  }),
  "delegations.revoke": jsonRoute({
    summary: "Stops a sub-agent and everything below it.",
    rule: RULES.manageWork,
    of: "none",
    input: z.strictObject({ id: name, reason }),
    answer: delegation,
    lane: "people",
    async handle({ id, reason: why }, call) {
      const by = { actor: call.identity.subject };
      return shown(await roomOf(call).revoke(id as DelegationId, why, by));
    },
  }),
};

/** The hash of the sub-agent's token is nobody's business. */
function shown({ tokenHash, ...rest }: Delegation) {
  return rest;
}

function roomOf({ port }: Call): Delegations<Session> {
  if (port.delegations !== undefined) return port.delegations;
  const hint = "This port was made without delegations.";
  throw new SallyportError("not_found", { id: "delegations", hint });
}
