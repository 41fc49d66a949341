import { z } from "zod";
import type { Delegations } from "../../delegation/delegations.ts";
import type { Session } from "../../gate/session.ts";
import {
  DELEGATION_MOVES,
  type Delegation,
  type DelegationId,
  type DelegationState,
  ROLES,
  WRITE_PERMISSIONS,
} from "../../model/delegation.ts";
import { SallyportError } from "../../model/errors.ts";
import { LOOP_STAGES, PHASES, type Phase, type Run, type RunId } from "../../model/run.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { type Call, jsonRoute, RULES } from "../route.ts";
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

/** What must be true in the end, and which evidence proves it. */
const promise = z.object({
  id: z.string(),
  statement: z.string(),
  evidence: list(z.object({ name: z.string(), command: z.string().optional() })),
});

const evidence = z.object({
  promiseId: z.string(),
  need: z.string(),
  command: z.string(),
  exitCode: z.number(),
  keyOutput: z.string(),
  conclusion: z.string(),
  green: z.boolean(),
  sessionId: z.string(),
  at: instant,
});

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
    summary: "List delegations below a session, or all below one root.",
    rule: RULES.readAll,
    of: "none",
    input: z.strictObject({
      rootSession: name.optional(),
      parentSession: name.optional(),
      ...paging,
    }),
    answer: pageOf(delegation),
    async handle({ rootSession, parentSession, cursor, limit = DEFAULT_PAGE }, call) {
      const found = await delegationsOf(call).list(definedFields({ rootSession, parentSession }));
      return pageFrom(found.map(shown), cursor, limit);
    },
  }),
  "delegations.get": jsonRoute({
    summary: "Get a delegation: task, scope, promise, report.",
    rule: RULES.readAll,
    of: "none",
    input: z.strictObject({ id: name }),
    answer: delegation,
    handle: async ({ id }, call) => shown(await delegationsOf(call).get(id as DelegationId)),
  }),
  "delegations.revoke": jsonRoute({
    summary: "Stop a sub-agent and everything below it.",
    rule: RULES.manageWork,
    of: "none",
    input: z.strictObject({ id: name, reason }),
    answer: delegation,
    lane: "people",
    async handle({ id, reason: why }, call) {
      const by = { actor: call.identity.subject };
      return shown(await delegationsOf(call).revoke(id as DelegationId, why, by));
    },
  }),
};

/** Without the hash of the sub-agent's token. */
function shown({ tokenHash, ...rest }: Delegation) {
  return rest;
}

function delegationsOf({ gate }: Call): Delegations<Session> {
  if (gate.delegations !== undefined) return gate.delegations;
  const hint = "This gate has no delegations.";
  throw new SallyportError("not_found", { id: "delegations", hint });
}

const STATUSES = ["open", "done", "stopped"] as const satisfies readonly Run["status"][];
const phase = z.enum(PHASES as readonly [Phase, ...Phase[]]);

const run = z.object({
  id: z.string(),
  feature: z.string(),
  lead: z.string(),
  phase,
  status: z.enum(STATUSES),
  artefacts: z.partialRecord(phase, z.string()),
  documents: z.string(),
  evidenceFolder: z.string(),
  planFiles: list(z.string()),
  promises: list(promise),
  evidence: list(evidence),
  budget: z.int(),
  rounds: z.int(),
  stage: z.enum(["", ...LOOP_STAGES]),
  reason: z.string(),
  version: z.int(),
});

export const runRoutes = {
  "runs.list": jsonRoute({
    summary: "List the runs of lead agents: phase, promise, budget.",
    rule: RULES.readAll,
    of: "none",
    input: z.strictObject({
      /** All by default. */
      status: z.enum(STATUSES).optional(),
      ...paging,
    }),
    answer: pageOf(run),
    async handle({ status, cursor, limit = DEFAULT_PAGE }, { store }) {
      const asked = status === undefined ? STATUSES : [status];
      const found = await Promise.all(asked.map((one) => store.runs.list(one)));
      return pageFrom(found.flat(), cursor, limit);
    },
  }),
  "runs.get": jsonRoute({
    summary: "Get a run: plan, promises and their evidence.",
    rule: RULES.readAll,
    of: "none",
    input: z.strictObject({ id: name }),
    answer: run,
    handle: ({ id }, { gate }) => gate.runs.get(id as RunId),
  }),
};
