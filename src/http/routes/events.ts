import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { z } from "zod";
import { SallyportError } from "../../model/errors.ts";
import { followEvents } from "../follow-events.ts";
import { type HttpContext, rawRoute } from "../route.ts";
import { RULES } from "../rule.ts";

export const eventRoutes = {
  "events.follow": rawRoute({
    summary:
      "The feed: entries of the trail as server-sent events, numbered, resumable after the last one seen.",
    rule: RULES.read,
    of: "list",
    input: z.strictObject({
      /** The number of the last entry that is known; the header Last-Event-ID counts more. */
      after: z.int().min(0).optional(),
    }),
    contentType: "text/event-stream",
    async handle({ after }, context, call) {
      const start = lastSeen(context) ?? after;
      const leave = call.services.streams.enter(call.identity);
      try {
        await followEvents(context, call, start);
      } finally {
        leave();
      }
      return RESPONSE_ALREADY_SENT;
    },
  }),
};

function lastSeen(context: HttpContext): number | undefined {
  const text = context.req.header("last-event-id");
  if (text === undefined || text === "") return undefined;
  if (!/^\d{1,15}$/.test(text)) {
    const hint = "Last-Event-ID is the number of the last event that was seen.";
    throw new SallyportError("invalid_input", { what: "Last-Event-ID", hint });
  }
  return Number(text);
}
