// Step "run": executes an approved decision, call by call, after comparing it with what was shown. Before it: decide, or recover
// in another process. After it: attempt, for each call.

import { isDeepStrictEqual } from "node:util";
import type { Decision, DecisionId, DecisionState } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { type Interaction, previewHash } from "../model/interaction.ts";
import type { CallAnswer, Operation } from "../model/operation.ts";
import { executedMove } from "../store/decisions.ts";
import type { Along } from "../store/engine.ts";
import type { Shown } from "../store/interactions.ts";
import { notTakenBack } from "../store/operations.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import { within } from "../util/timers.ts";
import {
  answerOf,
  awaitsPermit,
  awaitsTool,
  held,
  isElsewhere,
  isExternal,
  recordedFrom,
  withEdit,
} from "./answers.ts";
import { runOrder } from "./attempt.ts";
import type { GateContext } from "./context.ts";
import { type Caller, type Judged, judgeCall, saidAfter } from "./judge.ts";
import { type Executed, type Order, type WatchedCall, watchSession } from "./order.ts";
import { takeBackAll } from "./rollback.ts";
import {
  askersOf,
  type CallDecision,
  driftOf,
  type PlannedCall,
  pinnedTool,
  requestedBy,
  reviewOf,
  whileLooking,
  withProposal,
} from "./show.ts";
import { goBack } from "./supersede.ts";
import { undoIdOf } from "./undo.ts";

/**
 * Executes an approved decision: every call in order, once. Before the first one the tools are compared with those that were
 * shown and the dry runs are repeated; if something differs, nothing runs and it goes back to review with the difference.
 * When a call fails, those before it are undone in reverse.
 */
export async function runDecision(
  context: GateContext,
  id: DecisionId,
  hash: string,
  how: RunOptions = {},
): Promise<readonly CallAnswer[]> {
  const decision = await context.store.decisions.get(id);
  // A recovery may have executed it between the yes and this read: then its records are the answer.
  const answers = CLOSED.includes(decision.state)
    ? await recordedFrom(context, id, 0, withProposal(decision).proposal.calls.length)
    : await runFrom(context, decision, 0, hash, how);
  context.at("S8.before");
  return answers;
}

/** A person's yes does not end with the connection it came over; a caller that waits for its own call may stop it. */
interface RunOptions {
  readonly signal?: AbortSignal;
}

const CLOSED: readonly DecisionState[] = ["executed", "failed"];

/** What a person answers to, with everything around it, as of one read. */
export interface AskedDecision {
  readonly question: Interaction;
  readonly shown: Shown | undefined;
  readonly decision: Decision;
  readonly isStopped: boolean;
}

/** A question that was closed by a yes, and the answers of the calls that followed from it. */
export interface AnsweredRun {
  readonly interaction: Interaction;
  readonly answers: readonly CallAnswer[];
}

/**
 * How long the looks before a call may hold up the yes to it. A person waits for the answer anyway; what takes longer must not
 * be lost with the process, so then the yes is stored first, and the looks are repeated.
 */
const HOLDS_UP_MS = 1_000;

/**
 * The yes that completes an approval and the intent of its call as one transaction, where this process has the tool and
 * everything that is compared before a call runs is as it was shown. The conditions of both are conditions of that transaction.
 * Undefined when nothing was written: a bundle, and whatever is stopped, changed, missing or slow, takes one step after the
 * other. The yes is then written by itself, and `runDecision` continues.
 */
