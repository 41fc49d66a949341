// Step "recover": continues what a process left when it went away, at whatever step that was. Before it: any step. After it: the
// step that comes next.

import type { Verdict } from "../model/decision.ts";
import { type Decision, type DecisionId, isFinal } from "../model/decision.ts";
import { parseJson } from "../model/names.ts";
import type { CallAnswer, Operation, OperationId } from "../model/operation.ts";
import { MAX_LIST } from "../model/record.ts";
import type { PageQuery } from "../store/left-behind.ts";
import type { Damaged, Found } from "../store/tenant-engine.ts";
import type { Tool } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { fromIso } from "../util/clock.ts";
import { errorText } from "../util/error-text.ts";
import { answerOf, isExternal } from "./answers.ts";
import { resumeOrder } from "./attempt.ts";
import type { GateContext } from "./context.ts";
import { goesThroughLink, judgeCall } from "./judge.ts";
import type { Order } from "./order.ts";
import { askAboutPermit, isPermit } from "./permit.ts";
import { reviewOn } from "./propose.ts";
import { takeBackAll } from "./rollback.ts";
import { closing, runFrom } from "./run.ts";
import { askersOf, type CallDecision, requestedBy, withProposal } from "./show.ts";
import { nextAttempt, type UndoAttempt } from "./undo.ts";

/** What a recovery found and did. All empty when nothing was left behind, or everything is stopped. */
export interface Recovered {
  /** Operations that a process had started and left. `unknown` ones wait for a person and are not tried again. */
  readonly operations: readonly { readonly id: OperationId; readonly answer: CallAnswer }[];
  /** Approved decisions that were continued, with the answers of the calls made now. */
  readonly decisions: readonly {
    readonly id: DecisionId;
    readonly answers: readonly CallAnswer[];
  }[];
  /**
   * Proposals that were cut off before anyone was asked: reviewed to their end, and put before people where the review agreed.
   * An edit that was cut off is canceled instead.
   */
  readonly proposals: readonly { readonly id: DecisionId; readonly asked: boolean }[];
  /** What could not be continued now, or cannot be read, and why; the next recovery tries again. */
  readonly left: readonly { readonly id: string; readonly reason: string }[];
  /** There was more than one call reads. The next call continues where this one stopped. */
  readonly more?: true;
}

/**
 * Continues what processes that went away have left. Operations come first, because a decision can continue only when the
 * outcomes of its calls are known. Of two recoveries at the same time the store gives each operation to one. Each round begins
 * where the last one of this gate ended, see `goAround`.
 */
export async function recover(context: GateContext, places: Places): Promise<Recovered> {
  const { leaseMs } = context;
  const { leftBehind, killSwitch } = context.store;
  const found = {
    operations: [] as Recovered["operations"][number][],
    decisions: [] as Recovered["decisions"][number][],
    proposals: [] as Recovered["proposals"][number][],
    left: [] as Recovered["left"][number][],
  };
  const onDamaged = (damaged: Recovered["left"][number]) => void found.left.push(damaged);
  // One that cannot be continued (its tool is missing, its dry run fails) must not block the others.
  const attemptAt = async (id: string, work: () => Promise<void>): Promise<true> => {
    await work().catch((error: unknown) => {
      found.left.push({ id, reason: errorText(error) });
    });
    return true;
  };
  const operations = await goAround(places.operations, {
    read: (page) => leftBehind.operations(page),
    onDamaged,
    async work(operation) {
      // Asked each time: calling a keyed tool again is a new effect when the first call never arrived.
      if (await killSwitch.isStopped()) return false;
      return attemptAt(operation.id, async () => {
        const answer = isPermit(operation)
          ? await askAboutPermit(context, operation)
          : answerOf(await resumeOrder(context, await orderOf(context, operation), operation));
        if (answer !== undefined) found.operations.push({ id: operation.id, answer });
      });
    },
  });
  places.operations = operations.place;
  if (await killSwitch.isStopped()) return found;
  const approved = await goAround(places.approved, {
    // Younger ones are most likely being executed by the process that took the approval.
    read: (page) => leftBehind.approved(leaseMs, page),
    onDamaged,
    async work(decision) {
      if (await killSwitch.isStopped()) return false;
      return attemptAt(decision.id, async () => {
        const answers = await carryOn(context, decision);
        if (answers !== undefined) found.decisions.push({ id: decision.id, answers });
      });
    },
  });
  places.approved = approved.place;
  if (await killSwitch.isStopped()) return found;
  const unasked = await goAround(places.unasked, {
    read: (page) => leftBehind.unasked(leaseMs, page),
    onDamaged,
    work: (decision) =>
      attemptAt(decision.id, async () => {
        const asked = await askAbout(context, decision);
        found.proposals.push({ id: decision.id, asked });
      }),
  });
  places.unasked = unasked.place;
  const ended = operations.ended && approved.ended && unasked.ended;
  return ended ? found : { ...found, more: true };
}

