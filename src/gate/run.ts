// Step "run": executes an approved decision, call by call, after comparing it with what was shown. Before it: decide, or recover
// in another process. After it: attempt, for each call.

import type { CallAnswer } from "../model/call.ts";
import type { Decision, DecisionId, DecisionState } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { previewHash } from "../model/interaction.ts";
import type { Operation } from "../model/operation.ts";
import type { Shown } from "../store/confirmations.ts";
import { executedMove } from "../store/decisions.ts";
import { claimHold, notTakenBack } from "../store/left-behind.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import {
  askersOf,
  type CallDecision,
  type PlannedCall,
  requestedBy,
  withProposal,
} from "./action.ts";
import { answerOf, held, isElsewhere, recordedFrom } from "./answers.ts";
import { runOrder } from "./attempt.ts";
import type { GateContext } from "./context.ts";
import { judgeCall, policiesAfter } from "./judge.ts";
import type { Order, WatchedCall } from "./order.ts";
import { takeBackAll } from "./rollback.ts";
import { driftOf, pinnedTool, whileLooking } from "./show.ts";
import { changedRules, goBack } from "./supersede.ts";
import { watchSession } from "./target-version.ts";
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
): Promise<readonly CallAnswer[]> {
  const decision = await context.store.decisions.get(id);
  // A recovery may have executed it between the yes and this read: then its records are the answer.
  const answers = CLOSED.includes(decision.state)
    ? await recordedFrom(context, id, 0, withProposal(decision).proposal.calls.length)
    : await runFrom(context, decision, 0, hash);
  context.at("S8.before");
  return answers;
}

const CLOSED: readonly DecisionState[] = ["executed", "failed"];

