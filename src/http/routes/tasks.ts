import { z } from "zod";
import { SallyportError } from "../../model/errors.ts";
import { TASK_LIMITS, TASK_NOTES, TASK_STATUSES, type TaskNote } from "../../model/task.ts";
import type { TaskList } from "../../tasks/create-task-list.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { senderKey } from "../connections.ts";
import { type Call, jsonRoute, RULES } from "../route.ts";
import {
  cursorOf,
  DEFAULT_PAGE,
  fitting,
  instant,
  list,
  name,
  pageOf,
  paging,
  placeOf,
  reason,
} from "../wire/common.ts";

const NOTES = TASK_NOTES as readonly [TaskNote["what"], ...TaskNote["what"][]];

const task = z.object({
  id: z.string(),
  subject: z.string(),
  description: z.string(),
  status: z.enum(TASK_STATUSES),
  claimer: z.string().optional(),
  result: z.string().optional(),
  failureReason: z.string().optional(),
  createdAt: instant,
  claimedAt: instant.optional(),
  completedAt: instant.optional(),
  version: z.int(),
  priority: z.int().optional(),
  role: z.string().optional(),
  blockedBy: list(z.string()).optional(),
  leaseUntil: instant.optional(),
  fence: z.int().optional(),
  sessionId: z.string().optional(),
  decisionIds: list(z.string()).optional(),
  delegationId: z.string().optional(),
  history: list(
    z.object({
      at: instant,
      what: z.enum(NOTES),
      by: z.string().optional(),
      reason: z.string().optional(),
      fence: z.int().optional(),
    }),
  ).optional(),
});

const prose = z.string().max(2 * TASK_LIMITS.prose);

/** The task list checks its own limits, so that its messages are the ones returned. */
const taskDraft = z.strictObject({
  subject: z.string().max(1_000),
  description: prose.optional(),
  priority: z.int().optional(),
  role: name.optional(),
  blockedBy: z.array(name).max(TASK_LIMITS.blockers).optional(),
  sessionId: name.optional(),
  decisionIds: z.array(name).max(TASK_LIMITS.decisions).optional(),
  delegationId: name.optional(),
});

/** Which task, and under which claim. Operators may end the claims of others with `any`. */
const held = { id: name, fence: z.union([z.int().min(0), z.literal("any")]).optional() };

const claimTerms = {
  /** The claimer's roles; tasks that need others are skipped. */
  roles: z.array(name).max(50).optional(),
  leaseMs: z
    .int()
    .min(1_000)
    .max(24 * 3_600_000)
    .optional(),
};

const result = prose;

/** A claim over HTTP always has a lease: otherwise a worker that disappears would hold its task for ever. */
const LEASE_MS = 60_000;
/** Whoever looks for what is stuck looks at the first ones. */
const MOST_STUCK = 500;