/** Reviews an unfinished proposal to its end. Returns whether people were asked about it. */
async function askAbout(context: GateContext, listed: Decision): Promise<boolean> {
  const { decisions, reviewers } = context.store;
  const isDecoy = await reviewers.isDecoy(listed.sessionId);
  // A successor (an edit, or a call that went back to review) is proposed again by its author: what it replaces still stands.
  if (isDecoy || Object.keys(requestedBy(listed).facts).length > 0) {
    await callOff(context, listed);
    return false;
  }
  // Read again: another process may have reviewed it since it was listed.
  const decision = withProposal(await decisions.get(listed.id));
  // A process without the tools most likely has other validators too, so it must not review.
  for (const { tool } of decision.proposal.calls) needTool(context, tool);
  try {
    return (await reviewOn(context, decision)).proposed;
  } catch (error) {
    // Asked about under another id, or decided: this one was closed as overtaken, so there is nothing left to try again.
    const { state } = await decisions.get(decision.id);
    if (isFinal(state)) return false;
    throw error;
  }
}

/**
 * What was approved while everything was stopped is executed immediately in the process that resumes. Others find
 * it in their upkeep, and so does this one when it fails here. Every check of an ordinary execution is made again.
 */
export async function carryOnHeld(
  context: GateContext,
): Promise<Pick<Recovered, "decisions" | "left">> {
  const { decisions, killSwitch } = context.store;
  const done: Recovered["decisions"][number][] = [];
  const left: Recovered["left"][number][] = [];
  for (let after: { after?: DecisionId } = {}; ; ) {
    const page = await decisions.list({
      states: ["approved"],
      limit: MAX_LIST,
      onDamaged: (damaged) => void left.push(damaged),
      ...after,
    });
    for (const decision of page) {
      if (await killSwitch.isStopped()) return { decisions: done, left };
      try {
        const answers = await carryOn(context, decision);
        if (answers !== undefined) done.push({ id: decision.id, answers });
      } catch (error) {
        left.push({ id: decision.id, reason: errorText(error) });
      }
    }
    const last = page.at(-1);
    if (page.length < MAX_LIST || last === undefined) return { decisions: done, left };
    after = { after: last.id };
  }
}

/** What another process approved and cannot execute. */
export type ExecutedHere = Pick<Recovered, "decisions" | "left">;

/** The approvals of the last minutes are looked at again: a clock may differ, and a commit may arrive late. */
const OVERLAP_MS = 60_000;

/**
 * Executes what processes approved that lack its tools, where they are here. Any number of processes may do so at the same
 * time: the intent lets one of them begin. Only what is new since the last round is read.
 */
export async function executeAwaiting(
  context: GateContext,
  place: { awaiting: number },
): Promise<ExecutedHere> {
  const { leftBehind, killSwitch } = context.store;
  const decisions: Recovered["decisions"][number][] = [];
  const left: Recovered["left"][number][] = [];
  let newest = place.awaiting;
  for (let after = 0; ; ) {
    const since = place.awaiting - OVERLAP_MS;
    const { items, damaged, next } = await leftBehind.awaitingTool(since, { after, limit: PAGE });
    left.push(...damaged);
    if (items.length > 0 && (await killSwitch.isStopped())) return { decisions, left };
    await workOn(items, async (decision) => {
      newest = Math.max(newest, fromIso(decision.updatedAt));
      try {
        const answers = hasTools(context, decision) ? await carryOn(context, decision) : undefined;
        if (answers !== undefined) decisions.push({ id: decision.id, answers });
      } catch (error) {
        left.push({ id: decision.id, reason: errorText(error) });
      }
      return true;
    });
    if (next === undefined) break;
    after = next;
  }
  place.awaiting = newest;
  return { decisions, left };
}

/** How long the process that took the approval has to begin. */
const GRACE_MS = 1_000;

/**
 * The agent asks again for a call that is approved and that no process executes: it is executed here and now, where its tools
 * are. Undefined when it is not for this process to do so.
 */