export async function runWithYes(
  context: GateContext,
  { shown, decision: stored, isStopped }: AskedDecision,
  yes: readonly Along[],
  hash: string,
): Promise<AnsweredRun | undefined> {
  const isOurs = stored.state === "pending_ml" && stored.origin === "port" && !isStopped;
  if (!isOurs || shown === undefined || isExternal(shown)) return undefined;
  if (forgeryOf(stored, shown, hash) !== undefined) return undefined;
  const decision = { ...withProposal(stored), state: "approved" } as const;
  const [call, ...others] = decision.proposal.calls;
  if (call === undefined || others.length > 0) return undefined;
  if (context.registry.get(call.tool) === undefined) return undefined;
  const versions = bundleVersions(context, decision, shown);
  const running = { decision, shown, call, step: 0, versions };
  const ready = await within(context, HOLDS_UP_MS, async () => {
    const difference = await differenceOf(context, decision, shown, 0);
    return difference === undefined ? readyStep(context, running) : undefined;
  });
  if (ready === undefined || "text" in ready) return undefined;
  const executed = await runOrder(context, { ...ready.order, yes });
  const { interaction } = executed;
  if (interaction === undefined) return undefined;
  const answer = await answerOfStep(context, running, ready, executed);
  const answers = await runCalls(context, running, 0, answer);
  context.at("S8.before");
  return { interaction, answers };
}

/** The calls from this step on; those before it were executed, and are undone when it cannot continue. */
export async function runFrom(
  context: GateContext,
  stored: Decision | CallDecision,
  first: number,
  approved?: string,
  how: RunOptions = {},
): Promise<readonly CallAnswer[]> {
  const { id, state } = stored;
  const shown = await context.store.interactions.shown(id);
  if (state !== "approved" || shown === undefined) {
    const hint = "Only what was shown and approved can be executed.";
    throw new SallyportError("illegal_transition", { id, from: state, to: "executed", hint });
  }
  // Before anything of the payload is read.
  const forged = forgeryOf(stored, shown, approved);
  if (forged !== undefined) {
    await takeBackAll(context, stored, forged);
    return [{ answer: "failed", text: forged }];
  }
  const decision = withProposal(stored);
  const { calls } = decision.proposal;
  const left = calls.slice(first);
  if (isExternal(shown)) return left.map(() => awaitsPermit(id));
  // Not even a dry run while everything is stopped: it would have to be repeated later.
  if (await context.store.killSwitch.isStopped()) return left.map(() => held(id));
  const missing = left.find(({ tool }) => context.registry.get(tool) === undefined);
  if (missing !== undefined) {
    await context.store.leftBehind.awaitTool(id, { actor: "executor" });
    return left.map(() => awaitsTool(id, missing.tool));
  }
  const changed = await changedSince(context, decision, shown, first);
  if (changed !== undefined) {
    if (changed === "elsewhere") return recordedFrom(context, id, first, calls.length);
    return left.map(() => changed);
  }
  const versions = bundleVersions(context, decision, shown);
  return runCalls(context, { decision, shown, versions, ...how }, first);
}

/** The loop over the calls; `begun` is the answer of the first one when it was executed already. */
async function runCalls(
  context: GateContext,
  { decision, shown, versions, ...how }: Omit<RunningStep, "call" | "step">,
  first: number,
  begun?: CallAnswer,
): Promise<readonly CallAnswer[]> {
  const { id } = decision;
  const { calls } = decision.proposal;
  const answers: CallAnswer[] = [];
  for (const [step, call] of calls.entries()) {
    if (step < first) continue;
    const running = { decision, shown, call, step, versions, ...how };
    const answer = (step === first && begun) || (await runStep(context, running));
    // The approval stands. Nothing is undone: what was executed was allowed, and the rest follows when work resumes.
    if (answer === "stopped") return [...answers, ...calls.slice(step).map(() => held(id))];
    if (answer.answer !== "done" && answer.answer !== "unknown") {
      const { state: now } = await context.store.decisions.get(id);
      const isOurs = now === "approved" && (await takeBackAll(context, decision, answer.text));
      const all = await recordedFrom(context, id, first, calls.length);
      // The calls before it have been undone, and are reported as such.
      return isOurs ? [...all.slice(0, step - first), answer] : all;
    }
    answers.push(answer);
    if (answer.answer !== "done") break;
  }
  return answers;
}

/**
 * Compares what would run with what was shown. Undefined when it is the same; otherwise nothing runs, and the answer says
 * what became of it, or that another process has begun it meanwhile.
 */