export const taskRoutes = {
  "tasks.list": jsonRoute({
    summary: "List tasks, oldest first.",
    rule: RULES.everybody,
    of: "none",
    input: z.strictObject({ status: z.enum(TASK_STATUSES).optional(), ...paging }),
    answer: pageOf(task),
    async handle({ status, cursor, limit = DEFAULT_PAGE }, call) {
      const query = { after: placeOf(cursor), limit, ...definedFields({ status }) };
      const { tasks, places, next } = await listOf(call).page(query);
      const shown = tasks.slice(0, fitting(tasks));
      const end = shown.length < tasks.length ? places[shown.length - 1] : next;
      return { items: shown, next: end === undefined ? null : cursorOf(end) };
    },
  }),
  "tasks.stuck": jsonRoute({
    summary: "List tasks that cannot proceed without help, and why.",
    rule: RULES.readAll,
    of: "none",
    input: z.strictObject({ claimedForMs: z.int().min(0) }),
    /** `more` says that there are others behind these. */
    answer: z.object({ items: list(z.object({ task, why: z.string() })), more: z.boolean() }),
    async handle(query, call) {
      const found = await listOf(call).findStuck(query);
      const items = found.slice(0, Math.min(fitting(found), MOST_STUCK));
      return { items, more: items.length < found.length };
    },
  }),
  "tasks.add": jsonRoute({
    summary: "Add a task.",
    rule: RULES.work,
    of: "none",
    input: taskDraft,
    answer: task,
    status: 201,
    ifCutOff: "ask",
    async handle(draft, call) {
      const { taskQuota } = call.services;
      const sender = senderKey(call.identity);
      const bytes = Buffer.byteLength(JSON.stringify(draft));
      const quota = taskQuota(call.identity.tenant, listOf(call));
      await quota.check(sender, bytes);
      const added = await listOf(call).add({ ...definedFields(draft), by: call.identity.subject });
      quota.opened(sender, added.id, bytes);
      return added;
    },
  }),
  "tasks.get": jsonRoute({
    summary: "Get a task.",
    rule: RULES.everybody,
    of: "none",
    input: z.strictObject({ id: name }),
    answer: task,
    handle: ({ id }, call) => listOf(call).get(id),
  }),
  "tasks.claim": jsonRoute({
    summary: "Claim a task under a lease.",
    rule: RULES.work,
    of: "none",
    input: z.strictObject({ id: name, ...claimTerms }),
    answer: task,
    ifCutOff: "ask",
    handle: ({ id, ...terms }, call) => listOf(call).claim({ id, ...termsOf(terms, call) }),
  }),
  "tasks.claimNext": jsonRoute({
    summary: "Claim the next task: highest priority, then oldest. Null if there is none.",
    rule: RULES.work,
    of: "none",
    input: z.strictObject(claimTerms),
    answer: z.object({ task: task.nullable() }),
    // A claim whose answer was lost expires by itself.
    ifCutOff: "again",
    handle: async (terms, call) => ({
      task: (await listOf(call).claimNext(termsOf(terms, call))) ?? null,
    }),
  }),
  "tasks.renew": jsonRoute({
    summary: "Renew a claim for a number of milliseconds from now.",
    rule: RULES.work,
    of: "none",
    input: z.strictObject({ ...held, leaseMs: claimTerms.leaseMs }),
    answer: task,
    handle: async ({ leaseMs = LEASE_MS, ...claim }, call) =>
      listOf(call).renew({ ...(await holding(claim, call)), leaseMs }),
  }),
  "tasks.release": jsonRoute({
    summary: "Release a claimed task.",
    rule: RULES.work,
    of: "none",
    input: z.strictObject({ ...held, reason: reason.optional() }),
    answer: task,
    handle: async ({ reason: why, ...claim }, call) =>
      listOf(call).release({ ...(await holding(claim, call)), ...definedFields({ reason: why }) }),
  }),
  "tasks.complete": jsonRoute({
    summary: "Complete a task.",
    rule: RULES.work,
    of: "none",
    input: z.strictObject({ ...held, result }),
    answer: task,
    handle: async ({ result: text, ...claim }, call) =>
      listOf(call).complete({ ...(await holding(claim, call)), result: text }),
  }),
  "tasks.fail": jsonRoute({
    summary: "Mark a task as failed, with the reason.",
    rule: RULES.work,
    of: "none",
    input: z.strictObject({ ...held, reason }),
    answer: task,
    handle: async ({ reason: why, ...claim }, call) =>
      listOf(call).fail({ ...(await holding(claim, call)), reason: why }),
  }),
  "tasks.reopen": jsonRoute({
    summary: "Make a failed task claimable again.",
    rule: RULES.manageWork,
    of: "none",
    input: z.strictObject({ id: name, reason: reason.optional() }),
    answer: task,
    handle: ({ id, reason: why }, call) =>
      listOf(call).reopen({ id, by: call.identity.subject, ...definedFields({ reason: why }) }),
  }),
};

function listOf({ gate }: Call): TaskList {
  if (gate.tasks !== undefined) return gate.tasks;
  const hint = "This gate has no task list.";
  throw new SallyportError("not_found", { id: "tasks", hint });
}

function termsOf(
  { roles, leaseMs = LEASE_MS }: { roles?: string[] | undefined; leaseMs?: number | undefined },
  { identity }: Call,
) {
  return { claimer: identity.subject, leaseMs, ...definedFields({ roles }) };
}

/**
 * A fence can be guessed, so it alone does not prove ownership: the claim must be under the name
 * of the token. Only operators end the claims of others.
 */
async function holding(
  { id, fence }: { id: string; fence?: number | "any" | undefined },
  call: Call,
) {
  const { subject, roles } = call.identity;
  if (!roles.includes("operator")) {
    const { status, claimer } = await listOf(call).get(id);
    const isOthers = status === "claimed" && claimer !== subject;
    if (isOthers || fence === "any") {
      const hint = "Another worker holds it; only an operator can end the claims of others.";
      throw new SallyportError("claim_lost", { id, hint });
    }
  }
  return { id, by: subject, ...definedFields({ fence }) };
}
