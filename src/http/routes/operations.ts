import { z } from "zod";
import { jsonRoute } from "../route.ts";
import { RULES } from "../rule.ts";
import { narrowed } from "../session-book.ts";
import { cursorOf, DEFAULT_PAGE, name, pageOf, paging, placeOf } from "../wire/common.ts";
import { operation } from "../wire/operation.ts";

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
      const found = await call.port.operations.listNewest(sessionId, { ...before, limit });
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
    handle: ({ id }, { port }) => port.operations.get(id),
  }),
};
