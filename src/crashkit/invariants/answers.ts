// What callers were told, and what is stored of it.

import type { Invariant, Told } from "../evidence.ts";
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
  failed: ["failed"],
  // Nobody knew then; a probe or a person may have found out since, or have it tried again.
  unknown: ["unknown", "started", "success", "failed", "rolled_back"],
};

/** The state that it must have been in at least once. */
const ONCE = { pending: "pending_ml", approved: "approved", rejected: "rejected_ml" } as const;
