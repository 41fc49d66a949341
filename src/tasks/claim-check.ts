import { isSallyportError } from "../model/errors.ts";
import type { Finding } from "../model/finding.ts";
import type { ClaimRef, TaskStore } from "../store/tasks.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { errorText } from "../util/error-text.ts";
import { checkHold } from "./rules.ts";

/**
 * Asked before each call of a session that works under a claim: nothing to say while the claim is live, a hard denial once
 * its fence has moved or its lease is over, and also when nobody can tell. It spares the agent the work; what makes sure is
 * `claimHold`, which looks again in the transaction that starts the effect, where tasks and operations share a store.
 */
export async function checkClaim(
  store: Pick<TaskStore, "get" | "direct">,
  claim: ClaimRef,
  clock: Clock = systemClock,
): Promise<readonly Finding[]> {
  try {
    const task = await store.get(claim.id);
    checkHold(task, claim.fence, (await store.direct?.now()) ?? clock.now());
    return [];
  } catch (error) {
    return [denied(claim, reasonOf(error))];
  }
}

function reasonOf(error: unknown): string {
  if (isSallyportError(error, "claim_lost")) return "its lease ran out, or somebody else holds it";
  if (isSallyportError(error, "not_found")) return "there is no such task";
  return `nobody can tell whether you still hold it (${errorText(error)})`;
}

function denied({ id }: ClaimRef, why: string): Finding {
  const message = `Not executed: you work on task ${id}, and ${why}. Stop working on it and claim another task.`;
  return { severity: "hard-deny", policy: "task.claim", message };
}
