import { z } from "zod";
import { PAUSE_KINDS, PAUSES } from "../../model/pause.ts";
import { access, jsonRoute } from "../route.ts";
import { list, NO_INPUT, name, reason, wireOf } from "../wire.ts";

const pause = wireOf(PAUSES, ["id", "kind", "subject", "reason", "actor", "createdAt"]);
const scope = { kind: z.enum(PAUSE_KINDS), subject: name };

export const pauseRoutes = {
  "pauses.list": jsonRoute({
    summary: "List what is paused: agents, tools by pattern, sessions.",
    ...access("everybody", "none", "people"),
    input: NO_INPUT,
    answer: z.object({ items: list(pause) }),
    handle: async (_, { gate }) => ({ items: await gate.pauses.list() }),
  }),
  "pauses.pause": jsonRoute({
    summary:
      "Pause an agent, tools by pattern, or a session. What people approve meanwhile is kept.",
    ...access("stop", "none", "people"),
    input: z.strictObject({ ...scope, reason }),
    answer: pause,
    handle: ({ reason: why, ...part }, { gate, by }) => gate.pauses.pause(part, why, { actor: by }),
  }),
  "pauses.resume": jsonRoute({
    summary: "End a pause. What was approved meanwhile is checked again and runs.",
    ...access("stop", "none", "people"),
    input: z.strictObject({ ...scope, reason }),
    answer: z.object({}),
    async handle({ reason: why, ...part }, { gate, by }) {
      await gate.pauses.resume(part, why, { actor: by });
      return {};
    },
  }),
};
