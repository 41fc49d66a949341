import type { Instant } from "./instant.ts";

/**
 * The life of a task. Types, checks, documentation and buttons are derived from this table; the names are stored and
 * never renamed. `claimed` goes back to `pending` when a worker gives a task up or its lease runs out, and `failed` does
 * only when somebody re-opens it.
 */
export const TASK_MOVES = {
  pending: ["claimed", "completed", "failed"],
  claimed: ["completed", "failed", "pending"],
  completed: [],
  failed: ["pending"],
} as const satisfies Record<string, readonly string[]>;

export type TaskStatus = keyof typeof TASK_MOVES;
export type TaskId = string;

export const TASK_STATUSES = Object.keys(TASK_MOVES) as readonly TaskStatus[];

export function isTaskStatus(name: unknown): name is TaskStatus {
  return typeof name === "string" && Object.hasOwn(TASK_MOVES, name);
}

/**
 * An entry of the shared list. The first eleven fields are the whole of a plain task; what follows them may be missing
 * everywhere, so a store or a tool that knows only the plain ones keeps valid tasks. A field that is empty is absent.
 */
export interface Task {
  readonly id: TaskId;
  /** A title of 1 to 80 characters, on one line. */
  readonly subject: string;
  readonly description: string;
  readonly status: TaskStatus;
  /** A free name: an agent, an employee number, a system account. */
  readonly claimer?: string;
  /** Plain text that nobody interprets. */
  readonly result?: string;
  readonly failureReason?: string;
  readonly createdAt: Instant;
  readonly claimedAt?: Instant;
  readonly completedAt?: Instant;
  /** Goes up by exactly one with every change and starts at 1, so that 0 can mean "does not exist". */
  readonly version: number;

  /** Higher is sooner; 0 when absent. */
  readonly priority?: number;
  /** Only who has this role may claim it. */
  readonly role?: string;
  /** Tasks that must be completed before this one can be claimed. */
  readonly blockedBy?: readonly TaskId[];
  /** The claim is over at this moment unless it is renewed. A claim without it lasts until somebody ends it. */
  readonly leaseUntil?: Instant;
  /**
   * The number of the last claim: the version that it wrote. Versions only grow, so fences do. It stays when the claim is
   * over, and whoever writes under a claim shows it.
   */
  readonly fence?: number;
  readonly sessionId?: string;
  readonly decisionIds?: readonly string[];
  readonly delegationId?: string;
  /** What went wrong before, oldest first. */
  readonly history?: readonly TaskNote[];
}

/** One end that was not a completion, or one new beginning. */
export interface TaskNote {
  readonly at: Instant;
  readonly what: "failed" | "reopened" | "released" | "expired";
  /** The claimer that failed, released or lost it; for `reopened`, who did so. */
  readonly by?: string;
  readonly reason?: string;
  readonly fence?: number;
}

export const TASK_NOTES: readonly TaskNote["what"][] = [
  "failed",
  "reopened",
  "released",
  "expired",
];

/** What can happen to a task, as the feed says it. */
export type TaskEvent =
  | "task.added"
  | "task.claimed"
  | "task.renewed"
  | "task.released"
  | "task.expired"
  | "task.completed"
  | "task.failed"
  | "task.reopened"
  | "task.linked"
  | "task.blocked"
  /** By hand, through the store. */
  | "task.changed";

/** Each field with its name in JSON, in the order in which it is written, and with what it holds. */
export const TASK_FIELDS = {
  id: { json: "id", kind: "line" },
  subject: { json: "subject", kind: "line" },
  description: { json: "description", kind: "prose" },
  status: { json: "status", kind: "status" },
  claimer: { json: "claimer", kind: "line" },
  result: { json: "result", kind: "prose" },
  failureReason: { json: "failure_reason", kind: "prose" },
  createdAt: { json: "created_at", kind: "instant" },
  claimedAt: { json: "claimed_at", kind: "instant" },
  completedAt: { json: "completed_at", kind: "instant" },
  version: { json: "version", kind: "count" },
  priority: { json: "priority", kind: "integer" },
  role: { json: "role", kind: "line" },
  blockedBy: { json: "blocked_by", kind: "lines" },
  leaseUntil: { json: "lease_until", kind: "instant" },
  fence: { json: "fence", kind: "count" },
  sessionId: { json: "session_id", kind: "line" },
  decisionIds: { json: "decision_ids", kind: "lines" },
  delegationId: { json: "delegation_id", kind: "line" },
  history: { json: "history", kind: "notes" },
} as const satisfies Record<keyof Task, FieldRow>;

export type TaskField = keyof typeof TASK_FIELDS;
export type FieldKind =
  | "line"
  | "prose"
  | "status"
  | "instant"
  | "count"
  | "integer"
  | "lines"
  | "notes";

interface FieldRow {
  readonly json: string;
  readonly kind: FieldKind;
}

/** Characters are counted as code points. Beyond a limit nothing is cut: the call is refused. */
export const TASK_LIMITS = {
  subject: 80,
  /** Description and result each. What is larger belongs in a file, and the result says where. */
  prose: 100_000,
  /** Reasons are kept for ever, one beside the other, so they are shorter. */
  reason: 10_000,
  batch: 1_000,
  priority: 1_000_000,
  blockers: 100,
  decisions: 1_000,
  history: 100,
} as const;

/**
 * The zero time of the original, which wrote it for "not set". Read, it means just that; it is kept only as the creation
 * time of a task that somebody wrote by hand without one, which makes that task the oldest.
 */
export const ZERO_TIME: Instant = "0001-01-01T00:00:00.000Z";
