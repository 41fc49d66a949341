import { ChainCheck, ProblemList } from "../../audit/verify.ts";
import type { Decision } from "../../model/decision.ts";
import {
  BEGINS,
  closingsOf,
  decisionMoves,
  type EvidenceIndex,
  type Invariant,
  isMove,
  isStopped,
  lookAt,
  OPERATION_EVENTS,
  operationLines,
  outcomeStatus,
  type RunEvidence,
  type TrailLine,
} from "../evidence.ts";
import { I1, I2, I3, I4, I5, I6, I7, I9, I10, I13, I28, I29 } from "./effects.ts";

// States of records, how they were reached, and whether they may remain.

export const I12: Invariant = {
  id: "I12",
  text: "Fences only grow, and an outcome is written under the newest one.",
  check(evidence, look = lookAt(evidence)) {
    return evidence.operations.flatMap(({ id }) => {
      let current = 0;
      return look.linesOf(id).flatMap(({ type, data }) => {
        const { fence } = data;
        if (typeof fence !== "number") return [];
        if (look.begins(id).some((begin) => begin.data === data)) {
          const grew = fence > current;
          current = fence;
          return grew ? [] : [`${id} was started again under fence ${fence}`];
        }
        const isOld = SETTLES.includes(type) && fence !== current;
        return isOld ? [`${id}: ${type} under fence ${fence}, the newest was ${current}`] : [];
      });
    });
  },
};

const SETTLES = ["operation.succeeded", "operation.failed", "operation.lost"];

export const I14: Invariant = {
  id: "I14",
  text: "At rest nothing hangs: every call has ended or is a question, every decision is closed or waits for a person.",
  check(evidence, look = lookAt(evidence)) {
    if (!evidence.isAtRest) return [];
    const open = evidence.interactions.filter(({ status }) => status === "open");
    const asked = new Set(open.map(({ operationId }) => operationId));
    const operations = evidence.operations.flatMap(({ id, status }) => {
      if (status === "started") return [`${id} is still open`];
      return status === "unknown" && !asked.has(id)
        ? [`${id} is unknown, and no person is asked`]
        : [];
    });
    const decisions = evidence.decisions.flatMap((decision) => whyHanging(decision, look));
    return [...operations, ...decisions];
  },
};

function whyHanging(decision: Decision, look: EvidenceIndex): readonly string[] {
  const { id, state, metadata } = decision;
  // Decisions that were staged from outside or edited are continued by their authors.
  if (look.calls(decision) === undefined || hasFacts(metadata["facts"])) return [];
  if (state === "approved") {
    const own = look.operationsOf(id);
    const undos = own.flatMap((one) => look.undosOf(one.id));
    const isFlagged = [...own, ...undos].some(({ status }) => status === "unknown");
    return isFlagged ? [] : [`${id} is approved, and no process executes it`];
  }
  if (state !== "pending_tech" && state !== "pending_ml") return [];
  return look.interaction(id)?.status === "open"
    ? []
    : [`${id} is ${state}, and no person is asked`];
}

function hasFacts(facts: unknown): boolean {
  return typeof facts === "object" && facts !== null && Object.keys(facts).length > 0;
}

export const I15: Invariant = {
  id: "I15",
  text: "Records change only along the tables of transitions, and final states never change.",
  check(evidence, look = lookAt(evidence)) {
    const decisions = evidence.decisions.flatMap(({ id }) => {
      let now: string | undefined;
      return (decisionMoves(id, look) ?? []).flatMap(({ from, to, seq }) => {
        const before = now;
        now = to;
        if (from === before && isMove(before, to)) return [];
        return [`${id} went from ${before} to ${to} at ${seq}, said to come from ${from}`];
      });
    });
    const operations = evidence.operations.flatMap(({ id }) => {
      let now = "nothing";
      return operationLines(id, look).flatMap(({ type, seq }) => {
        const move = OPERATION_EVENTS[type];
        const before = now;
        now = move?.to ?? now;
        return move?.from.includes(before)
          ? []
          : [`${id} was ${before} when ${type} came at ${seq}`];
      });
    });
    return [...decisions, ...operations];
  },
};