export async function changedSince(
  context: GateContext,
  decision: CallDecision,
  shown: Shown,
  first: number,
): Promise<CallAnswer | "elsewhere" | undefined> {
  const difference = await differenceOf(context, decision, shown, first);
  if (difference === undefined) return undefined;
  // What another process executed meanwhile is no reason to start again, and not for this one to undo.
  if (await isElsewhere(context, decision.id, first)) return "elsewhere";
  return (await notAsApproved(context, decision, first, difference)) ?? "elsewhere";
}

async function differenceOf(
  context: GateContext,
  decision: CallDecision,
  shown: Shown,
  first: number,
): Promise<Difference | undefined> {
  const rules = await changedRules(context, decision, shown, first);
  if (rules !== undefined) return rules;
  const text = await driftOf(context, decision, first, shown);
  return text === undefined ? undefined : { refused: false, text };
}

/** How the calls differ from what was approved: they are refused now, or have to be reviewed again. */
interface Difference {
  readonly refused: boolean;
  readonly text: string;
}

/**
 * A person approved under certain rules and requirements. When either has changed, the approval is void: what the new rules
 * refuse is refused before its first call, everything else goes back to review (I4). Undefined when nothing changed.
 */
async function changedRules(
  context: GateContext,
  decision: CallDecision,
  { preview }: Shown,
  first: number,
): Promise<Difference | undefined> {
  const { policy } = context;
  if (policy.hash !== preview.policyHash) {
    const why = await refusal(context, decision, first);
    if (why !== undefined) return { refused: true, text: why };
    const [was, is] = [preview.policyHash, policy.hash].map((hash) => hash.slice(0, 12));
    const text = `The rules were changed since: they were ${was}, now they are ${is} (version ${policy.version}).`;
    return { refused: false, text };
  }
  // No person was asked, so what people are required does not matter; `judgedAgain` asks whether one is needed by now.
  if (preview.lane === "review") return undefined;
  const shown = Array.isArray(preview.dryRun) ? preview.dryRun : [];
  const now = reviewOf(context, decision.proposal.calls, shown);
  if (!now.possible) return { refused: true, text: now.problem };
  const [was, is] = [preview.requires, now.review.requires].map((one) => canonicalJson(one));
  if (was === is) return undefined;
  return { refused: false, text: `Other people have to say yes now. Then: ${was}. Now: ${is}.` };
}

async function refusal(
  context: GateContext,
  { sessionId, proposal: { calls, chain } }: CallDecision,
  first: number,
): Promise<string | undefined> {
  const { tenant } = context.store;
  for (const call of calls.slice(first)) {
    const { workingDirectory } = call;
    const caller = { tenant, sessionId, chain, workingDirectory };
    const judged = await judgeCall(context, call, caller, "approved");
    if (judged.verdict === "deny") return judged.text;
  }
  return undefined;
}

/** Nothing of it has run: it goes back to review, or is given up. Undefined when another process has begun it meanwhile. */
async function notAsApproved(
  context: GateContext,
  decision: CallDecision,
  first: number,
  { refused, text: why }: Difference,
): Promise<CallAnswer | undefined> {
  if (first === 0 && !refused) return goBack(context, decision, why);
  const text = refused ? why : `Not executed: ${why} Propose it again.`;
  const isOurs = await takeBackAll(context, decision, text);
  return isOurs ? { answer: "failed", text } : undefined;
}

/** The bytes that would run must be those that were shown, whatever happened to the stored rows. */
export function forgeryOf(
  decision: Decision,
  shown: Shown,
  approved = shown.hash,
): string | undefined {
  const { preview, hash } = shown;
  const isWhole = previewHash(preview) === hash && hash === approved;
  const { machineVerdict: machine } = decision;
  const isSame =
    sha256Hex(decision.diff.raw) === preview.actionHash &&
    // Decisions of earlier versions have it in the preview alone.
    (machine.validator === "" || isDeepStrictEqual(machine, preview.machine)) &&
    decision.sessionId === preview.sessionId &&
    canonicalJson(askersOf(requestedBy(decision))) === canonicalJson(preview.askers);
  if (isWhole && isSame) return undefined;
  return "Not executed: what is stored is not what was approved. Tell the operator, and propose it again.";
}

