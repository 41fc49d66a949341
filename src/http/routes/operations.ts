import { z } from "zod";
import { OPERATIONS, type Operation } from "../../model/operation.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { jsonRoute, RULES } from "../route.ts";
import { narrowed } from "../session-book.ts";
import { recordedUndo } from "../wire/call.ts";
import {
  bytesOf,
  cursorOf,
  DEFAULT_PAGE,
  fitting,
  list,
  name,
  pageOf,
  paging,
  placeOf,
} from "../wire/common.ts";
import { wireOf } from "../wire/record.ts";

const operation = wireOf(
  OPERATIONS,
  [
    "id",
    "sessionId",
    "messageId",
    "callId",
    "turn",
    "tool",
    "effect",
    "definitionHash",
    "input",
    "workingDirectory",
    "decisionId",
    "step",
    "undoOf",
    "status",
    "attempt",
    "fence",
    "leaseUntil",
    "output",
    "truncated",
    "storedPath",
    "undo",
    "error",
    "stateVersion",
    "createdAt",
    "updatedAt",
  ],
  { undo: recordedUndo.optional() },
);

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

/** Each may hold a megabyte of output and as much for its undo. */
const CHUNK = 16;

export const operationRoutes = {
  "operations.list": jsonRoute({
    summary: "List the operations of a session, newest first.",
    rule: RULES.read,
    of: "list",
    input: z.strictObject({ sessionId: name, ...paging }),
    answer: pageOf(operation),
    async handle({ sessionId, cursor, limit = DEFAULT_PAGE }, call) {
      await narrowed(call, sessionId);
      const items: Operation[] = [];
      let before = cursor === undefined ? undefined : placeOf(cursor);
      for (let sent = 0; ; ) {
        const part = { ...definedFields({ before }), limit: Math.min(CHUNK, limit - items.length) };
        let found = await call.gate.operations.listNewest(sessionId, part);
        const count = fitting(found.operations, sent);
        const isFull = count < found.operations.length;
        // Only the store knows the place of each, so a shorter part is asked for again.
        if (isFull && count > 0) {
          found = await call.gate.operations.listNewest(sessionId, { ...part, limit: count });
        }
        if (count > 0 || !isFull) {
          items.push(...found.operations);
          sent += bytesOf(found.operations);
          before = found.next;
        }
        if (isFull || before === undefined || items.length >= limit) break;
      }
      return { items, next: before === undefined ? null : cursorOf(before) };
    },
  }),
  "operations.get": jsonRoute({
    summary: "Get an operation: intent, attempts, outcome, undo record.",
    rule: RULES.read,
    of: "operation",
    input: z.strictObject({ id: name }),
    answer: operation,
    handle: ({ id }, { gate }) => gate.operations.get(id),
  }),
};
