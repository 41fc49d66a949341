import { z } from "zod";
import { OPERATION_MOVES, type OperationStatus } from "../../model/operation.ts";
import { jsonRoute, RULES } from "../route.ts";
import { narrowed } from "../session-book.ts";
import { recordedUndo } from "../wire/call.ts";
import {
  cursorOf,
  DEFAULT_PAGE,
  instant,
  list,
  name,
  pageOf,
  paging,
  placeOf,
} from "../wire/common.ts";

const STATUSES = Object.keys(OPERATION_MOVES) as [OperationStatus, ...OperationStatus[]];

const operation = z.object({
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

export const operationRoutes = {
  "operations.list": jsonRoute({
    summary: "What a session did, newest first.",
    rule: RULES.read,
    of: "list",
    input: z.strictObject({ sessionId: name, ...paging }),
    answer: pageOf(operation),
    async handle({ sessionId, cursor, limit = DEFAULT_PAGE }, call) {
      await narrowed(call, sessionId);
      const before = cursor === undefined ? {} : { before: placeOf(cursor) };
      const found = await call.gate.operations.listNewest(sessionId, { ...before, limit });
      const { operations: items, next } = found;
      return { items, next: next === undefined ? null : cursorOf(next) };
    },
  }),
  "operations.get": jsonRoute({
    summary: "One execution: intent, attempts, outcome, undo recipe.",
    rule: RULES.read,
    of: "operation",
    input: z.strictObject({ id: name }),
    answer: operation,
    handle: ({ id }, { gate }) => gate.operations.get(id),
  }),
};
