// Step "propose": stages the calls as one decision, then takes it through review to its confirmation. Before it: judge has
// said that a person must be asked. After it: review, show, and decide once a person answers.

import type { Decision, DecisionId } from "../model/decision.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Interaction, Preview } from "../model/interaction.ts";
import type { Verdict } from "../model/verdict.ts";
import type { Along } from "../store/engine.ts";
import { toIso } from "../util/clock.ts";
import { agentOf, type CallProposal, draftOf, withProposal } from "./action.ts";
import type { GateContext } from "./context.ts";
import { reviewTier } from "./review.ts";
import { looksAt, reviewOf, showingOf } from "./show.ts";

/** Calls to be decided on as a whole. */
export interface Proposal extends CallProposal {
  readonly sessionId: string;
  /** The assignee of what it replaces; empty: as the review rules say. */
  readonly assignedTo?: string;
  /** What it replaces; written in the transaction that opens its confirmation. */
  readonly along?: (id: DecisionId) => readonly Along[];
}

export type Proposed =
  | { readonly proposed: true; readonly interaction: Interaction; readonly preview: Preview }
  | { readonly proposed: false; readonly id: DecisionId; readonly reason: string };

/** Stage, technical review, business review, preview, confirmation: the one way into the inbox. */
export async function propose(context: GateContext, proposal: Proposal): Promise<Proposed> {
  context.at("S1.before");
  const draft = draftOf(proposal.sessionId, proposal, toIso(context.clock.now()));
  const decision = await context.store.decisions.stage(draft, { actor: agentOf(proposal) });
  context.at("S1.after");
  const along = proposal.along?.(decision.id);
  const review = () => reviewOn(context, decision, along, proposal.assignedTo);
  // A replacement takes effect with its last write. Until then the replaced one stands, and the proposal may be repeated.
  return along === undefined ? pastFirstWrite(decision.id, BEGUN, review) : review();
}

/** For the agent. */
export const BEGUN =
  "The proposal is stored and will be put before people by the next recovery. Do not propose it again; ask for this decision.";

/** From any point of the review up to the confirmation: also for a proposal that another process left unfinished. */
export async function reviewOn(
  context: GateContext,
  staged: Decision,
  along: readonly Along[] = [],
  assignedTo = "",
): Promise<Proposed> {
  const { id } = staged;
  const { at, store } = context;
  let reviewed = staged;
  if (staged.state === "pending_tech") {
    at("S2a.before");
    reviewed = (await reviewTier(context, "tech", staged)).decision;
    at("S2a.after");
  }
  if (reviewed.state !== "pending_ml") {
    return { proposed: false, id, reason: reviewed.techVerdict.reason };
  }
  at("S2b.before");
  const { verdict } = await reviewTier(context, "business", reviewed, "left_to_a_person");
  at("S2b.after");
  if (!verdict.approved) return { proposed: false, id, reason: verdict.reason };
  const decision = withProposal(reviewed);
  const { calls } = decision.proposal;
  const looks = await looksAt(context, decision.sessionId, calls);
  const review = reviewOf(context, calls, looks.dryRun);
  // Review rules that contradict each other: no one could ever approve it, so no one is asked.
  if (!review.possible) {
    await store.decisions.updateBizVerdict(id, { ...OVERTAKEN, reason: review.problem });
    return { proposed: false, id, reason: review.problem };
  }
  const terms = { ...review.review, ...(assignedTo === "" ? {} : { assignedTo }) };
  const showing = await showingOf(context, decision, terms, verdict, looks);
  at("S3.before");
  try {
    const by = { actor: agentOf(decision.proposal) };
    const interaction = await store.interactions.show({ ...showing, along }, by);
    at("S3.after");
    return { proposed: true, interaction, preview: showing.preview };
  } catch (error) {
    // Another proposal was first: no one will be asked about this one, so it must not wait for an answer.
    if (
      isSallyportError(error, "already_exists") ||
      isSallyportError(error, "concurrent_modification")
    ) {
      await store.decisions.updateBizVerdict(id, OVERTAKEN);
    }
    throw error;
  }
}

const OVERTAKEN: Verdict = {
  approved: false,
  score: 0,
  severity: "",
  reason: "The same was asked or decided by somebody else in the meantime.",
  validator: "port",
  policyVersion: "",
};

/**
 * For work after a first write. A store error that says "nothing was written" is true of one write only, and a caller that
 * believed it would repeat everything. It becomes partly_written, which names the stored record. It has no cause, because
 * errors are recognised through their causes, and this one is not safe to repeat.
 */
export async function pastFirstWrite<Result>(
  id: string,
  hint: string,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SallyportError) || !isStoreFailure(error)) throw error;
    const said = error.details.hint ?? error.message;
    throw new SallyportError("partly_written", {
      id,
      failed: error.code,
      hint: `${hint} The store said: ${said}`,
    });
  }
}

function isStoreFailure(error: SallyportError): boolean {
  return error.retry === "safe" || isSallyportError(error, "commit_unknown");
}
