import {
  INTERACTION_OUTCOMES,
  INTERACTION_STATUSES,
  INTERACTION_TYPES,
  type Interaction,
  type InteractionDraft,
  type InteractionOutcome,
  type PendingTool,
  type Remark,
} from "../model/interaction.ts";
import { ONE_PERSON, type Vote } from "../model/requirement.ts";
import { fromIso, toIso } from "../util/clock.ts";
import type { JsonValue } from "../util/json.ts";
import { encodeValue } from "../util/value-codec.ts";
import { NOW, type NowPlus, type Row, type Table, type Values } from "./engine.ts";
import { damaged, decoded, instantIn, oneOf } from "./read-cell.ts";

/** How a question lies in a row. `due_at` and `escalate_at` are empty once it is closed, so that only open ones are found by time. */
export const INTERACTIONS: Table = {
  name: "interactions",
  columns: {
    type: "text",
    status: "text",
    session_id: "text",
    call_id: "text",
    hash: "text",
    decision_id: "text",
    operation_id: "text",
    facts: "text",
    votes: "text",
    remarks: "text",
    waits_for: "text",
    assigned_to: "text",
    deadline: "int",
    due_at: "int",
    escalate_at: "int",
    escalate_to: "text",
    escalated: "int",
    outcome: "text",
    answer: "text",
    answered_by: "text",
    superseded_by: "text",
    version: "int",
    created_at: "int",
    updated_at: "int",
  },
  indexed: ["session_id", "status", "due_at", "escalate_at"],
};

/** What never changes about a question, in one cell. */
type Facts = Pick<Interaction, "displayText" | "chain" | "choices" | "metadata" | "requires"> & {
  readonly pendingTool?: PendingTool;
};

export function rowOfQuestion(draft: InteractionDraft): Values {
  const facts: Facts = {
    displayText: draft.displayText,
    chain: draft.chain,
    choices: draft.choices ?? [],
    ...(draft.pendingTool === undefined ? {} : { pendingTool: draft.pendingTool }),
    metadata: draft.metadata ?? {},
    requires: draft.requires ?? ONE_PERSON,
  };
  const { escalation } = draft;
  const deadline = deadlineOf(draft);
  return {
    type: draft.type,
    status: "open",
    session_id: draft.sessionId,
    call_id: draft.callId,
    hash: draft.hash,
    decision_id: draft.decisionId ?? "",
    operation_id: draft.operationId ?? "",
    facts: encodeValue(facts),
    votes: null,
    remarks: null,
    waits_for: "people",
    assigned_to: draft.assignedTo ?? "",
    deadline,
    due_at: deadline,
    escalate_at: escalation === undefined ? null : { nowPlusMs: escalation.afterMs },
    escalate_to: escalation?.to ?? "",
    escalated: 0,
    outcome: null,
    answer: null,
    answered_by: "",
    superseded_by: "",
    version: 1,
    created_at: NOW,
    updated_at: NOW,
  };
}

function deadlineOf({ deadlineAt, deadlineMs = 0 }: InteractionDraft): number | NowPlus {
  return deadlineAt === undefined ? { nowPlusMs: deadlineMs } : fromIso(deadlineAt);
}

export interface Closing {
  readonly outcome: InteractionOutcome;
  readonly by: string;
  readonly reason: string;
  readonly answer?: JsonValue;
  readonly supersededBy?: string;
}

/** The columns that every way of closing a question sets. */
export function rowOfClosing(closing: Closing): Values {
  const { outcome, by, reason, answer, supersededBy = "" } = closing;
  return {
    status: INTERACTION_OUTCOMES[outcome],
    outcome,
    answer: encodeValue(answer === undefined ? { reason } : { answer, reason }),
    answered_by: by,
    superseded_by: supersededBy,
    due_at: null,
    escalate_at: null,
    version: { plus: 1 },
    updated_at: NOW,
  };
}

export function interactionOf(row: Row): Interaction {
  const facts = decoded<Facts>(row, "facts");
  const { displayText, chain, choices, pendingTool, metadata, requires } = facts;
  const lists: readonly unknown[] = [chain, choices, requires];
  if (typeof displayText !== "string" || !lists.every(Array.isArray)) throw damaged(row, "facts");
  const given = row["answer"] === null ? { reason: "" } : decoded<GivenCell>(row, "answer");
  return {
    id: String(row["id"]),
    type: oneOf(row, "type", INTERACTION_TYPES),
    status: oneOf(row, "status", INTERACTION_STATUSES),
    sessionId: String(row["session_id"]),
    callId: String(row["call_id"]),
    displayText,
    hash: String(row["hash"]),
    decisionId: String(row["decision_id"]),
    operationId: String(row["operation_id"]),
    chain,
    choices,
    pendingTool,
    metadata,
    requires,
    votes: row["votes"] === null ? [] : decoded<readonly Vote[]>(row, "votes"),
    remarks: row["remarks"] === null ? [] : decoded<readonly Remark[]>(row, "remarks"),
    waitsFor: oneOf(row, "waits_for", ["people", "agent"] as const),
    assignedTo: String(row["assigned_to"]),
    deadline: instantIn(row, "deadline"),
    escalation: escalationOf(row),
    escalated: row["escalated"] === 1,
    outcome: row["outcome"] === null ? undefined : oneOf(row, "outcome", OUTCOMES),
    answer: given.answer,
    answeredBy: String(row["answered_by"]),
    reason: given.reason,
    supersededBy: String(row["superseded_by"]),
    createdAt: instantIn(row, "created_at"),
    updatedAt: instantIn(row, "updated_at"),
    version: Number(row["version"]),
    ord: Number(row["ord"]),
  };
}

interface GivenCell {
  readonly answer?: JsonValue;
  readonly reason: string;
}

const OUTCOMES = Object.keys(INTERACTION_OUTCOMES) as readonly InteractionOutcome[];

function escalationOf(row: Row): Interaction["escalation"] {
  const at = row["escalate_at"];
  return typeof at === "number" ? { at: toIso(at), to: String(row["escalate_to"]) } : undefined;
}
