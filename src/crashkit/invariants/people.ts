import type { Decision } from "../../model/decision.ts";
import { missingFactors } from "../../model/interaction.ts";
import { foldName } from "../../model/names.ts";
import { fromIso } from "../../util/clock.ts";
import type { Evidence, Invariant, Told } from "../evidence.ts";
import { type Look, lookAt } from "../look.ts";
import { closingsOf, decisionMoves } from "./histories.ts";

// What people were asked and said.

export const I3: Invariant = {
  id: "I3",
  text: "Nobody who asked for something decides it, no agent does, and the yes of each person counts once.",
  check({ interactions }) {
    const approved = interactions.filter(
      ({ type, outcome }) => type === "confirm" && outcome === "approved",
    );
    return approved.flatMap(({ id, chain, votes, requires }) => {
      const askers = chain.map(foldName);
      const people = votes.map(({ by }) => foldName(by));
      const problems: string[] = [];
      const own = votes.find(({ by }) => askers.includes(foldName(by)));
      if (own !== undefined) problems.push(`${id} was approved by ${own.by}, who asked for it`);
      const agent = people.find((by) => by.startsWith("agent:"));
      if (agent !== undefined) problems.push(`${id} was approved by ${agent}`);
      if (new Set(people).size < people.length) problems.push(`${id} counts one person twice`);
      if (missingFactors(requires, votes).length > 0) {
        problems.push(`${id} was approved with too few votes`);
      }
      return problems;
    });
  },
};

export const I10: Invariant = {
  id: "I10",
  text: "A question is answered once, and silence ends as no.",
  check(evidence) {
    const look = lookAt(evidence);
    return evidence.interactions.flatMap(({ id, status, outcome, decisionId }) => {
      const closings = closingsOf(id, look);
      const problems: string[] = [];
      if (closings.length > 1) problems.push(`${id} was closed ${closings.length} times`);
      if (status === "open" && closings.length > 0) problems.push(`${id} is open again`);
      const state = decisionId === "" ? undefined : look.decision(decisionId)?.state;
      if ((outcome === "expired" || outcome === "canceled") && state !== undefined) {
        if (state !== "rejected_ml") problems.push(`${id} is ${outcome}, but it is ${state}`);
      }
      return problems;
    });
  },
};

/** A lease or an approval that is over stays over, whatever clocks do. */
export const I13: Invariant = {
  id: "I13",
  text: "An expired lease or approval never becomes valid again.",
  check(evidence) {
    const look = lookAt(evidence);
    const late = evidence.interactions.flatMap(({ id, deadline }) =>
      closingsOf(id, look)
        .filter(
          ({ type, at }) => type === "interaction.answered" && fromIso(at) > fromIso(deadline),
        )
        .map(({ at }) => `${id} was answered at ${at}, after ${deadline}`),
    );
    const revived = evidence.operations.flatMap(({ id }) => {
      let newest = 0;
      return look.linesOf(id).flatMap(({ type, data, seq }) => {
        const { fence } = data;
        if (typeof fence !== "number" || type === "operation.undone") return [];
        if (fence < newest) {
          return [`${id} was written under fence ${fence} at ${seq}, which was over`];
        }
        newest = fence;
        return [];
      });
    });
    return [...late, ...revived];
  },
};

// What callers asked for and were told, and what is stored of it.

export const I6: Invariant = {
  id: "I6",
  text: "No success is told or stored that production knows nothing of, and none without a stored outcome.",
  check(evidence) {
    const look = lookAt(evidence);
    const told = evidence.told.flatMap((one) => {
      if (!("operationId" in one) || one.answer !== "done") return [];
      const types = look.linesOf(one.operationId).map(({ type }) => type);
      if (types.includes("operation.succeeded")) return [];
      return [`${one.operationId} was told as done without a stored outcome`];
    });
    const stored = evidence.operations.flatMap(({ id, status, effect }) => {
      if (effect === "read" || (status !== "success" && status !== "rolled_back")) return [];
      const happened = look.effectsOf(id).some(({ applied }) => applied);
      return happened ? [] : [`${id} is ${status}, but production knows nothing of it`];
    });
    return [...told, ...stored];
  },
};

export const I9: Invariant = {
  id: "I9",
  text: "Everything that was acknowledged is still there.",
  check(evidence) {
    const look = lookAt(evidence);
    return evidence.told.flatMap((told) => whyLost(told, look));
  },
};

function whyLost(told: Told, look: Look): readonly string[] {
  if ("operationId" in told) {
    const { operationId, answer } = told;
    const status = look.operation(operationId)?.status ?? "gone";
    const holds = STILL_TRUE[answer].includes(status);
    return holds ? [] : [`${operationId} was told as ${answer}, but it is ${status}`];
  }
  const { decisionId, answer } = told;
  const moves = decisionMoves(decisionId, look);
  if (look.decision(decisionId) === undefined) return [`${decisionId} was told, but it is gone`];
  const wanted = ONCE[answer];
  const holds = moves === undefined || moves.some(({ to }) => to === wanted);
  return holds ? [] : [`${decisionId} was told as ${answer}, but it never was ${wanted}`];
}

