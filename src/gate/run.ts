import type { CallAnswer } from "../model/call.ts";
import type { Decision, DecisionId, DecisionState } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { type Preview, previewHash } from "../model/interaction.ts";
import type { Operation } from "../model/operation.ts";
import type { Shown } from "../store/confirmations.ts";
import { executedMove } from "../store/decisions.ts";
import { claimHold, notTakenBack } from "../store/left-behind.ts";
import type { TenantStore } from "../store/store.ts";
import type { Registry } from "../tools/registry.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject } from "../util/json.ts";
import {
  askersOf,
  chainOf,
  claimOf,
  decodeAction,
  messageIdOf,
  type PlannedCall,
} from "./action.ts";
import { answerOf, held } from "./answers.ts";
import type { AtPoint } from "./crash-point.ts";
import type { Executor, Order, WatchedCall } from "./execute.ts";
import { type JudgeParts, judgeCall } from "./judge.ts";
import { driftOf, type PreviewParts, pinnedTool, whileLooking } from "./show.ts";
import type { ChangedRules } from "./supersede.ts";
import { watchSession } from "./target-version.ts";
import { type UndoDispatch, undoIdOf } from "./undo.ts";
import { isElsewhere, recordedFrom, takeBackAll } from "./undo-bundle.ts";

export interface DecideParts {
  readonly judging: JudgeParts;
  readonly store: TenantStore;
  readonly registry: Registry;
  readonly executor: Executor;
  readonly dispatchUndo: UndoDispatch;
  readonly at: AtPoint;
  /** Undefined when the rules are those that were shown. */
  changedRules(decision: Decision, shown: Shown, first: number): Promise<ChangedRules | undefined>;
  /** Asks again about a decision that is no longer what was approved, with the difference. Undefined when somebody has begun it. */
  goBack(decision: Decision, difference: string): Promise<CallAnswer | undefined>;
  /** Goes on with a review that was cut off, up to the question. */
  reviewOn(decision: Decision): Promise<{ readonly proposed: boolean }>;
}

/**
 * Carries out an approved decision: every call in order, once. Before the first one the tools are compared with those that
 * were shown and the dry runs are repeated; if something differs, nothing runs and it goes back to review with the
 * difference. When a call fails, those before it are taken back in reverse.
 */
export async function runDecision(
  id: DecisionId,
  hash: string,
  parts: DecideParts,
): Promise<readonly CallAnswer[]> {
  const decision = await parts.store.decisions.get(id);
  // Whoever was slow between the yes and this may find that a recovery has carried it out: then that is the answer.
  const answers = CLOSED.includes(decision.state)
    ? await recordedFrom(0, decision, decodeAction(decision).length, parts.store)
    : await runFrom(0, decision, parts, hash);
  parts.at("S8.before");
  return answers;
}

const CLOSED: readonly DecisionState[] = ["executed", "failed"];

/** The calls from this step on; those before it were done, and are taken back when it cannot go on. */
export async function runFrom(
  first: number,
  decision: Decision,
  parts: DecideParts,
  approved?: string,
): Promise<readonly CallAnswer[]> {
  const { id, state } = decision;
  const shown = await parts.store.interactions.shown(id);
  if (state !== "approved" || shown === undefined) {
    const hint = "Only what was shown and approved can be carried out.";
    throw new SallyportError("illegal_transition", { id, from: state, to: "executed", hint });
  }
  const forged = forgeryOf(decision, shown, approved);
  if (forged !== undefined) {
    await takeBackAll(decision, forged, parts);
    return [{ answer: "failed", text: forged }];
  }
  const calls = decodeAction(decision);
  // Not even a dry run while everything is stopped: whatever is looked at now must be looked at again later.
  if (await parts.store.killSwitch.isStopped()) return calls.slice(first).map(() => held(id));
  const rules = await parts.changedRules(decision, shown, first);
  const drift = rules?.text ?? (await driftOf(decision, calls, first, shown, parts));
  const recorded = (from: number) => recordedFrom(from, decision, calls.length, parts.store);
  if (drift !== undefined) {
    // What somebody else did of it since is no reason to begin anew, and not ours to take back.
    if (await isElsewhere(decision, first, parts.store)) return recorded(first);
    const answer = await notAsApproved(decision, first, drift, rules?.refused === true, parts);
    return answer === undefined ? recorded(first) : calls.slice(first).map(() => answer);
  }
  const versions = bundleVersions(decision, calls, shown, parts);
  const answers: CallAnswer[] = [];
  for (const [step, call] of calls.entries()) {
    if (step < first) continue;
    const answer = await runStep(
      { decision, shown, call, step, steps: calls.length, versions },
      parts,
    );
    // The yes stands. Nothing is taken back: what was done of it was allowed, and the rest follows when work resumes.
    if (answer === "stopped") return [...answers, ...calls.slice(step).map(() => held(id))];
    if (answer.answer !== "done" && answer.answer !== "unknown") {
      const { state: now } = await parts.store.decisions.get(id);
      const isOurs = now === "approved" && (await takeBackAll(decision, answer.text, parts));
      const all = await recorded(first);
      // What was done before it has been undone, and is told as such.
      return isOurs ? [...all.slice(0, step - first), answer] : all;
    }
    answers.push(answer);
    if (answer.answer !== "done") break;
  }
  return answers;
}

