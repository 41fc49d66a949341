import { z } from "zod";
import { SallyportError } from "../../model/errors.ts";
import {
  TASK_LIMITS,
  TASK_NOTES,
  TASK_STATUSES,
  type Task,
  type TaskNote,
} from "../../model/task.ts";
import { exportTasks, readTasks, TASK_FORMATS } from "../../tasks/carry-over.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { senderKey } from "../connections.ts";
import { access, type Call, jsonRoute } from "../route.ts";
import {
  anyText,
  cursorOf,
  DEFAULT_PAGE,
  fitting,
  instantText,
  list,
  name,
  pageOf,
  paging,
  placeOf,
  reason,
  texts,
} from "../wire.ts";

const NOTES = TASK_NOTES as readonly [TaskNote["what"], ...TaskNote["what"][]];

const note = z.object({
  at: instantText,
  what: z.enum(NOTES),
  by: anyText.optional(),
  reason: anyText.optional(),
  fence: z.int().optional(),
});

const task = z.object({
  ...texts("id", "subject", "description"),
  status: z.enum(TASK_STATUSES),
  claimer: anyText.optional(),
  result: anyText.optional(),
  failureReason: anyText.optional(),
  createdAt: instantText,
  claimedAt: instantText.optional(),
  completedAt: instantText.optional(),
  version: z.int(),
  priority: z.int().optional(),
  role: anyText.optional(),
  blockedBy: list(anyText).optional(),
  leaseUntil: instantText.optional(),
  fence: z.int().optional(),
  sessionId: anyText.optional(),
  decisionIds: list(anyText).optional(),
  delegationId: anyText.optional(),
  history: list(note).optional(),
});

const prose = z.string().max(2 * TASK_LIMITS.prose);

const links = {
  sessionId: name.optional(),
  decisionIds: z.array(name).max(TASK_LIMITS.decisions).optional(),
  delegationId: name.optional(),
};

/** The task list checks its own limits, so that its messages are the ones returned. */
const taskDraft = z.strictObject({
  subject: z.string().max(1_000),
  description: prose.optional(),
  priority: z.int().optional(),
  role: name.optional(),
  blockedBy: z.array(name).max(TASK_LIMITS.blockers).optional(),
  ...links,
});

const format = z.enum(TASK_FORMATS);
/** Of characters; a request has its own limit in bytes. */
const MOST_IMPORTED = 1_000_000;

/** Which task, and under which claim. Operators may end the claims of others with `any`. */
const held = { id: name, fence: z.union([z.int().min(0), z.literal("any")]).optional() };

/** Which roles the claimer has is a matter of its token. */
const claimTerms = {
  leaseMs: z
    .int()
    .min(1_000)
    .max(24 * 3_600_000)
    .optional(),
};

/** A claim over HTTP always has a lease: otherwise a worker that disappears would hold its task for ever. */
const LEASE_MS = 60_000;
/** The first ones are enough to see what is stuck. */
const MOST_STUCK = 500;

