import type { CallAnswer } from "../model/call.ts";
import { type Decision, type DecisionId, isFinal } from "../model/decision.ts";
import type { Operation, OperationId } from "../model/operation.ts";
import { parseJson } from "../model/parse-json.ts";
import type { Verdict } from "../model/verdict.ts";
import { MAX_LIST } from "../store/decisions.ts";
import type { Page } from "../store/left-behind.ts";
import type { Damaged, Found } from "../store/readable.ts";
import type { Tool } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { askersOf, decodeAction, factsOf } from "./action.ts";
import { answerOf } from "./answers.ts";
import type { Order } from "./execute.ts";
import { judgeCall } from "./judge.ts";
import { goesThroughLink } from "./places.ts";
import { closing, type DecideParts, runFrom } from "./run.ts";
import { nextAttempt, type UndoAttempt } from "./undo.ts";
import { takeBackAll } from "./undo-bundle.ts";

/** What a recovery found and what became of it. All empty when nothing was left behind, or everything is stopped. */
export interface Recovered {
  /** Operations that somebody had started and left. `unknown` ones wait for a person and are not looked at again. */
  readonly operations: readonly { readonly id: OperationId; readonly answer: CallAnswer }[];
  /** Approved decisions that were carried on, with the answers of the calls made now. */
  readonly decisions: readonly {
    readonly id: DecisionId;
    readonly answers: readonly CallAnswer[];
  }[];
  /**
   * Proposals that were cut off before anybody was asked: reviewed to their end, and asked about where the review agreed. An
   * edit that was cut off is called off instead.
   */
  readonly proposals: readonly { readonly id: DecisionId; readonly asked: boolean }[];
  /** What could not be carried on now, or cannot be read, and why; the next recovery tries again. */
  readonly left: readonly { readonly id: string; readonly reason: string }[];
  /** There was more than one call looks at. The next one goes on where this one stopped. */
  readonly more?: true;
}

/**
 * Goes on where processes that went away have stopped. Operations come first, because a decision can go on only when it is
 * known what became of its calls. Of two recoveries at the same time the store lets one have each operation. Each round
 * begins where the last one of this port left off, see `goAround`.
 */
export async function recover(
  parts: DecideParts,
  leaseMs: number,
  places: Places,
): Promise<Recovered> {
  const { leftBehind, killSwitch } = parts.store;
  const found = {
    operations: [] as Recovered["operations"][number][],
    decisions: [] as Recovered["decisions"][number][],
    proposals: [] as Recovered["proposals"][number][],
    left: [] as Recovered["left"][number][],
  };
  const onDamaged = (damaged: Recovered["left"][number]) => void found.left.push(damaged);
  // One that cannot be carried on (its tool is not here, its dry run fails) must not hold up the others.
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
      // Asked each time: to call a keyed tool once more is a new effect when the first call never arrived.
      if (await killSwitch.isStopped()) return false;
      return attemptAt(operation.id, async () => {
        const order = await orderOf(operation, parts);
        const answer = answerOf(await parts.executor.resume(order, operation));
        found.operations.push({ id: operation.id, answer });
      });
    },
  });
  places.operations = operations.place;
  if (await killSwitch.isStopped()) return found;
  const approved = await goAround(places.approved, {
    // Younger ones are most likely being carried out by whoever took the approval.
    read: (page) => leftBehind.approved(leaseMs, page),
    onDamaged,
    async work(decision) {
      if (await killSwitch.isStopped()) return false;
      return attemptAt(decision.id, async () => {
        const answers = await carryOn(decision, parts);
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
        const asked = await askAbout(decision, parts);
        found.proposals.push({ id: decision.id, asked });
      }),
  });
  places.unasked = unasked.place;
  const ended = operations.ended && approved.ended && unasked.ended;
  return ended ? found : { ...found, more: true };
}

/** A proposal that was cut off is reviewed to its end. Answers whether people were asked about it. */
async function askAbout(decision: Decision, parts: DecideParts): Promise<boolean> {
  const isDecoy = await parts.store.reviewers.isDecoy(decision.sessionId);
  // A successor (an edit, or what went back to review) is made again by whoever wanted it: what it replaces still stands.
  if (isDecoy || Object.keys(factsOf(decision)).length > 0) {
    await callOff(decision, parts);
    return false;
  }
  // A process without the tools has most likely not the reviews either: its no would be nobody's.
  for (const { tool } of decodeAction(decision)) needTool(tool, parts);
  try {
    return (await parts.reviewOn(decision)).proposed;
  } catch (error) {
    // Asked about under another id, or decided: this one was closed as overtaken, so there is nothing left to try again.
    const { state } = await parts.store.decisions.get(decision.id);
    if (isFinal(state)) return false;
    throw error;
  }
}

/**
 * What was approved while everything was stopped goes on at once, in the process that was told to resume. Others find it in
 * their upkeep, and so does this one when it fails here. Every look of an ordinary execution is taken again.
 */
