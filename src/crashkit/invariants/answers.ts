// What callers asked for and were told, and what is stored of it.

import type { Evidence, Invariant, Told } from "../evidence.ts";
import { type Look, lookAt } from "../look.ts";
import { decisionMoves } from "./histories.ts";

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