export const I20: Invariant = {
  id: "I20",
  text: "The state in the audit log is the state that is stored.",
  check(evidence, look = lookAt(evidence)) {
    const isTimed = (id: string) => !isAheadOfClock(decisionMoves(id, look)?.at(-1), look);
    return [
      ...differences(
        evidence.decisions.map(({ id, state, updatedAt }) => [
          id,
          isTimed(id) ? `${state} since ${updatedAt}` : state,
        ]),
        (id) => decisionTold(id, look, isTimed(id)),
      ),
      ...differences(
        evidence.operations.map(({ id, status, fence }) => [id, `${status} under ${fence}`]),
        (id) => operationTold(id, look),
      ),
      ...differences(
        evidence.interactions.map(({ id, status }) => [id, status]),
        (id) => interactionTold(id, look),
      ),
      ...untold(evidence, look),
    ];
  },
};

function differences(
  stored: readonly (readonly [string, string])[],
  told: (id: string) => string | undefined,
): readonly string[] {
  return stored.flatMap(([id, state]) => {
    const said = told(id);
    return said === undefined || said === state
      ? []
      : [`${id} is stored as ${state}, and the log says ${said}`];
  });
}

/** While the log is known to be ahead of the clock, records have the clock's time and entries the last one. */
function isAheadOfClock(
  move: { seq: number; at: string } | undefined,
  look: EvidenceIndex,
): boolean {
  return look.lines.some(
    ({ type, seq, data }) =>
      type === "store.clock_accepted" &&
      move !== undefined &&
      seq < move.seq &&
      String(data["trailAt"]) >= move.at,
  );
}

/** Undefined for what was erased. */
function decisionTold(id: string, look: EvidenceIndex, isTimed: boolean): string | undefined {
  const moves = decisionMoves(id, look);
  if (moves === undefined) return undefined;
  const last = moves.at(-1);
  if (last === undefined) return "not there";
  return isTimed ? `${last.to} since ${last.at}` : last.to;
}

function operationTold(id: string, look: EvidenceIndex): string | undefined {
  const lines = operationLines(id, look);
  if (lines.some(({ isErased }) => isErased)) return undefined;
  const last = lines.at(-1);
  if (last === undefined) return "not there";
  return `${OPERATION_EVENTS[last.type]?.to} under ${last.data["fence"]}`;
}

function interactionTold(id: string, look: EvidenceIndex): string | undefined {
  const closing = closingsOf(id, look).at(-1);
  if (closing !== undefined) return outcomeStatus(closing.data["outcome"]);
  const isOpened = look.linesOf(id).some(({ type }) => type === "interaction.opened");
  return isOpened ? "open" : "not there";
}

/** The other direction: records that the log created must be stored. */
function untold({ trail }: RunEvidence, look: EvidenceIndex): readonly string[] {
  return trail.flatMap(({ type, subject }) => {
    const isStored = STORED[type]?.(subject, look) ?? true;
    return isStored ? [] : [`${subject} is in the audit log (${type}), and it is not stored`];
  });
}

const STORED: Readonly<Record<string, (id: string, look: EvidenceIndex) => boolean>> = {
  "decision.staged": (id, look) => look.decision(id) !== undefined,
  "operation.started": (id, look) => look.operation(id) !== undefined,
  "interaction.opened": (id, look) => look.interaction(id) !== undefined,
};

// The audit log itself: a chain, in causal order.

export const I17: Invariant = {
  id: "I17",
  text: "The chain verifies from its first entry to its last: no gap, no duplicate number, one chain per tenant.",
  check({ tenant, trail }) {
    const problems = new ProblemList();
    const chain = new ChainCheck(tenant, problems);
    for (const entry of trail) chain.take(entry);
    const foreign = trail.filter((entry) => entry.tenant !== tenant);
    return [
      ...problems.kept.map(({ code, seq }) => `entry ${seq}: ${code}`),
      ...foreign.map(({ seq, tenant: other }) => `entry ${seq} is of ${other}`),
    ];
  },
};

