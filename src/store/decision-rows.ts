import { copyMetadata, DECISIONS, type Decision, type Metadata } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import { MAX_REASON, type Verdict, verdictProblem } from "../model/verdict.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { NOW, type Row, type Values } from "./engine.ts";

export function rowOfDraft(draft: Decision): Values {
  const { sessionId, state, diff, metadata } = draft;
  return DECISIONS.row({
    sessionId,
    state,
    diff,
    metadata: metadata === diff.metadata ? null : metadata,
    origin: draft.origin,
    asked: false,
    unasked: draft.origin === "port" ? NOW : null,
    createdAt: NOW,
    updatedAt: NOW,
  });
}

/** Checked again after reading: a row that was changed from outside stops here and goes no further. */
export function decisionOf(row: Row): Decision {
  const { origin, metadata, asked, unasked, ...rest } = DECISIONS.read(row);
  return {
    ...rest,
    ...(origin === undefined ? {} : { origin }),
    metadata: metadata ?? rest.diff.metadata,
  };
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
