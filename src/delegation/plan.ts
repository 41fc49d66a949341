import { DEFAULT_PERMISSION, type Role, type WritePermission } from "../model/delegation.ts";
import type { Clock } from "../util/clock.ts";
import type { Random } from "../util/random.ts";

/** What has to be there before anything is handed to a sub-agent. */
export interface DelegationPlan {
  readonly planId: string;
  readonly role: Role;
  readonly task: string;
  /** All that the sub-agent will know: it never sees the conversation it comes from. */
  readonly capsule: string;
  readonly writePermission: WritePermission;
  readonly promiseId: string;
  /** The gate's evaluation of this very plan. */
  readonly traceId: string;
}

/** The counterpart for one step of a run's own loop. */
export interface ActionPlan {
  readonly planId: string;
  readonly action: string;
  readonly doneWhen: string;
}

export interface PlanSources {
  readonly clock: Clock;
  readonly random: Random;
}

export type PlanDraft = Omit<DelegationPlan, "planId" | "writePermission"> & {
  readonly writePermission?: WritePermission;
};

/** Keeps everything as given: checking is the business of `validatePlan`, and trimming would hide what it has to see. */
export function createPlan(draft: PlanDraft, sources: PlanSources): DelegationPlan {
  const { role, task, capsule, promiseId, traceId } = draft;
  const { writePermission = DEFAULT_PERMISSION[role] } = draft;
  return { planId: planId(sources), role, task, capsule, writePermission, promiseId, traceId };
}

export function createActionPlan(
  draft: Omit<ActionPlan, "planId">,
  sources: PlanSources,
): ActionPlan {
  return { planId: planId(sources), ...draft };
}

/** `plan-1763200000000-00a7`. Two of one millisecond may be equal, once in 65,536: nothing is keyed by it. */
function planId({ clock, random }: PlanSources): string {
  const [high = 0, low = 0] = random.bytes(2);
  return `plan-${clock.now()}-${((high << 8) | low).toString(16).padStart(4, "0")}`;
}