/** The calls from this step on; those before it were executed, and are undone when it cannot continue. */
export async function runFrom(
  context: GateContext,
  stored: Decision | CallDecision,
  first: number,
  approved?: string,
): Promise<readonly CallAnswer[]> {
  const { id, state } = stored;
  const shown = await context.store.interactions.shown(id);
  if (state !== "approved" || shown === undefined) {
    const hint = "Only what was shown and approved can be carried out.";
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
  // Not even a dry run while everything is stopped: it would have to be repeated later.
  if (await context.store.killSwitch.isStopped()) return calls.slice(first).map(() => held(id));
  const rules = await changedRules(context, decision, shown, first);
  const drift = rules?.text ?? (await driftOf(context, decision, first, shown));
  const recorded = (from: number) => recordedFrom(context, id, from, calls.length);
  if (drift !== undefined) {
    // What another process executed meanwhile is no reason to start again, and not for this one to undo.
    if (await isElsewhere(context, id, first)) return recorded(first);
    const answer = await notAsApproved(context, decision, first, drift, rules?.refused === true);
    return answer === undefined ? recorded(first) : calls.slice(first).map(() => answer);
  }
  const versions = bundleVersions(context, decision, shown);
  const answers: CallAnswer[] = [];
  for (const [step, call] of calls.entries()) {
    if (step < first) continue;
    const answer = await runStep(context, { decision, shown, call, step, versions });
    // The approval stands. Nothing is undone: what was executed was allowed, and the rest follows when work resumes.
    if (answer === "stopped") return [...answers, ...calls.slice(step).map(() => held(id))];
    if (answer.answer !== "done" && answer.answer !== "unknown") {
      const { state: now } = await context.store.decisions.get(id);
      const isOurs = now === "approved" && (await takeBackAll(context, decision, answer.text));
      const all = await recorded(first);
      // The calls before it have been undone, and are reported as such.
      return isOurs ? [...all.slice(0, step - first), answer] : all;
    }
    answers.push(answer);
    if (answer.answer !== "done") break;
  }
  return answers;
}

/** Nothing of it has run: it goes back to review, or is given up. Undefined when another process has begun it meanwhile. */
async function notAsApproved(
  context: GateContext,
  decision: CallDecision,
  first: number,
  difference: string,
  isRefused: boolean,
): Promise<CallAnswer | undefined> {
  if (first === 0 && !isRefused) return goBack(context, decision, difference);
  const text = isRefused ? difference : `Not executed: ${difference} Propose it again.`;
  const isOurs = await takeBackAll(context, decision, text);
  return isOurs ? { answer: "failed", text } : undefined;
}

/** The bytes that would run must be those that were shown, whatever happened to the stored rows. */
function forgeryOf(decision: Decision, shown: Shown, approved = shown.hash): string | undefined {
  const { preview, hash } = shown;
  const isWhole = previewHash(preview) === hash && hash === approved;
  const isSame =
    sha256Hex(decision.diff.raw) === preview.actionHash &&
    decision.sessionId === preview.sessionId &&
    canonicalJson(askersOf(requestedBy(decision))) === canonicalJson(preview.askers);
  if (isWhole && isSame) return undefined;
  return "Not executed: what is stored is not what was approved. Tell the operator, and propose it again.";
}

interface RunningStep {
  readonly decision: CallDecision;
  readonly shown: Shown;
  readonly call: PlannedCall;
  readonly step: number;
  readonly versions: BundleVersions;
}

async function runStep(
  context: GateContext,
  { decision, shown, call, step, versions }: RunningStep,
): Promise<CallAnswer | "stopped"> {
  const { store } = context;
  const { preview, hash, definitions } = shown;
  const pinned = pinnedTool(call, definitions[step], context.registry);
  if (!pinned.fits) return { answer: "failed", text: `Not executed: ${pinned.why}` };
  const { sessionId, proposal } = decision;
  const { chain, claim, messageId, calls } = proposal;
  const isLast = step === calls.length - 1;
  const { workingDirectory } = call;
  const bound = claim === undefined ? {} : { claim };
  const caller = { tenant: store.tenant, sessionId, chain, workingDirectory, ...bound };
  // A rule that was made since the approval binds it too: the stricter one wins.
  const judged = await judgeCall(context, { ...call }, caller, "approved");
  if (judged.verdict === "deny" || judged.verdict === "failed") {
    return { answer: "failed", text: judged.text };
  }
  const places = call.places ?? judged.places;
  if (canonicalJson(places) !== canonicalJson(judged.places)) {
    return { answer: "failed", text: MOVED };
  }
  const order: Order = {
    operationId: `${decision.id}.${step}`,
    tool: pinned.tool,
    definitionHash: pinned.definition,
    input: call.input,
    chain: askersOf(proposal),
    holds: [
      store.epoch.holdOf(preview.epoch),
      ...(claim === undefined ? [] : [claimHold(claim)]),
      ...(step === 0 ? [] : [notTakenBack(undoIdOf(`${decision.id}.${step - 1}`, 1))]),
    ],
    sessionId,
    messageId,
    callId: call.callId,
    turn: call.turn,
    step,
    workingDirectory,
    places,
    expectedVersions: [versions.expected(step)],
    watch: watchBoth(
      watchSession(context, sessionId, pinned.tool),
      isLast ? undefined : () => versions.watch(step),
    ),
    approval: { decisionId: decision.id, hash },
    actor: "executor",
    closes: closing(decision.id, step, calls.length),
  };
  const executed = await runOrder(context, order);
  if (executed.status === "refused" && executed.reason === "stopped") return "stopped";
  if (executed.status === "done") versions.done(step, executed.operation);
  return policiesAfter(context, caller, judged.facts, answerOf(executed));
}

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
export function closing(id: DecisionId, step: number, steps: number): NonNullable<Order["closes"]> {
  return (outcome) => {
    if (outcome.status !== "success" || step !== steps - 1) return undefined;
    const proof = { steps, output_sha256: sha256Hex(outcome.output.toWellFormed()) };
    return executedMove(id, proof, "executor");
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