const STILL_TRUE: Readonly<Record<"done" | "failed" | "unknown", readonly string[]>> = {
  done: ["success", "rolled_back"],
  // Also of a call that was undone before it was asked about, or that failed with a way back.
  failed: ["failed", "rolled_back"],
  // Nobody knew then; a probe or a person may have found out since, or have it tried again.
  unknown: ["unknown", "started", "success", "failed", "rolled_back"],
};

/** The state that it must have been in at least once. */
const ONCE = { pending: "pending_ml", approved: "approved", rejected: "rejected_ml" } as const;

export const I29: Invariant = {
  id: "I29",
  text: "A call that is asked for again under its key stays one call: put before people once, begun once.",
  check(evidence) {
    const keyed = new Set(evidence.keyed);
    const became = Map.groupBy(callsOf(evidence), ({ what, callId }) => `${callId} was ${what}`);
    return [...became].flatMap(([what, all]) =>
      all.length > 1 && keyed.has(all[0]?.callId ?? "")
        ? [`${what} as ${all.map(({ id }) => id).join(" and ")}, though it had a key`]
        : [],
    );
  },
};

/** What came of each call, by the id that its agent gave it. */
function callsOf({ interactions, operations }: Evidence) {
  // Asked about anew because it was edited or the world had moved on, and not because its agent asked again.
  const successors = new Set(interactions.map(({ supersededBy }) => supersededBy));
  const asked = interactions
    .filter(({ id, type }) => type === "confirm" && !successors.has(id))
    .map(({ callId, id }) => ({ what: "put before people", callId, id }));
  const begun = operations
    .filter(({ undoOf }) => undoOf === "")
    .map(({ callId, id }) => ({ what: "begun", callId, id }));
  return [...asked, ...begun];
}

export const I28: Invariant = {
  id: "I28",
  text: "Each call is taken back at most once; a bundle ends done, taken back, or plainly in need of somebody.",
  check(evidence) {
    const look = lookAt(evidence);
    const taken = new Set(evidence.operations.map(({ undoOf }) => undoOf));
    const twice = [...taken].flatMap((id) => whyTwice(id, look));
    const untrue = evidence.operations.flatMap(({ id, status }) => {
      const done = look.undosOf(id).filter((undo) => undo.status === "success").length;
      if (status === "rolled_back" && done !== 1) return [`${id} is rolled back by ${done} calls`];
      return done > 0 && status !== "rolled_back" ? [`${id} was taken back, but is ${status}`] : [];
    });
    const bundles = evidence.decisions.flatMap((decision) => whyBetween(decision, look));
    return [...twice, ...untrue, ...bundles];
  },
};

function whyTwice(id: string, look: Look): readonly string[] {
  const tries = look.undosOf(id);
  // Also where the first never reached production: nobody knew that, so nobody may have tried again.
  const alive = tries.filter(({ status }) => status !== "failed").length;
  const effects = tries.flatMap((undo) => look.effectsOf(undo.id));
  const taken = effects.filter(({ applied, kind }) => applied && kind !== "plain").length;
  const problems: string[] = [];
  if (alive > 1) problems.push(`${alive} operations take ${id} back`);
  if (taken > 1) problems.push(`${id} was taken back ${taken} times`);
  return problems;
}

/** A closed decision must say the truth about each of its steps. */
function whyBetween(decision: Decision, look: Look): readonly string[] {
  const { id, state, executionError } = decision;
  const calls = look.calls(decision);
  if (calls === undefined) return [];
  const own = look.operationsOf(id);
  if (state === "executed") {
    const isDone = (step: number) =>
      own.some((one) => one.step === step && ENDED_WELL.includes(one.status));
    const missing = calls.map((_, step) => step).filter((step) => !isDone(step));
    return missing.map((step) => `${id} is executed, but step ${step} is not`);
  }
  // What a person closed by hand is theirs to answer for.
  const closed = look.linesOf(id).findLast(({ type }) => type === "decision.failed");
  if (state !== "failed" || !CLOSES.includes(closed?.actor ?? "executor")) return [];
  const left = own.filter(({ status }) => status === "success");
  return left.flatMap((one) => {
    const isTold = executionError.includes(one.id) && executionError.includes("not complete");
    return isTold ? [] : [`${id} failed, and ${one.id} is neither taken back nor told`];
  });
}

const ENDED_WELL = ["success", "rolled_back"];
const CLOSES = ["executor", "recovery"];