export async function carryOnHeld(
  parts: DecideParts,
): Promise<Pick<Recovered, "decisions" | "left">> {
  const { decisions, killSwitch } = parts.store;
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
        const answers = await carryOn(decision, parts);
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

/** Nobody will ever be asked about it, so it must not wait for an answer. */
async function callOff({ id, state }: Decision, { store }: DecideParts): Promise<void> {
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

/** The order as it was when the operation started. Throws when its tool is not here; another process may have it. */
export async function orderOf(operation: Operation, parts: DecideParts): Promise<Order> {
  const places = await checkAgain(operation, parts);
  const { id: operationId, decisionId, undoOf } = operation;
  const { definitionHash, sessionId, messageId, callId, turn, step, workingDirectory } = operation;
  const { chain } = operation;
  return {
    operationId,
    tool: needTool(operation.tool, parts),
    definitionHash,
    input: parseJson(operation.input),
    sessionId,
    messageId,
    callId,
    turn,
    step,
    workingDirectory,
    places,
    chain,
    actor: "recovery",
    ...(undoOf === "" ? {} : { undoOf }),
    ...(decisionId === "" ? {} : await behind(decisionId, step, parts)),
  };
}

/**
 * To call a tool once more is an effect like any other: the gate is asked again, and an approved call must be the one that
 * was approved. Without a decision behind it nobody consented to a place that the gate would ask about now. Gives the places
 * that were judged; throws when it may not be called again.
 */
async function checkAgain(
  operation: Operation,
  { judging, store }: DecideParts,
): Promise<readonly string[]> {
  const { decisionId, sessionId, chain, workingDirectory, callId, tool, step, undoOf } = operation;
  const input = parseJson(operation.input);
  const takesBack = undoOf !== "";
  const caller = { tenant: store.tenant, sessionId, chain, workingDirectory, takesBack };
  const judged = await judgeCall({ callId, tool, input }, caller, judging, "approved");
  if (judged.verdict === "deny" || judged.verdict === "failed") throw new Error(judged.text);
  if (decisionId === "") {
    const { facts, verdict } = judged;
    const isLinked =
      verdict === "ask" && (await goesThroughLink(facts.resources, workingDirectory));
    if (isLinked) throw new Error("a path of the call leads to a place that was not allowed");
    return judged.places;
  }
  const planned = decodeAction(await store.decisions.get(decisionId))[step];
  if (planned?.tool !== tool || canonicalJson(planned.input) !== operation.input) {
    throw new Error("what is stored of the call is not what was approved");
  }
  const { places = judged.places } = planned;
  if (canonicalJson(places) !== canonicalJson(judged.places)) {
    throw new Error("a path of the call leads to another place than the one that was approved");
  }
  return places;
}

function needTool(name: string, { registry }: DecideParts): Tool {
  const tool = registry.get(name);
  if (tool === undefined) throw new Error(`the tool "${name}" is not here`);
  return tool;
}

/** What the decision behind a call says about it: who asked, and what its success closes. */
async function behind(
  id: DecisionId,
  step: number,
  { store }: DecideParts,
): Promise<Pick<Order, "chain" | "closes">> {
  const decision = await store.decisions.get(id);
  const chain = askersOf(decision);
  // Closed by hand in the meantime: the outcome is recorded all the same.
  if (decision.state !== "approved") return { chain };
  return { chain, closes: closing(id, step, decodeAction(decision).length) };
}

/** Undefined when there is nothing to carry on: somebody else executes it, or one of its calls is open. */
export async function carryOn(
  decision: Decision,
  parts: DecideParts,
): Promise<readonly CallAnswer[] | undefined> {
  const { id, sessionId } = decision;
  const { interactions, decisions, operations } = parts.store;
  // What others staged is executed by them.
  if (decision.origin !== "port") return undefined;
  if ((await interactions.shown(id)) === undefined) return undefined;
  const begun = await operations.listBySession(sessionId, { decisionId: id });
  if (begun.some(({ status }) => status === "started" || status === "unknown")) return undefined;
  const calls = decodeAction(decision);
  // Where a tool is missing the rest would fail, and so would the way back: another process may have them all.
  const waysBack = begun.map(({ undo }) => undo?.tool ?? "").filter((name) => name !== "");
  const rest = calls.slice(begun.length).map(({ tool }) => tool);
  for (const name of [...rest, ...waysBack]) needTool(name, parts);
  const undos = await Promise.all(begun.map((operation) => nextAttempt(operations, operation.id)));
  // A compensation that runs, or was cut off a moment ago, has to end first: the decision is closed with what became of it.
  if (undos.some((undo) => undo.state === "taken" && undo.by.status === "started"))
    return undefined;
  const reason = whyTakenBack(begun, undos);
  if (reason !== undefined) {
    await takeBackAll(decision, reason, parts);
    return [];
  }
  const steps = calls.length;
  if (begun.length < steps) return runFrom(begun.length, decision, parts);
  // The last one was open until a person found out that it had happened.
  await decisions.markExecuted(id, { steps }, { actor: "recovery" });
  return [];
}

/** A call that failed, or a compensation that was begun, means the way back; nothing goes forward from there. */
function whyTakenBack(
  begun: readonly Operation[],
  undos: readonly UndoAttempt[],
): string | undefined {
  const failed = begun.find(({ status }) => status === "failed");
  if (failed !== undefined) return failed.error;
  const isUntouched = undos.every((undo) => undo.state === "free" && undo.number === 1);
  if (isUntouched && begun.every(({ status }) => status === "success")) return undefined;
  return "It was being taken back when the process that did so went away.";
}

/** How many records of one list a round looks at. What is beyond is looked at by the next rounds, before anything comes again. */
const LOOKED_AT = 10_000;
const PAGE = 200;
/** So many sessions are worked on at the same time: one target that hangs holds up only its own. */
const AT_ONCE = 8;

/** Where the last round left a list off; 0 when it came to the end. Kept by the port that recovers. */
export interface Places {
  operations: number;
  approved: number;
  unasked: number;
}

export interface Round<Item> {
  read(page: Page): Promise<Found<Item>>;
  /** False ends the round. */
  work(item: Item): Promise<boolean>;
  /** Told of every record that cannot be read. Shape: push. */
  onDamaged(damaged: Damaged): void;
}

/**
 * Goes through a list from where the last round stopped, and around at its end, so that no number of records that cannot be
 * carried on hides the others. Those of one session come one after the other, oldest first. Answers where the next round
 * begins: 0 when everything was looked at.
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
