import { z } from "zod";
import { OPERATION_MOVES, type OperationStatus } from "../../model/operation.ts";
import { recordedUndo } from "./call.ts";
import { instant, list } from "./common.ts";

const STATUSES = Object.keys(OPERATION_MOVES) as [OperationStatus, ...OperationStatus[]];

export const operation = z.object({
  id: z.string(),
  sessionId: z.string(),
  messageId: z.string(),
  callId: z.string(),
  turn: z.int(),
  tool: z.string(),
  effect: z.string(),
  definitionHash: z.string(),
  /** Canonical JSON: the bytes that were shown, hashed and sent. */
  input: z.string(),
  workingDirectory: z.string(),
  decisionId: z.string(),
  step: z.int(),
  undoOf: z.string(),
  status: z.enum(STATUSES),
  attempt: z.int(),
  fence: z.int(),
  leaseUntil: instant,
  output: z.string(),
  truncated: z.boolean(),
  storedPath: z.string(),
  undo: recordedUndo.optional(),
  error: z.string(),
  stateVersion: z.string(),
  createdAt: instant,
  updatedAt: instant,
});

const rollbackEntries = list(
  z.object({
    operationId: z.string(),
    tool: z.string(),
    description: z.string(),
    reason: z.string(),
    guide: z.string(),
    undoOperationId: z.string(),
    decisionId: z.string(),
  }),
);

export const rollbackReport = z.object({
  failed: rollbackEntries,
  conflicted: rollbackEntries,
  unfinished: rollbackEntries,
  pending: rollbackEntries,
  irreversible: rollbackEntries,
  undone: rollbackEntries,
  skipped: rollbackEntries,
});
