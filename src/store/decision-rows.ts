import { copyMetadata, type Decision, isDecisionState, type Metadata } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import { MAX_REASON, NO_VERDICT, type Verdict, verdictProblem } from "../model/verdict.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { toIso } from "../util/clock.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { decodeValue, encodeValue } from "../util/value-codec.ts";
import { type Cell, NOW, type Row, type Table, type Values } from "./engine.ts";

/** How a decision lies in a row. */
export const DECISIONS: Table = {
  name: "decisions",
  columns: {
    session_id: "text",
    state: "text",
    source_tool: "text",
    raw: "bytes",
    diff_metadata: "text",
    /** Null while it mirrors the diff's. */
    metadata: "text",
    /** Null for what others staged. */
    origin: "text",
    tech_verdict: "text",
    biz_verdict: "text",
    execution_proof: "text",
    execution_error: "text",
    asked: "int",
    /** When a call of the port was staged, and null as soon as people were asked or it was refused; null for all others. */
    unasked: "int",
    created_at: "int",
    updated_at: "int",
  },
  indexed: ["session_id", "state"],
};

export function rowOfDraft(draft: Decision): Values {
  const diffMetadata = encoded("metadata", draft.diff.metadata);
  const mirrors = draft.metadata === draft.diff.metadata;
  return {
    session_id: draft.sessionId,
    state: draft.state,
    source_tool: draft.diff.sourceTool,
    // Not slice: on a Buffer that would share its memory.
    raw: new Uint8Array(draft.diff.raw),
    diff_metadata: diffMetadata,
    metadata: mirrors ? null : encoded("metadata", draft.metadata),
    origin: draft.origin === "port" ? "port" : null,
    tech_verdict: null,
    biz_verdict: null,
    execution_proof: null,
    execution_error: null,
    // 1 once people were asked about it, see Confirmations.
    asked: 0,
    unasked: draft.origin === "port" ? NOW : null,
    created_at: NOW,
    updated_at: NOW,
  };
}

/** Throws invalid_input for what is not data, such as a function, and payload_too_large. */
export function encoded(what: string, value: unknown): string {
  const text = asText(what, value);
  if (text.length <= MAX_ENCODED) return text;
  const hint = "Keep it elsewhere and store a reference.";
  throw new SallyportError("payload_too_large", {
    what,
    length: text.length,
    limit: MAX_ENCODED,
    hint,
  });
}

const MAX_ENCODED = 1024 * 1024;

function asText(what: string, value: unknown): string {
  try {
    return encodeValue(value);
  } catch (cause) {
    const hint = "Pass plain data, without functions and symbols.";
    throw new SallyportError("invalid_input", { what, hint }, cause);
  }
}

/** Checked again after reading: a row that was changed from outside stops here and goes no further. */
export function decisionOf(row: Row): Decision {
  const id = text(row, "id");
  const state = text(row, "state");
  if (!isDecisionState(state)) throw damaged(id, "state");
  const { origin = null } = row;
  if (origin !== null && origin !== "port") throw damaged(id, "origin");
  const diffMetadata = objectIn(row, "diff_metadata");
  return {
    id,
    sessionId: text(row, "session_id"),
    state,
    diff: { sourceTool: text(row, "source_tool"), raw: bytes(row, "raw"), metadata: diffMetadata },
    ...(origin === null ? {} : { origin }),
    metadata: row["metadata"] === null ? diffMetadata : objectIn(row, "metadata"),
    techVerdict: verdictIn(row, "tech_verdict"),
    bizVerdict: verdictIn(row, "biz_verdict"),
    executionProof: row["execution_proof"] === null ? undefined : parsed(row, "execution_proof"),
    executionError: row["execution_error"] === null ? "" : String(parsed(row, "execution_error")),
    createdAt: toIso(int(row, "created_at")),
    updatedAt: toIso(int(row, "updated_at")),
  };
}

function text(row: Row, column: string): string {
  const cell = row[column];
  if (typeof cell !== "string") throw damaged(row["id"], column);
  return cell;
}

function int(row: Row, column: string): number {
  const cell = row[column];
  if (typeof cell !== "number" || !Number.isSafeInteger(cell)) throw damaged(row["id"], column);
  return cell;
}

function bytes(row: Row, column: string): Uint8Array {
  const cell = row[column];
  if (!(cell instanceof Uint8Array)) throw damaged(row["id"], column);
  // A copy of its own, and a plain one: drivers hand out Buffers that may share memory.
  return new Uint8Array(cell);
}

function parsed(row: Row, column: string): unknown {
  try {
    return decodeValue(text(row, column));
  } catch (cause) {
    throw damaged(row["id"], column, cause);
  }
}

