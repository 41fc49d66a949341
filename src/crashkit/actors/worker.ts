import { LEASE_MS } from "../open-kit.ts";
import { orTold } from "./or-told.ts";
import type { Stage } from "./stage.ts";

const PAUSE_MS = LEASE_MS / 4;
const STOP_MS = 80;
const STOP_PERCENT = 25;

/** Goes on with what others have left, and now and then throws the kill switch for a moment. */
export async function playWorker(stage: Stage): Promise<never> {
  const { dice, timers, plan } = stage;
  const by = { actor: `person:${plan.name}` };
  for (;;) {
    for (const tenant of stage.tenants()) {
      const { recover, interactions, killSwitch } = await stage.port(tenant);
      await orTold(stage, tenant, async () => {
        // The one who had stopped it may have been killed before it went on.
        if (await killSwitch.isStopped()) await killSwitch.resume("all is well", by);
        await recover();
        await interactions.sweep();
      });
    }
    const current = stage.tenants().at(-1);
    if (current !== undefined && dice.percent(STOP_PERCENT)) {
      const { killSwitch } = await stage.port(current);
      await orTold(stage, current, async () => {
        await killSwitch.stop("a drill", by);
        await timers.sleep(STOP_MS);
        await killSwitch.resume("the drill is over", by);
      });
    }
    await timers.sleep(dice.below(2 * PAUSE_MS));
  }
}
