import { type Decision, type DecisionId, newDraft } from "../model/decision.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Interaction, PendingTool, Preview } from "../model/interaction.ts";
import type { Verdict } from "../model/verdict.ts";
import { type Review, type ReviewAnswer, reviewFor } from "../policy/review-rules.ts";
import type { CallKey, Showing } from "../store/confirmations.ts";
import type { Along } from "../store/engine.ts";
import type { ClaimRef } from "../store/tasks.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { fromIso, toIso } from "../util/clock.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import {
  askersOf,
  chainOf,
  decodeAction,
  encodeAction,
  factsOf,
  ownFacts,
  type PlannedCall,
  stagedByGate,
} from "./action.ts";
import type { GateContext } from "./context.ts";
import { classesOf, definitionsOf, type Looks, looksAt, previewOf } from "./show.ts";

/** Calls to be decided on as a whole, and who asks for them. */
export interface Proposal {
  readonly calls: readonly PlannedCall[];
  readonly keys: readonly Pick<CallKey, "key" | "step">[];
  readonly sessionId: string;
  /** The agent, then whoever delegated to it. */
  readonly chain: readonly string[];
  /** On whose behalf; empty when nobody was named. */
  readonly owner: string;
  readonly messageId: string;
  /** The claim of a task under which it was asked for, and must still be when it runs. */
  readonly claim?: ClaimRef;
  /** People who changed it and so may not approve it. */
  readonly editors?: readonly string[];
  /** Facts for the record: what it was edited from, why it came back. */
  readonly facts?: JsonObject;
  /** To whom what it takes the place of was handed; empty: as the review rules say. */
  readonly assignedTo?: string;
  /** What it takes the place of; written in the transaction that asks. */
  readonly along?: (id: DecisionId) => readonly Along[];
}

export type Proposed =
  | { readonly proposed: true; readonly interaction: Interaction; readonly preview: Preview }
  | { readonly proposed: false; readonly id: DecisionId; readonly reason: string };

/** Stage, technical review, business review, preview, question: the one way into the inbox. */
export async function propose(proposal: Proposal, context: GateContext): Promise<Proposed> {
  const { calls, keys, sessionId, chain, owner, messageId, claim, facts = {} } = proposal;
  const { editors = [] } = proposal;
  const edited = editors.length === 0 ? {} : { editors };
  const agent = chain[0] ?? "agent";
  const sourceTool = calls.length === 1 ? (calls[0]?.tool ?? "") : "bundle";
  const bound = claim === undefined ? {} : { claim: { ...claim } };
  const metadata = { requester: agent, chain, owner, messageId, keys, facts, ...edited, ...bound };
  const diff = { sourceTool, raw: encodeAction(calls), metadata };
  context.at("S1.before");
  const draft = stagedByGate(newDraft(sessionId, diff, toIso(context.judging.now())));
  const decision = await context.store.decisions.stage(draft, { actor: agent });
  context.at("S1.after");
  const along = proposal.along?.(decision.id);
  const review = () => reviewOn(decision, context, along, proposal.assignedTo);
  // What takes the place of something else does so in its last write; until then the other one stands, and it may be repeated.
  return along === undefined ? pastFirstWrite(decision.id, BEGUN, review) : review();
}

/** For the agent. */
export const BEGUN =
  "The proposal is stored and will be put before people by the next recovery. Do not propose it again; ask for this decision.";