function objectIn(row: Row, column: string): Record<string, unknown> {
  const value = parsed(row, column);
  if (typeof value !== "object" || value === null) throw damaged(row["id"], column);
  return value as Record<string, unknown>;
}

function verdictIn(row: Row, column: string): Verdict {
  if (row[column] === null) return NO_VERDICT;
  const verdict = parsed(row, column) as Verdict;
  const problem = verdictProblem(verdict);
  if (problem !== undefined) throw damaged(row["id"], column, new TypeError(problem));
  return verdict;
}

function damaged(id: Cell | undefined, column: string, cause?: unknown): SallyportError {
  const hint = "Run a store check and compare with the audit trail before you trust this store.";
  return new SallyportError("damaged_record", { id: String(id), column, hint }, cause);
}

export const MAX_RAW_BYTES = 1024 * 1024;
const MAX_DEPTH = 64;

/** Everything that can be wrong with a draft is found before anything is written. */
export function checkDraft(draft: Decision): void {
  if (draft.state !== "pending_tech") {
    const hint = "Stage a fresh draft; a decision moves on only by being reviewed.";
    throw new SallyportError("illegal_transition", { from: String(draft.state), hint });
  }
  if (draft.sessionId === "") {
    const hint = "Name the session this decision belongs to; without one it could never be found.";
    throw new SallyportError("illegal_transition", { what: "session id", hint });
  }
  checkName("session id", draft.sessionId);
  checkName("source tool", draft.diff.sourceTool);
  if (!(draft.diff.raw instanceof Uint8Array)) {
    const hint = "Give the payload as bytes (Uint8Array); encode text with TextEncoder.";
    throw new SallyportError("invalid_input", { what: "raw payload", hint });
  }
  if (draft.diff.raw.byteLength > MAX_RAW_BYTES) {
    const hint = "Stage a reference to the data instead, or split it into several decisions.";
    const bytes = draft.diff.raw.byteLength;
    throw new SallyportError("payload_too_large", { bytes, limit: MAX_RAW_BYTES, hint });
  }
  checkMetadata(draft.diff.metadata);
  if (draft.metadata !== draft.diff.metadata) checkMetadata(draft.metadata);
}

function checkMetadata(metadata: Metadata): void {
  if (typeof metadata !== "object" || metadata === null || Array.isArray(metadata)) {
    const hint = "Give metadata as an object of names and values; {} for none.";
    throw new SallyportError("invalid_input", { what: "metadata", hint });
  }
  if (isDeeperThan(metadata, MAX_DEPTH)) {
    const hint = "Flatten the metadata, or put the structure into the payload.";
    throw new SallyportError("payload_too_large", { what: "metadata", depth: MAX_DEPTH, hint });
  }
}

/** Level by level instead of by recursion: hostile nesting must not end the process. */
function isDeeperThan(value: object, limit: number): boolean {
  let level: object[] = [value];
  const seen = new Set<object>();
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > limit) return true;
    level = level.flatMap((node) =>
      Object.values(node).filter((child): child is object => {
        if (typeof child !== "object" || child === null || ArrayBuffer.isView(child)) return false;
        return !seen.has(child) && seen.add(child) !== undefined;
      }),
    );
  }
  return false;
}

export function checkVerdict(verdict: Verdict): void {
  const problem = verdictProblem(verdict);
  if (problem === undefined) return;
  throw new SallyportError("invalid_input", { what: "verdict", hint: `${problem}.` });
}

export function checkReason(reason: string): void {
  if (typeof reason === "string" && reason.length <= MAX_REASON) return;
  const hint = `Give the reason as text of at most ${MAX_REASON} characters.`;
  throw new SallyportError("invalid_input", { what: "reason", hint });
}

/** The trail holds JSON with one meaning only, so half characters are replaced there (the record keeps them). */
export function shownVerdict(verdict: Verdict): JsonObject {
  return {
    approved: verdict.approved,
    score: verdict.score,
    severity: verdict.severity,
    reason: verdict.reason.toWellFormed(),
    validator: verdict.validator.toWellFormed(),
    policy_version: verdict.policyVersion.toWellFormed(),
  };
}

export function shownMetadata(metadata: Metadata): JsonValue {
  try {
    // Wrapped as it will be in the entry, because one level more may be one too many.
    canonicalJson({ metadata });
    return copyMetadata(metadata) as JsonObject;
  } catch {
    // Not an error: metadata may hold anything. The trail then says so instead of showing something else.
    return { $opaque: "cannot be shown as JSON" };
  }
}