export const taskRoutes = {
  "tasks.list": jsonRoute({
    summary: "List tasks, oldest first.",
    ...access("everybody", "none"),
    input: z.strictObject({ status: z.enum(TASK_STATUSES).optional(), ...paging }),
    answer: pageOf(task),
    async handle({ status, cursor, limit = DEFAULT_PAGE }, call) {
      const query = { after: placeOf(cursor), limit, ...definedFields({ status }) };
      const { tasks, places, next } = await call.gate.tasks.page(query);
      const shown = tasks.slice(0, fitting(tasks));
      const end = shown.length < tasks.length ? places[shown.length - 1] : next;
      return { items: shown, next: end === undefined ? null : cursorOf(end) };
    },
  }),
  "tasks.stuck": jsonRoute({
    summary: "List tasks that cannot proceed without help, and why.",
    ...access("readAll", "none"),
    input: z.strictObject({ claimedForMs: z.int().min(0) }),
    /** `more` says that there are others behind these. */
    answer: z.object({ items: list(z.object({ task, why: z.string() })), more: z.boolean() }),
    async handle(query, call) {
      const found = await call.gate.tasks.findStuck(query);
      const items = found.slice(0, Math.min(fitting(found), MOST_STUCK));
      return { items, more: items.length < found.length };
    },
  }),
  "tasks.add": jsonRoute({
    summary: "Add a task.",
    ...access("work", "none"),
    input: taskDraft,
    answer: task,
    status: 201,
    ifCutOff: "ask",
    handle: (draft, call) =>
      withinQuota([draft], call, async () => {
        const { add } = call.gate.tasks;
        return [await add({ ...definedFields(draft), by: call.by })];
      }).then(([added]) => added as Task),
  }),
  "tasks.addAll": jsonRoute({
    summary: "Add several tasks, which may block each other by their keys: all of them or none.",
    ...access("work", "none"),
    input: z.strictObject({
      tasks: z
        .array(taskDraft.extend({ key: name.optional() }))
        .min(1)
        .max(100),
    }),
    answer: z.object({ tasks: list(task) }),
    status: 201,
    ifCutOff: "ask",
    async handle({ tasks: drafts }, call) {
      const named = drafts.map((draft) => ({ ...definedFields(draft), by: call.by }));
      return { tasks: await withinQuota(drafts, call, () => call.gate.tasks.addAll(named)) };
    },
  }),
  "tasks.get": jsonRoute({
    summary: "Get a task.",
    ...access("everybody", "none"),
    input: z.strictObject({ id: name }),
    answer: task,
    handle: ({ id }, call) => call.gate.tasks.get(id),
  }),
  "tasks.claim": jsonRoute({
    summary: "Claim a task under a lease.",
    ...access("work", "none"),
    input: z.strictObject({ id: name, ...claimTerms }),
    answer: task,
    ifCutOff: "ask",
    handle: ({ id, ...terms }, call) => call.gate.tasks.claim({ id, ...termsOf(terms, call) }),
  }),
  "tasks.claimNext": jsonRoute({
    summary: "Claim the next task: highest priority, then oldest. Null if there is none.",
    ...access("work", "none"),
    input: z.strictObject(claimTerms),
    answer: z.object({ task: task.nullable() }),
    // A claim whose answer was lost expires by itself.
    ifCutOff: "again",
    handle: async (terms, call) => ({
      task: (await call.gate.tasks.claimNext(termsOf(terms, call))) ?? null,
    }),
  }),
  "tasks.claimBatch": jsonRoute({
    summary: "Claim several tasks at once, best first; an empty list if there are none.",
    ...access("work", "none"),
    input: z.strictObject({ limit: z.int().min(1).max(50), ...claimTerms }),
    answer: z.object({ tasks: list(task) }),
    ifCutOff: "again",
    handle: async ({ limit, ...terms }, call) => ({
      tasks: await call.gate.tasks.claimBatch({ limit, ...termsOf(terms, call) }),
    }),
  }),
  "tasks.renew": jsonRoute({
    summary: "Renew a claim for a number of milliseconds from now.",
    ...access("work", "none"),
    input: z.strictObject({ ...held, leaseMs: claimTerms.leaseMs }),
    answer: task,
    handle: async ({ leaseMs = LEASE_MS, ...claim }, call) =>
      call.gate.tasks.renew({ ...(await holding(claim, call)), leaseMs }),
  }),
  "tasks.release": jsonRoute({
    summary: "Release a claimed task.",
    ...access("work", "none"),
    input: z.strictObject({ ...held, reason: reason.optional() }),
    answer: task,
    handle: async ({ reason: why, ...claim }, call) =>
      call.gate.tasks.release(definedFields({ ...(await holding(claim, call)), reason: why })),
  }),
  "tasks.complete": jsonRoute({
    summary: "Complete a task.",
    ...access("work", "none"),
    input: z.strictObject({ ...held, result: prose }),
    answer: task,
    handle: async ({ result, ...claim }, call) =>
      call.gate.tasks.complete({ ...(await holding(claim, call)), result }),
  }),
  "tasks.fail": jsonRoute({
    summary: "Mark a task as failed, with the reason.",
    ...access("work", "none"),
    input: z.strictObject({ ...held, reason }),
    answer: task,
    handle: async ({ reason: why, ...claim }, call) =>
      call.gate.tasks.fail({ ...(await holding(claim, call)), reason: why }),
  }),
  "tasks.link": jsonRoute({
    summary:
      "Link a task to its session, delegation and decisions; it is completed only when those are.",
    ...access("work", "none"),
    input: z.strictObject({ ...held, ...links }),
    answer: task,
    handle: async ({ sessionId, decisionIds, delegationId, ...claim }, call) =>
      call.gate.tasks.link({
        ...(await holding(claim, call)),
        ...definedFields({ sessionId, decisionIds, delegationId }),
      }),
  }),
  "tasks.block": jsonRoute({
    summary: "Set which tasks must be completed before this one, which is pending.",
    ...access("manageWork", "none"),
    input: z.strictObject({ id: name, blockedBy: z.array(name).max(TASK_LIMITS.blockers) }),
    answer: task,
    handle: ({ id, blockedBy }, call) => call.gate.tasks.block({ id, blockedBy, by: call.by }),
  }),
  "tasks.reopen": jsonRoute({
    summary: "Make a failed task claimable again.",
    ...access("manageWork", "none"),
    input: z.strictObject({ id: name, reason: reason.optional() }),
    answer: task,
    handle: ({ id, reason: why }, call) =>
      call.gate.tasks.reopen(definedFields({ id, by: call.by, reason: why })),
  }),
  "tasks.import": jsonRoute({
    summary: "Import tasks from JSON or Markdown. Tasks whose id is taken are skipped and named.",
    ...access("manageWork", "none"),
    input: z.strictObject({ format, text: z.string().max(MOST_IMPORTED) }),
    answer: z.object({ added: list(anyText), skipped: list(anyText) }),
    handle: ({ format: written, text: given }, call) =>
      call.gate.tasks.importAll(readTasks(given, written), call.by),
  }),
  "tasks.export": jsonRoute({
    summary: "Export tasks as JSON or Markdown, oldest first. Each page is a document of its own.",
    ...access("readAll", "none"),
    input: z.strictObject({ format, ...paging }),
    answer: z.object({ text: anyText, count: z.int(), next: z.string().nullable() }),
    async handle({ format: wanted, cursor, limit = DEFAULT_PAGE }, call) {
      const { tasks, places, next } = await call.gate.tasks.page({ after: placeOf(cursor), limit });
      const shown = tasks.slice(0, fitting(tasks));
      const end = shown.length < tasks.length ? places[shown.length - 1] : next;
      const document = exportTasks(shown, wanted);
      return {
        text: document,
        count: shown.length,
        next: end === undefined ? null : cursorOf(end),
      };
    },
  }),
};

function termsOf({ leaseMs = LEASE_MS }: { leaseMs?: number | undefined }, call: Call) {
  return { claimer: call.by, roles: call.identity.taskRoles, leaseMs };
}

/** Adds tasks, unless that exceeds what this sender may have open. */
async function withinQuota(
  drafts: readonly unknown[],
  { gate, identity, services }: Call,
  add: () => Promise<readonly Task[]>,
): Promise<readonly Task[]> {
  const sender = senderKey(identity);
  const sizes = drafts.map((draft) => Buffer.byteLength(JSON.stringify(draft)));
  const quota = services.taskQuota(identity.tenant, gate.tasks);
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  await quota.check(sender, bytes, drafts.length);
  const added = await add();
  for (const [index, { id }] of added.entries()) quota.opened(sender, id, sizes[index] ?? 0);
  return added;
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
    const { status, claimer } = await call.gate.tasks.get(id);
    const isOthers = status === "claimed" && claimer !== subject;
    if (isOthers || fence === "any") {
      const hint = "Another worker holds it; only an operator can end the claims of others.";
      throw new SallyportError("claim_lost", { id, hint });
    }
  }
  return { id, by: subject, ...definedFields({ fence }) };
}