export async function executeNow(
  context: GateContext,
  id: DecisionId,
): Promise<CallAnswer | undefined> {
  const decision = await context.store.decisions.get(id);
  if (decision.state !== "approved" || !hasTools(context, decision)) return undefined;
  const waitsMs = context.clock.now() - fromIso(decision.updatedAt);
  if (decision.awaitsTool !== true && waitsMs < GRACE_MS) return undefined;
  return (await carryOn(context, decision))?.[0];
}

function hasTools({ registry }: GateContext, decision: Decision): boolean {
  if (decision.origin !== "port") return false;
  const { calls } = withProposal(decision).proposal;
  return calls.every(({ tool }) => registry.get(tool) !== undefined);
}

/** No one will be asked about it, so it must not wait for an answer. */
async function callOff({ store }: GateContext, { id, state }: Decision): Promise<void> {
  if (state === "pending_tech") await store.decisions.updateTechVerdict(id, CUT_OFF);
  else await store.decisions.updateBizVerdict(id, CUT_OFF);
}

const CUT_OFF: Verdict = {
  approved: false,
  score: 0,
  severity: "",
  reason: "It was cut off before anybody was asked. What it was to take the place of stands.",
  validator: "port",
  policyVersion: "",
};

/** The order as it was when the operation started. Throws when its tool is missing here; another process may have it. */
export async function orderOf(context: GateContext, operation: Operation): Promise<Order> {
  const { decisionId: behindIt } = operation;
  const decision =
    behindIt === "" ? undefined : withProposal(await context.store.decisions.get(behindIt));
  const { places, judgePlace } = await checkAgain(context, operation, decision);
  const { id: operationId, undoOf } = operation;
  const { definitionHash, sessionId, messageId, callId, turn, step, workingDirectory } = operation;
  const { chain } = operation;
  return {
    operationId,
    tool: needTool(context, operation.tool),
    definitionHash,
    input: parseJson(operation.input),
    sessionId,
    messageId,
    callId,
    turn,
    step,
    workingDirectory,
    places,
    judgePlace,
    chain,
    actor: "recovery",
    ...(undoOf === "" ? {} : { undoOf }),
    ...(decision === undefined ? {} : closingOf(decision, step)),
  };
}

/**
 * Calling a tool again is an effect like any other: the gate is asked again, and an approved call must be the one that was
 * approved. Without a decision behind it no one consented to a place that the gate would ask about now. Returns the places
 * that were judged, and how those below them are; throws when it may not be called again.
 */
async function checkAgain(
  context: GateContext,
  operation: Operation,
  decision: CallDecision | undefined,
): Promise<Pick<Order, "places" | "judgePlace">> {
  const { sessionId, chain, workingDirectory, callId, tool, step, undoOf } = operation;
  const { tenant } = context.store;
  const input = parseJson(operation.input);
  const takesBack = undoOf !== "";
  const caller = { tenant, sessionId, chain, workingDirectory, takesBack };
  const judged = await judgeCall(context, { callId, tool, input }, caller, "approved");
  if (judged.verdict === "deny" || judged.verdict === "failed") throw new Error(judged.text);
  const { judgePlace } = judged;
  if (decision === undefined) {
    const { facts, verdict } = judged;
    const isLinked =
      verdict === "ask" && (await goesThroughLink(facts.resources, workingDirectory));
    if (isLinked) throw new Error("a path of the call leads to a place that was not allowed");
    return { places: judged.places, judgePlace };
  }
  const planned = decision.proposal.calls[step];
  if (planned?.tool !== tool || canonicalJson(planned.input) !== operation.input) {
    throw new Error("what is stored of the call is not what was approved");
  }
  const { places = judged.places } = planned;
  if (canonicalJson(places) !== canonicalJson(judged.places)) {
    throw new Error("a path of the call leads to another place than the one that was approved");
  }
  return { places, judgePlace };
}

function needTool({ registry }: GateContext, name: string): Tool {
  const tool = registry.get(name);
  if (tool === undefined) throw new Error(`the tool "${name}" is not here`);
  return tool;
}

/** What the decision behind a call says about it: who asked, and what its success closes. */
function closingOf(decision: CallDecision, step: number): Pick<Order, "chain" | "closes"> {
  const { state, proposal } = decision;
  const chain = askersOf(proposal);
  // Closed by hand in the meantime: the outcome is recorded all the same.
  if (state !== "approved") return { chain };
  return { chain, closes: closing(decision, step, proposal.calls.length) };
}

