import type { Finding } from "../model/finding.ts";
import { isMet } from "../model/promise.ts";
import type { LoopStage, Run, RunId } from "../model/run.ts";
import { errorText } from "../util/error-text.ts";
import type { ActionPlan } from "./plan.ts";
import type { Runs } from "./runs.ts";

/** The parts of a loop that are not ours. Shape: callbacks; the loop waits for each. */
export interface LoopParts<Outcome> {
  /** What to do next, or that nothing is left to do. */
  reason(run: Run): Promise<ActionPlan | "finished">;
  /** Findings that stop this action; none to let it go on. */
  gate(action: ActionPlan, run: Run): Promise<readonly Finding[]>;
  act(action: ActionPlan, run: Run): Promise<Outcome>;
  /** Told what came of it, or why it was not done. */
  observe(seen: Observation<Outcome>, run: Run): Promise<void>;
  /** Asked after each round: a text ends the run for this reason. */
  stop?(run: Run): string | undefined;
}

export type Observation<Outcome> =
  | { readonly action: ActionPlan; readonly outcome: Outcome }
  | { readonly action: ActionPlan; readonly refused: readonly Finding[] }
  | { readonly action: ActionPlan; readonly error: string };

/**
 * Reason, gate, act, observe, update, evaluate, until the run is done or stopped. "Finished" counts only when the run's
 * promise is kept; before that it is a round like any other, so that a loop that keeps saying so ends with its budget. Every
 * stage is an event of the run. May be called again after a crash: it goes on with a new round.
 */
export async function runLoop<Outcome>(
  id: RunId,
  runs: Runs,
  parts: LoopParts<Outcome>,
): Promise<Run> {
  for (;;) {
    const before = await runs.get(id);
    if (before.status !== "open") return before;
    const by = { actor: before.lead };
    const halt = (reason: string) => runs.tell(id, { kind: "stopped", reason }, by);
    if (before.rounds >= before.budget) return halt("Its budget of rounds is used up.");
    const round = before.rounds + 1;
    const stage = (name: LoopStage) => runs.tell(id, { kind: "staged", stage: name, round }, by);

    let run = await stage("reason");
    const action = await parts.reason(run);
    run = await stage("gate");
    if (action !== "finished") {
      const refused = (await parts.gate(action, run)).filter(
        ({ severity }) => severity !== "warning",
      );
      if (refused.length > 0) {
        run = await stage("observe");
        await parts.observe({ action, refused }, run);
      } else {
        run = await stage("act");
        const outcome = await attempt(() => parts.act(action, run));
        run = await stage("observe");
        await parts.observe({ action, ...outcome }, run);
      }
    } else {
      run = await stage("observe");
    }
    await stage("update");
    run = await stage("evaluate");
    const [promise] = run.promises;
    if (action === "finished" && promise !== undefined && isMet(promise, run.evidence)) {
      if (run.phase === "ship") return runs.tell(id, { kind: "done" }, by);
    }
    const why = parts.stop?.(run);
    if (why !== undefined) return halt(why);
  }
}

/** An action that throws has failed; that is something to observe and no end of the loop. */
async function attempt<Outcome>(
  work: () => Promise<Outcome>,
): Promise<{ readonly outcome: Outcome } | { readonly error: string }> {
  try {
    return { outcome: await work() };
  } catch (error) {
    return { error: errorText(error) };
  }
}
