import type { Change, EventPlan, Step } from "./engine.ts";

/** A step with the event that tells of it, to be written along with others in one transaction. */
export interface Along {
  readonly step: Step;
  /** Given the step's place in the change. */
  readonly event?: (step: number) => EventPlan;
}

/** One change of several: all of them hold and are written, or none. */
export function along(parts: readonly Along[]): Change {
  return {
    steps: parts.map(({ step }) => step),
    events: parts.flatMap(({ event }, index) => (event === undefined ? [] : [event(index)])),
  };
}
