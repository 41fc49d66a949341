import { z } from "zod";
import { TASK_LIMITS, TASK_NOTES, TASK_STATUSES, type TaskNote } from "../../model/task.ts";
import { instant, list, name } from "./common.ts";

const NOTES = TASK_NOTES as readonly [TaskNote["what"], ...TaskNote["what"][]];

export const task = z.object({
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

/** What the list itself checks is left to it, so that its words are the ones people read. */
export const taskDraft = z.strictObject({
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
export const held = { id: name, fence: z.union([z.int().min(0), z.literal("any")]).optional() };

export const claimTerms = {
  /** What the claimer can do; tasks that ask for more are left alone. */
  roles: z.array(name).max(50).optional(),
  leaseMs: z
    .int()
    .min(1_000)
    .max(24 * 3_600_000)
    .optional(),
};

export const result = prose;