interface RunningStep extends RunOptions {
  readonly decision: CallDecision;
  readonly shown: Shown;
  readonly call: PlannedCall;
  readonly step: number;
  readonly versions: BundleVersions;
}

async function runStep(
  context: GateContext,
  running: RunningStep,
): Promise<CallAnswer | "stopped"> {
  const ready = await readyStep(context, running);
  if ("text" in ready) return { answer: "failed", text: ready.text };
  const executed = await runOrder(context, ready.order);
  if (executed.status === "refused" && executed.reason === "stopped") return "stopped";
  return answerOfStep(context, running, ready, executed);
}

interface ReadyStep extends JudgedAgain {
  readonly order: Order;
}

/** The order of a call, with everything that must hold for it; the text says why it may not run. */
async function readyStep(
  context: GateContext,
  { decision, shown, call, step, versions, ...how }: RunningStep,
): Promise<ReadyStep | { readonly text: string }> {
  const { store } = context;
  const { preview, hash, definitions } = shown;
  const pinned = pinnedTool(call, definitions[step], context.registry);
  if (!pinned.fits) return { text: `Not executed: ${pinned.why}` };
  const { sessionId, proposal } = decision;
  const { claim, messageId, calls } = proposal;
  const isLast = step === calls.length - 1;
  const { workingDirectory } = call;
  const again = await judgedAgain(context, decision, call);
  if ("text" in again) return again;
  if (preview.lane === "review" && again.verdict === "ask") return { text: ASKS_BY_NOW };
  const { places, judgePlace } = again;
  const order: Order = {
    operationId: `${decision.id}.${step}`,
    tool: pinned.tool,
    definitionHash: pinned.definition,
    input: call.input,
    chain: askersOf(proposal),
    holds: [
      store.epoch.holdOf(preview.epoch),
      ...context.claimHolds(claim),
      ...(step === 0 ? [] : [notTakenBack(undoIdOf(`${decision.id}.${step - 1}`, 1))]),
    ],
    sessionId,
    messageId,
    callId: call.callId,
    turn: call.turn,
    step,
    workingDirectory,
    places,
    judgePlace,
    expectedVersions: [versions.expected(step)],
    watch: watchBoth(
      watchSession(context, sessionId, pinned.tool),
      isLast ? undefined : () => versions.watch(step),
    ),
    approval: { decisionId: decision.id, hash, awaitsTool: decision.awaitsTool },
    actor: "executor",
    closes: closing(decision, step, calls.length),
    ...how,
  };
  return { ...again, order };
}

async function answerOfStep(
  context: GateContext,
  { decision, step, versions }: RunningStep,
  { caller, facts }: ReadyStep,
  executed: Executed,
): Promise<CallAnswer> {
  if (executed.status === "done") versions.done(step, executed.operation);
  const answer = await saidAfter(context, caller, facts, answerOf(executed));
  return withEdit(context.store, decision, step, answer);
}

/** A rule that was made since the approval binds the call too: the stricter one wins. The text says why it may not run. */
export async function judgedAgain(
  context: GateContext,
  { sessionId, proposal: { chain, claim } }: CallDecision,
  call: PlannedCall,
): Promise<JudgedAgain | { readonly text: string }> {
  const { tenant } = context.store;
  const { workingDirectory } = call;
  const bound = claim === undefined ? {} : { claim };
  const caller = { tenant, sessionId, chain, workingDirectory, ...bound };
  const judged = await judgeCall(context, { ...call }, caller, "approved");
  if (judged.verdict === "deny" || judged.verdict === "failed") return { text: judged.text };
  const { places = judged.places } = call;
  if (canonicalJson(places) !== canonicalJson(judged.places)) return { text: MOVED };
  const { verdict, facts, judgePlace } = judged;
  return { verdict, caller, facts, places, judgePlace };
}