/** From wherever it stands in review up to the question: also for what a process that is gone had only begun. */
export async function reviewOn(
  decision: Decision,
  context: GateContext,
  along: readonly Along[] = [],
  assignedTo = "",
): Promise<Proposed> {
  const { id } = decision;
  const { at, staging, store } = context;
  let reviewed = decision;
  if (decision.state === "pending_tech") {
    at("S2a.before");
    reviewed = await staging.validateTech(id);
    at("S2a.after");
  }
  if (reviewed.state !== "pending_ml") {
    return { proposed: false, id, reason: reviewed.techVerdict.reason };
  }
  at("S2b.before");
  const verdict = await context.validateBusiness(reviewed.diff);
  at("S2b.after");
  const refused = async (no: Verdict): Promise<Proposed> => {
    await store.decisions.updateBizVerdict(id, no);
    return { proposed: false, id, reason: no.reason };
  };
  if (!verdict.approved) return refused(verdict);
  const looks = await looksAt(reviewed, context.deciding);
  const review = reviewOf(reviewed, context, looks.dryRun);
  // Rules that contradict each other: nobody could ever approve it, so nobody is asked.
  if (!review.possible) return refused({ ...OVERTAKEN, reason: review.problem });
  const handed = assignedTo === "" ? {} : { assignedTo };
  const asked = { ...review.review, ...handed };
  const showing = await showingOf(reviewed, asked, verdict, context, { looks });
  at("S3.before");
  try {
    const by = { actor: chainOf(decision)[0] ?? "agent" };
    const interaction = await store.interactions.show({ ...showing, along }, by);
    at("S3.after");
    return { proposed: true, interaction, preview: showing.preview };
  } catch (error) {
    // Somebody was faster: nobody will be asked about this one, so it must not wait for an answer.
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

/** Who has to say yes, and until when; `dryRuns` as they are, or were, shown. */
export function reviewOf(
  decision: Decision,
  { reviewRules, deciding, approvalMs }: GateContext,
  dryRuns: readonly JsonValue[],
): ReviewAnswer {
  const calls = decodeAction(decision);
  const classes = classesOf(calls, deciding.registry, dryRuns);
  const named = calls.map(({ tool }, index) => ({
    tool,
    safetyClass: classes[index] ?? "irreversible",
  }));
  return reviewFor(named, reviewRules, { deadlineMs: approvalMs });
}

export async function showingOf(
  decision: Decision,
  review: Review,
  machine: Verdict,
  context: GateContext,
  { looks }: { readonly looks: Looks },
): Promise<Showing> {
  const { sessionId } = decision;
  const { registry } = context.deciding;
  const calls = decodeAction(decision);
  const { requires, deadlineMs, assignedTo, escalation } = review;
  const preview = previewOf(
    decision,
    {
      policyHash: context.judging.policy.hash,
      requires,
      // From the store's own time, so that no process with a wrong clock makes a question longer or shorter.
      expiresAt: toIso(fromIso(decision.updatedAt) + deadlineMs),
      nonce: context.newNonce(),
      epoch: await context.store.epoch.current(),
    },
    looks,
    context.deciding,
  );
  return {
    preview,
    definitions: definitionsOf(calls, registry),
    keys: keysOf(decision, calls),
    question: {
      sessionId,
      callId: calls[0]?.callId ?? decision.id,
      displayText: textOf(chainOf(decision)[0] ?? "agent", calls),
      chain: askersOf(decision),
      pendingTool: pendingTool(calls, preview),
      requires,
      ...(assignedTo === undefined ? {} : { assignedTo }),
      ...(escalation === undefined ? {} : { escalation }),
      // The decision's own business verdict is the person's; what the machine said before stays with the question.
      metadata: { ...factsOf(decision), machine: verdictFacts(machine) },
    },
  };
}

/** The hash of each keyed call is made from what would run. It is kept out of the metadata, which the log shows. */
function keysOf(decision: Decision, calls: readonly PlannedCall[]): readonly CallKey[] {
  const keyed = (ownFacts(decision)["keys"] ?? []) as Proposal["keys"];
  return keyed.flatMap(({ key, step }) => {
    const call = calls[step];
    return call === undefined ? [] : [{ key, step, actionHash: callHash(call.tool, call.input) }];
  });
}

/** SHA-256 of tool and input: the same key with another content is a mistake. */
export function callHash(tool: string, input: JsonValue): string {
  return sha256Hex(canonicalJson({ tool, input }));
}

function verdictFacts(verdict: Verdict): JsonObject {
  const { approved, score, severity, reason, validator, policyVersion } = verdict;
  return { approved, score, severity, reason: reason.toWellFormed(), validator, policyVersion };
}

/** Written without the model: what is asked is what would run. */
export function textOf(agent: string, calls: readonly PlannedCall[]): string {
  const names = calls.map(({ tool }) => tool);
  if (calls.length === 1) return `${agent} asks to run ${names[0]}.`;
  return `${agent} asks to run ${calls.length} calls as a whole: ${names.join(", ")}.`;
}

export function pendingTool(calls: readonly PlannedCall[], { dryRun }: Preview): PendingTool {
  const [first] = calls;
  const single = calls.length === 1 && first !== undefined;
  const looks = Array.isArray(dryRun) ? dryRun : [dryRun];
  return {
    tool_name: single ? first.tool : "bundle",
    args_json: canonicalJson(
      single ? first.input : calls.map(({ tool, input }) => ({ tool, input })),
    ),
    summary: looks.map(inWords).join("\n"),
  };
}

/** What a dry run says of itself, or all of it when it says nothing. */
function inWords(look: JsonValue): string {
  const said = typeof look === "object" && look !== null && !Array.isArray(look) ? look : {};
  return typeof said["summary"] === "string" ? said["summary"].toWellFormed() : canonicalJson(look);
}

/**
 * For work that follows a write of its own: an error of the store that says "nothing was written" is true of one write only,
 * and whoever believed it would repeat the whole. It becomes one that names the record that is there already. It has no
 * cause, because errors are recognised through their causes, and this one is not safe to repeat.
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