export const I18: Invariant = {
  id: "I18",
  text: "No entry comes before its cause, and times do not decrease.",
  check(evidence, look = lookAt(evidence)) {
    let before = "";
    return look.lines.flatMap((line) => {
      const isEarlier = line.at < before;
      before = line.at;
      const cause = CAUSES[line.type]?.(line, look);
      const problems: string[] = [];
      if (isEarlier) problems.push(`entry ${line.seq} is older than the one before it`);
      if (cause === false) problems.push(`entry ${line.seq} (${line.type}) comes before its cause`);
      return problems;
    });
  },
};

/** Whether the cause of an entry precedes it. */
const CAUSES: Readonly<Record<string, (line: TrailLine, look: EvidenceIndex) => boolean>> = {
  "operation.started": ({ seq, data }, look) => {
    const decision = String(data["decision"] ?? "");
    const undoOf = String(data["undo_of"] ?? "");
    const wasApproved =
      decision === "" ||
      (decisionMoves(decision, look) ?? APPROVED).some(
        (move) => move.to === "approved" && move.seq < seq,
      );
    return wasApproved && (undoOf === "" || isBefore(seq, undoOf, ["operation.succeeded"], look));
  },
  "operation.succeeded": ({ seq, subject }, look) => isBefore(seq, subject, BEGINS, look),
  "operation.failed": ({ seq, subject }, look) => isBefore(seq, subject, BEGINS, look),
  "operation.lost": ({ seq, subject }, look) => isBefore(seq, subject, BEGINS, look),
  "operation.undone": ({ seq, data }, look) => {
    const by = data["by"];
    return typeof by !== "string" || isBefore(seq, by, ["operation.succeeded"], look);
  },
  "interaction.answered": ({ seq, subject }, look) =>
    isBefore(seq, subject, ["interaction.opened"], look),
  "decision.previewed": ({ seq, subject }, look) =>
    isBefore(seq, subject, ["decision.reviewed"], look),
};

/** Stands for a history that was erased. */
const APPROVED = [{ seq: 0, at: "", to: "approved", type: "decision.reviewed" }];

function isBefore(
  seq: number,
  subject: string,
  types: readonly string[],
  look: EvidenceIndex,
): boolean {
  return look.linesOf(subject).some((line) => line.seq < seq && types.includes(line.type));
}

export const I30: Invariant = {
  id: "I30",
  text: "After the kill switch nothing starts until it is released.",
  check(evidence, look = lookAt(evidence)) {
    return look.lines
      .filter(({ type, seq }) => BEGINS.includes(type) && isStopped(seq, look))
      .map(({ subject, type }) => `${type} of ${subject} while everything was stopped`);
  },
};

/** The invariants of the threat model that evidence can show violated. The others need other checks. */
export const INVARIANTS: readonly Invariant[] = [
  I1,
  I2,
  I3,
  I4,
  I5,
  I6,
  I7,
  I9,
  I10,
  I12,
  I13,
  I14,
  I15,
  I17,
  I18,
  I20,
  I28,
  I29,
  I30,
];

/** Those that can be checked with the store alone, at any time. */
export const OF_THE_STORE = [
  "I2",
  "I12",
  "I15",
  "I17",
  "I18",
  "I20",
] as const satisfies readonly Invariant["id"][];

export interface Violation {
  readonly id: Invariant["id"];
  readonly problem: string;
}

/** All violations, in the order of the table, of all invariants or of those that are named. */
export function checkInvariants(
  evidence: RunEvidence,
  ids: readonly Invariant["id"][] = INVARIANTS.map(({ id }) => id),
): readonly Violation[] {
  return INVARIANTS.filter(({ id }) => ids.includes(id)).flatMap(({ id, check }) =>
    check(evidence).map((problem) => ({ id, problem })),
  );
}
