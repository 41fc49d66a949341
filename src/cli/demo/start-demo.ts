import path from "node:path";
import { NO_RULES } from "../../gate/policy.ts";
import { askUserTool } from "../../interactions/ask-user-tool.ts";
import { allowAlways } from "../../staging/guards/allow-always.ts";
import { systemClock } from "../../util/clock.ts";
import { systemTimers } from "../../util/timers.ts";
import type { ServedParts } from "../serve.ts";
import { type DemoAgent, type DemoOptions, startAgents } from "./agents.ts";
import { businessReview, DEMO_REVIEW, techReview } from "./reviews.ts";
import { SCRIPTED } from "./scripted.ts";
import { warehouseTools } from "./tools.ts";
import { openWarehouse } from "./warehouse.ts";

export interface DemoTerms extends Pick<DemoOptions, "onProblem"> {
  readonly everyMs?: number;
  /** Who works there; those that follow a script when left out. */
  readonly agents?: readonly DemoAgent[];
}

/** A warehouse with three agents that go on proposing, so that there is something to decide from the first moment on. */
export function demoParts(
  { data }: { readonly data: string },
  { onProblem, everyMs = 4_000, agents: chosen = SCRIPTED }: DemoTerms,
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
      const agents = startAgents(chosen, {
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