/** Nothing of it has run: it goes back to review, or is given up. Undefined when somebody else has begun it meanwhile. */
async function notAsApproved(
  decision: Decision,
  first: number,
  difference: string,
  isRefused: boolean,
  parts: DecideParts,
): Promise<CallAnswer | undefined> {
  if (first === 0 && !isRefused) return parts.goBack(decision, difference);
  const text = isRefused ? difference : `Not executed: ${difference} Propose it again.`;
  const isOurs = await takeBackAll(decision, text, parts);
  return isOurs ? { answer: "failed", text } : undefined;
}

/** The bytes that would run must be those that were shown, whatever happened to the stored rows since. */
function forgeryOf(decision: Decision, shown: Shown, approved = shown.hash): string | undefined {
  const { preview, hash } = shown;
  const isWhole = previewHash(preview) === hash && hash === approved;
  const isSame =
    sha256Hex(decision.diff.raw) === preview.actionHash &&
    decision.sessionId === preview.sessionId &&
    canonicalJson(askersOf(decision)) === canonicalJson(preview.askers);
  if (isWhole && isSame) return undefined;
  return "Not executed: what is stored is not what was approved. Tell the operator, and propose it again.";
}

interface RunningStep {
  readonly decision: Decision;
  readonly shown: Shown;
  readonly call: PlannedCall;
  readonly step: number;
  readonly steps: number;
  readonly versions: BundleVersions;
}

async function runStep(
  { decision, shown, call, step, steps, versions }: RunningStep,
  { registry, executor, judging, store }: DecideParts,
): Promise<CallAnswer | "stopped"> {
  const { preview, hash, definitions } = shown;
  const pinned = pinnedTool(call, definitions[step], registry);
  if (!pinned.fits) return { answer: "failed", text: `Not executed: ${pinned.why}` };
  const { sessionId } = decision;
  const chain = chainOf(decision);
  const { workingDirectory } = call;
  const claim = claimOf(decision);
  const bound = claim === undefined ? {} : { claim };
  const caller = { tenant: store.tenant, sessionId, chain, workingDirectory, ...bound };
  // A rule that was made since the approval binds it too: the stricter one wins.
  const judged = await judgeCall({ ...call }, caller, judging, "approved");
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
    chain: askersOf(decision),
    holds: [
      store.epoch.holdOf(preview.epoch),
      ...(claim === undefined ? [] : [claimHold(claim)]),
      ...(step === 0 ? [] : [notTakenBack(undoIdOf(`${decision.id}.${step - 1}`, 1))]),
    ],
    sessionId,
    messageId: messageIdOf(decision),
    callId: call.callId,
    turn: call.turn,
    step,
    workingDirectory,
    places,
    expectedVersions: [versions.expected(step)],
    watch: watchBoth(
      watchSession(sessionId, pinned.tool, { ...judging, tenant: store.tenant, store }),
      step === steps - 1 ? undefined : () => versions.watch(step),
    ),
    approval: { decisionId: decision.id, hash },
    actor: "executor",
    closes: closing(decision.id, step, steps),
  };
  const executed = await executor.run(order);
  if (executed.status === "refused" && executed.reason === "stopped") return "stopped";
  if (executed.status === "done") versions.done(step, executed.operation);
  return judging.bindings.after(caller, judged.facts, answerOf(executed));
}

const MOVED =
  "Not executed: a path of the call leads to another place than the one that was approved. Propose it again.";

/** What the call changes of earlier calls of the session is kept for rollbacks, what it changes of later ones for the bundle. */
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

/** With the success of its last step a decision is executed, in the same transaction. */
export function closing(id: DecisionId, step: number, steps: number): NonNullable<Order["closes"]> {
  return (outcome) => {
    if (outcome.status !== "success" || step !== steps - 1) return undefined;
    const proof = { steps, output_sha256: sha256Hex(outcome.output.toWellFormed()) };
    return executedMove(id, proof, "executor");
  };
}

/** The versions under which the calls of a decision may run, while it is carried out. */
interface BundleVersions {
  /** As it was shown, or as the calls before it have left it. */
  expected(step: number): string;
  /** Looks at the targets of the later calls, right before this one is made, and gives what is to be called right after. */
  watch(step: number): Promise<() => Promise<void>>;
  /** This call is done: what it changed of the later calls' targets is expected from now on. */
  done(step: number, operation: Operation): void;
}

/**
 * What changed during a call of the bundle was changed by it; what changed between two of them was changed by somebody else,
 * and the later call does not run. A target that could not be looked at stays as it was shown.
 */
function bundleVersions(
  decision: Decision,
  calls: readonly PlannedCall[],
  shown: { readonly preview: Preview; readonly definitions: readonly JsonObject[] },
  parts: PreviewParts,
): BundleVersions {
  const { stateVersion } = shown.preview;
  const expected = calls.map((_, step) =>
    Array.isArray(stateVersion) ? String(stateVersion[step] ?? "") : "",
  );
  let current: { readonly step: number; readonly after: ReadonlyMap<number, string> } | undefined;

  /** By step; without those that could not be looked at. */
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
    const pinned = pinnedTool(call, shown.definitions[step], parts.registry);
    if (!pinned.fits) return undefined;
    const { tool } = pinned;
    const { input, workingDirectory, places, callId } = call;
    const { store, judging } = parts;
    const facts = { tenant: store.tenant, sessionId: decision.sessionId, callId };
    return whileLooking(
      { ...facts, input, workingDirectory, places },
      judging.timers,
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
      // A call that left its own target as it was has not changed anybody else's.
      const isUnchanged = own !== "" && own === expected[step];
      const after = current?.step === step && !isUnchanged ? current.after : [];
      for (const [later, version] of after) expected[later] = version;
      current = undefined;
    },
  };
}
