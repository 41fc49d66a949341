import { SallyportError } from "../model/errors.ts";
import type { Change } from "./engine.ts";

/** A take is alone in its change and takes a whole number of rows. Throws invalid_input. */
export function checkTake({ steps }: Change): void {
  for (const step of steps) {
    if (step.op !== "take") continue;
    if (steps.length === 1 && Number.isSafeInteger(step.limit) && step.limit > 0) continue;
    const hint = "Let a take be the only step of its change, with a limit of one or more.";
    throw new SallyportError("invalid_input", { what: "change", hint });
  }
}