interface JudgedAgain
  extends Pick<
    Extract<Judged, { verdict: "allow" | "review" | "ask" }>,
    "verdict" | "facts" | "places" | "judgePlace"
  > {
  readonly caller: Caller;
}

const ASKS_BY_NOW =
  "Not executed: a person has to be asked about this by now, and the machine reviews alone agreed to it. Propose it again.";

const MOVED =
  "Not executed: a path of the call leads to another place than the one that was approved. Propose it again.";

/** Changed targets of earlier calls of the session are kept for rollbacks, those of later calls for the bundle. */
function watchBoth(
  session: (() => Promise<WatchedCall>) | undefined,
  bundle: (() => Promise<() => Promise<void>>) | undefined,
): NonNullable<Order["watch"]> {
  return async () => {
    const [afterwards, later] = await Promise.all([session?.(), bundle?.()]);
    return async () => {
      const [changed] = await Promise.all([afterwards?.(), later?.()]);
      return changed ?? [];
    };
  };
}

/** The success of the last step moves the decision to executed, in the same transaction. */
export function closing(
  { id, sessionId }: Pick<Decision, "id" | "sessionId">,
  step: number,
  steps: number,
): NonNullable<Order["closes"]> {
  return (outcome) => {
    if (outcome.status !== "success" || step !== steps - 1) return undefined;
    const proof = { steps, output_sha256: sha256Hex(outcome.output.toWellFormed()) };
    return executedMove(id, proof, "executor", sessionId);
  };
}

/** The versions under which the calls of a decision may run, while it is executed. */
interface BundleVersions {
  /** As shown, or as the calls before it have left it. */
  expected(step: number): string;
  /** Reads the targets of the later calls right before this one, and returns a function to call right after it. */
  watch(step: number): Promise<() => Promise<void>>;
  /** This call is done: its changes to the targets of later calls are expected from now on. */
  done(step: number, operation: Operation): void;
}

/**
 * A change during a call of the bundle was made by that call; a change between two of them was made by someone else, and the
 * later call does not run. A target that could not be read stays as it was shown.
 */
function bundleVersions(
  context: GateContext,
  { sessionId, proposal: { calls } }: CallDecision,
  shown: Shown,
): BundleVersions {
  const { stateVersion } = shown.preview;
  const expected = calls.map((_, step) =>
    Array.isArray(stateVersion) ? String(stateVersion[step] ?? "") : "",
  );
  let current: { readonly step: number; readonly after: ReadonlyMap<number, string> } | undefined;

  /** By step; without those that could not be read. */
  async function look(steps: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const found = new Map<number, string>();
    await Promise.all(
      steps.map(async (step) => {
        const version = await versionOf(step).catch(() => undefined);
        if (version !== undefined) found.set(step, version);
      }),
    );
    return found;
  }

  async function versionOf(step: number): Promise<string | undefined> {
    const call = calls[step];
    if (call === undefined) return undefined;
    const pinned = pinnedTool(call, shown.definitions[step], context.registry);
    if (!pinned.fits) return undefined;
    const { tool } = pinned;
    const { input, workingDirectory, places, callId } = call;
    const facts = { sessionId, callId, input, workingDirectory, places };
    return whileLooking(
      context,
      facts,
      async (looking) => (await tool.stateVersion?.(looking)) ?? "",
    );
  }

  return {
    expected: (step) => expected[step] ?? "",
    async watch(step) {
      const later = [...calls.keys()].slice(step + 1);
      const before = await look(later);
      const asExpected = later.filter((one) => before.get(one) === expected[one]);
      return async () => {
        const after = await look(asExpected);
        current = { step, after };
      };
    },
    done(step, { stateVersion: own }) {
      // A call that left its own target unchanged has not changed other targets.
      const isUnchanged = own !== "" && own === expected[step];
      const after = current?.step === step && !isUnchanged ? current.after : [];
      for (const [later, version] of after) expected[later] = version;
      current = undefined;
    },
  };
}
