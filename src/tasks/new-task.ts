import { checkName } from "../model/names.ts";
import { TASK_LIMITS, type Task, type TaskId } from "../model/task.ts";
import { toIso } from "../util/clock.ts";
import { checkNames, checkPriority, checkProse, checkSubject } from "./task-checks.ts";

/** What one has to say about a task; the list adds id, status, time and version. */
export interface TaskDraft extends TaskLinks {
  /** 1 to 80 characters on one line. */
  readonly subject: string;
  readonly description?: string;
  /** Higher is sooner; 0 when left out. */
  readonly priority?: number;
  /** Only who has this role may claim it. */
  readonly role?: string;
  /** Tasks to be completed first: ids, and in `addAll` also keys of the same batch. */
  readonly blockedBy?: readonly TaskId[];
  /** Who adds it, for the trail; not a part of the task. */
  readonly by?: string;
}

/** What the task belongs to. */
export interface TaskLinks {
  readonly sessionId?: string;
  readonly decisionIds?: readonly string[];
  readonly delegationId?: string;
}

/** A pending task in its first version. Throws invalid_input, payload_too_large. */
export function newTask(id: TaskId, draft: TaskDraft, now: number): Task {
  const { subject, description = "", priority = 0, role = "", blockedBy = [] } = draft;
  checkSubject(subject);
  checkProse("description", description);
  checkPriority(priority);
  if (role !== "") checkName("role", role);
  if (draft.by !== undefined) checkName("name", draft.by);
  checkNames("blocker", blockedBy, TASK_LIMITS.blockers);
  checkLinks(draft);
  return {
    id,
    subject,
    description,
    status: "pending",
    createdAt: toIso(now),
    version: 1,
    ...(priority === 0 ? {} : { priority }),
    ...(role === "" ? {} : { role }),
    ...(blockedBy.length === 0 ? {} : { blockedBy: [...new Set(blockedBy)] }),
    ...linksOf(draft),
  };
}

export function checkLinks({ sessionId, decisionIds = [], delegationId }: TaskLinks): void {
  if (sessionId !== undefined) checkName("session id", sessionId);
  if (delegationId !== undefined) checkName("delegation id", delegationId);
  checkNames("decision id", decisionIds, TASK_LIMITS.decisions);
}

export function linksOf({ sessionId, decisionIds = [], delegationId }: TaskLinks): TaskLinks {
  return {
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(decisionIds.length === 0 ? {} : { decisionIds: [...new Set(decisionIds)] }),
    ...(delegationId === undefined ? {} : { delegationId }),
  };
}
