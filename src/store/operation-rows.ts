import { SallyportError } from "../model/errors.ts";
import { isOperationStatus, type Operation, type RecordedUndo } from "../model/operation.ts";
import { encodeValue } from "../util/value-codec.ts";
import { NOW, type Row, type Table, type Values } from "./engine.ts";
import type { Intent, Outcome } from "./operations.ts";
import { decoded, instantIn } from "./read-cell.ts";

/** How an operation lies in a row. */
export const OPERATIONS: Table = {
  name: "operations",
  columns: {
    session_id: "text",
    message_id: "text",
    call_id: "text",
    turn: "int",
    tool: "text",
    effect: "text",
    definition_hash: "text",
    input: "text",
    working_directory: "text",
    chain: "text",
    decision_id: "text",
    step: "int",
    undo_of: "text",
    status: "text",
    attempt: "int",
    fence: "int",
    lease_until: "int",
    output: "text",
    truncated: "int",
    stored_path: "text",
    undo: "text",
    error: "text",
    state_version: "text",
    created_at: "int",
    updated_at: "int",
  },
  indexed: ["session_id", "status"],
};

export function rowOfIntent(intent: Intent): Values {
  return {
    session_id: intent.sessionId,
    message_id: intent.messageId,
    call_id: intent.callId,
    turn: intent.turn,
    tool: intent.tool,
    effect: intent.effect,
    definition_hash: intent.definitionHash,
    input: intent.input,
    working_directory: encodeValue(intent.workingDirectory),
    chain: encodeValue(intent.chain ?? []),
    decision_id: intent.approval?.decisionId ?? "",
    step: intent.step,
    undo_of: intent.undoOf,
    status: "started",
    attempt: 1,
    fence: 1,
    lease_until: { nowPlusMs: intent.leaseMs },
    output: null,
    truncated: 0,
    stored_path: null,
    undo: null,
    error: null,
    state_version: null,
    created_at: NOW,
    updated_at: NOW,
  };
}

/** Text of tools may hold what one engine cannot store (NUL), so it is kept encoded. */
export function rowOfOutcome(outcome: Outcome): Values {
  const set = { status: outcome.status, updated_at: NOW };
  switch (outcome.status) {
    case "success":
      return {
        ...set,
        output: encodeValue(outcome.output),
        truncated: outcome.truncated ? 1 : 0,
        stored_path: encodeValue(outcome.storedPath),
        undo: outcome.undo === undefined ? null : encodeValue(outcome.undo),
        state_version: encodeValue(outcome.stateVersion),
      };
    case "failed":
      return {
        ...set,
        error: encodeValue(outcome.error),
        output: encodeValue(outcome.output),
        truncated: outcome.truncated === true ? 1 : 0,
        stored_path: encodeValue(outcome.storedPath ?? ""),
        ...(outcome.undo === undefined
          ? {}
          : {
              undo: encodeValue(outcome.undo),
              state_version: encodeValue(outcome.stateVersion ?? ""),
            }),
      };
    case "unknown":
      return { ...set, error: encodeValue(outcome.error) };
  }
}

export function operationOf(row: Row): Operation {
  const status = row["status"];
  if (!isOperationStatus(status)) {
    const hint = "Run a store check and compare with the audit trail before you trust this store.";
    const id = String(row["id"]);
    throw new SallyportError("damaged_record", { id, column: "status", hint });
  }
  return {
    id: String(row["id"]),
    sessionId: String(row["session_id"]),
    messageId: String(row["message_id"]),
    callId: String(row["call_id"]),
    turn: Number(row["turn"]),
    tool: String(row["tool"]),
    effect: String(row["effect"]),
    definitionHash: String(row["definition_hash"]),
    input: String(row["input"]),
    workingDirectory: textIn(row, "working_directory"),
    // Rows that were written before it was kept have none.
    chain: row["chain"] === null ? [] : decoded<readonly string[]>(row, "chain"),
    decisionId: String(row["decision_id"]),
    step: Number(row["step"]),
    undoOf: String(row["undo_of"]),
    status,
    attempt: Number(row["attempt"]),
    fence: Number(row["fence"]),
    leaseUntil: instantIn(row, "lease_until"),
    output: textIn(row, "output"),
    truncated: row["truncated"] === 1,
    storedPath: textIn(row, "stored_path"),
    undo: row["undo"] === null ? undefined : decoded<RecordedUndo>(row, "undo"),
    error: textIn(row, "error"),
    stateVersion: textIn(row, "state_version"),
    createdAt: instantIn(row, "created_at"),
    updatedAt: instantIn(row, "updated_at"),
  };
}

function textIn(row: Row, column: string): string {
  const cell = row[column];
  return typeof cell === "string" ? String(decoded(row, column)) : "";
}
