import { z } from "zod";
import { jsonRoute } from "../route.ts";
import { RULES } from "../rule.ts";
import { narrowed } from "../session-book.ts";
import { DEFAULT_PAGE, name, pageFrom, pageOf, paging } from "../wire/common.ts";
import { operation } from "../wire/operation.ts";

export const operationRoutes = {
  "operations.list": jsonRoute({
    summary: "What a session did, oldest first.",
    rule: RULES.read,
    of: "list",
    input: z.strictObject({ sessionId: name, ...paging }),
    answer: pageOf(operation),
    async handle({ sessionId, cursor, limit = DEFAULT_PAGE }, call) {
      await narrowed(call, sessionId);
      return pageFrom(await call.port.operations.listBySession(sessionId), cursor, limit);
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
