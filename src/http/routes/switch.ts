import { z } from "zod";
import type { Call } from "../route.ts";
import { jsonRoute } from "../route.ts";
import { RULES } from "../rule.ts";
import { NO_INPUT, reason } from "../wire/common.ts";

const state = z.object({ stopped: z.boolean() });
const lane = "people" as const;

export const switchRoutes = {
  "switch.get": jsonRoute({
    summary: "Whether everything is stopped.",
    rule: RULES.everybody,
    of: "none",
    input: NO_INPUT,
    answer: state,
    lane,
    handle: (_, call) => stateOf(call),
  }),
  "switch.stop": jsonRoute({
    summary: "The kill switch: once answered, no new effect of this tenant starts.",
    rule: RULES.stop,
    of: "none",
    input: z.strictObject({ reason }),
    answer: state,
    lane,
    async handle({ reason: why }, call) {
      await call.port.killSwitch.stop(why, { actor: call.identity.subject });
      return { stopped: true };
    },
  }),
  "switch.resume": jsonRoute({
    summary: "Lets effects start again.",
    rule: RULES.stop,
    of: "none",
    input: z.strictObject({ reason }),
    answer: state,
    lane,
    async handle({ reason: why }, call) {
      await call.port.killSwitch.resume(why, { actor: call.identity.subject });
      return { stopped: false };
    },
  }),
};

async function stateOf({ port }: Call): Promise<{ stopped: boolean }> {
  return { stopped: await port.killSwitch.isStopped() };
}