/** Undefined when there is nothing to continue: another process executes it, or one of its calls is open. */
export async function carryOn(
  context: GateContext,
  stored: Decision,
): Promise<readonly CallAnswer[] | undefined> {
  const { id, sessionId } = stored;
  const { interactions, leftBehind, operations } = context.store;
  // What others staged is executed by them.
  if (stored.origin !== "port") return undefined;
  const shown = await interactions.shown(id);
  if (shown === undefined || isExternal(shown)) return undefined;
  const begun = await operations.listBySession(sessionId, { decisionId: id });
  if (begun.some(({ status }) => status === "started" || status === "unknown")) return undefined;
  const decision = withProposal(stored);
  const { calls } = decision.proposal;
  // Where a tool is missing the remaining calls would fail, and so would the undo: another process may have them all.
  const undoTools = begun.map(({ undo }) => undo?.tool ?? "").filter((name) => name !== "");
  const rest = calls.slice(begun.length).map(({ tool }) => tool);
  for (const name of [...rest, ...undoTools]) needTool(context, name);
  const undos = await Promise.all(begun.map((operation) => nextAttempt(operations, operation.id)));
  // An undo that runs, or was cut off a moment ago, has to end first: the decision is closed with its outcome.
  if (undos.some((undo) => undo.state === "taken" && undo.by.status === "started"))
    return undefined;
  const reason = whyTakenBack(begun, undos);
  if (reason !== undefined) {
    await takeBackAll(context, decision, reason);
    return [];
  }
  if (begun.length < calls.length) return runFrom(context, decision, begun.length);
  // The last one was open until a person found out that it had happened.
  const finishing = { calls: begun.map((operation) => operation.id), actor: "recovery" };
  return (await leftBehind.finish(id, finishing)) ? [] : undefined;
}

/** After a call that failed, or an undo that was begun, the rest is undone; nothing more is executed. */
function whyTakenBack(
  begun: readonly Operation[],
  undos: readonly UndoAttempt[],
): string | undefined {
  const failed = begun.find(({ status }) => status === "failed");
  if (failed !== undefined) return failed.error;
  const isUntouched = undos.every((undo) => undo.state === "free" && undo.number === 1);
  if (isUntouched && begun.every(({ status }) => status === "success")) return undefined;
  return "It was being undone when the process that did so went away.";
}

/** How many records of one list a round reads. The next rounds read the others before any record comes again. */
const LOOKED_AT = 10_000;
const PAGE = 200;
/** How many sessions are worked on at the same time: a target that hangs blocks only its own. */
const AT_ONCE = 8;

/** Where the last round left each list; 0 when it reached the end. Kept by the gate that recovers. */
export interface Places {
  operations: number;
  approved: number;
  unasked: number;
  /** The newest approval that was found waiting for a tool, epoch ms. */
  awaiting: number;
}

export interface Round<Item> {
  read(page: PageQuery): Promise<Found<Item>>;
  /** False ends the round. */
  work(item: Item): Promise<boolean>;
  /** Called for every record that cannot be read. Shape: push. */
  onDamaged(damaged: Damaged): void;
}

/**
 * Reads a list from where the last round stopped, and wraps around at its end, so that records that cannot be continued never
 * hide the others. Those of one session come one after the other, oldest first. Returns where the next round begins: 0 when
 * everything was read.
 */
async function goAround<Item extends { readonly sessionId: string }>(
  from: number,
  { read, work, onDamaged }: Round<Item>,
): Promise<{ readonly place: number; readonly ended: boolean }> {
  let after = from;
  let isAround = from === 0;
  for (let looked = 0; looked < LOOKED_AT; ) {
    const { items, damaged, next } = await read({ after, limit: PAGE });
    damaged.forEach(onDamaged);
    if (!(await workOn(items, work))) return { place: after, ended: false };
    looked += items.length + damaged.length;
    if (next !== undefined) after = next;
    else if (isAround) return { place: 0, ended: true };
    else [after, isAround] = [0, true];
    if (next !== undefined && isAround && from > 0 && next >= from)
      return { place: 0, ended: true };
  }
  return { place: after, ended: false };
}

async function workOn<Item extends { readonly sessionId: string }>(
  items: readonly Item[],
  work: (item: Item) => Promise<boolean>,
): Promise<boolean> {
  const sessions = [...Map.groupBy(items, ({ sessionId }) => sessionId).values()];
  let goesOn = true;
  async function next(): Promise<void> {
    for (let own = sessions.shift(); own !== undefined && goesOn; own = sessions.shift()) {
      for (const item of own) if (goesOn && !(await work(item))) goesOn = false;
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, sessions.length) }, next));
  return goesOn;
}
