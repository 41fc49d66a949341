import { SallyportError } from "../model/errors.ts";
import { cutText } from "../util/error-text.ts";
import type { FlowModel } from "./flow-model.ts";
import type { FlowParts, Run } from "./run.ts";

const LONGEST_QUOTE = 2_000;

/** Tells the model what was wrong with its answer. After too many in a row the run ends with what it has. */
export function correct({ state, work, parts }: Run, said: string, problem: string): void {
  work.corrections += 1;
  if (work.corrections > parts.maxCorrections) {
    work.problem = `It ended early: ${work.corrections} answers of the model in a row could not be used.`;
    state.common.phase = "done";
    return;
  }
  const text = `That could not be used: ${problem}. Answer again with one JSON object of the forms listed.`;
  const quote = cutText(said.toWellFormed(), LONGEST_QUOTE);
  work.entries.push({ kind: "correction", said: quote === "" ? "(nothing)" : quote, text });
}

/** Throws invalid_input for a flow that was made without one. */
export function modelOf({ model }: Pick<FlowParts, "model">): FlowModel {
  if (model !== undefined) return model;
  const hint = "A flow without a model can deliver what is stored, but not plan or execute.";
  throw new SallyportError("invalid_input", { what: "model", hint });
}
