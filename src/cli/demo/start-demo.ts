import path from "node:path";
import { NO_RULES } from "../../gate/policy.ts";
import { askUserTool } from "../../interactions/ask-user-tool.ts";
import { allowAlways } from "../../staging/guards/allow-always.ts";
import { systemClock } from "../../util/clock.ts";
import { systemTimers } from "../../util/timers.ts";
import type { ServedParts } from "../serve.ts";
import { startAgents } from "./agents.ts";
import { businessReview, DEMO_REVIEW, techReview } from "./reviews.ts";
import { SCRIPTED } from "./scripted.ts";
import { warehouseTools } from "./tools.ts";
import { openWarehouse } from "./warehouse.ts";

/** A warehouse with three agents that go on proposing, so that there is something to decide from the first moment on. */
export function demoParts(
  { data }: { readonly data: string },
  onProblem: (error: unknown) => void,
  everyMs = 4_000,
): ServedParts {
  const warehouse = openWarehouse(path.join(data, "warehouse.db"));
  return {
    tools: [...warehouseTools(warehouse), askUserTool()],
    validators: { tech: techReview(warehouse.skus), business: businessReview },
    guard: allowAlways,
    policy: NO_RULES,
    review: DEMO_REVIEW,
    started(port) {
      const run = Math.floor(systemClock.now() / 1000) % 10_000_000;
      const agents = startAgents(SCRIPTED, {
        port,
        warehouse,
        timers: systemTimers,
        run,
        everyMs,
        onProblem,
      });
      return async () => {
        await agents.stop();
        warehouse.close();
      };
    },
  };
}
