import { DECISIONS, type DecisionId, type SessionId } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { damaged } from "../model/field.ts";
import {
  CALL_KEYS,
  INTERACTIONS,
  type Interaction,
  type InteractionDraft,
  type InteractionId,
  type Preview,
  previewHash,
} from "../model/interaction.ts";
import { checkName, isName } from "../model/names.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { invariant } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject } from "../util/json.ts";
import type { By } from "./decisions.ts";
import { type Along, along, NOW, type Step } from "./engine.ts";
import { checkQuestion, interactionOf, openingOf } from "./interaction-rows.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** How a decision is put before people: a `confirm` with the decision's id that holds what it shows. */
export interface Confirmations {
  /**
   * Opens the confirmation of a decision, once, while the business tier has it. Throws illegal_transition, already_exists
   * when one of the keyed calls led to another decision before, concurrent_modification when `along` does not hold.
   */
  show(showing: Showing, by: By): Promise<Interaction>;
  /** Undefined when nothing was shown under this id. Throws damaged_record. */
  shown(id: InteractionId): Promise<Shown | undefined>;
  /** The decision that a keyed call of a session led to; undefined when none did. */
  ofCall(
    sessionId: SessionId,
    key: string,
  ): Promise<(CallKey & { decisionId: DecisionId }) | undefined>;
}

export interface Shown {
  readonly preview: Preview;
  readonly hash: string;
  /** Definitions of the tools when it was shown, one per call. */
  readonly definitions: readonly JsonObject[];
}

export interface Showing {
  readonly preview: Preview;
  readonly definitions: readonly JsonObject[];
  readonly question: Omit<InteractionDraft, "type" | "hash" | "decisionId" | "deadlineMs">;
  readonly keys: readonly CallKey[];
  /** What it replaces. */
  readonly along?: readonly Along[];
}

const shownOf = INTERACTIONS.only("preview", "definitions", "hash", "deadline");

export function engineConfirmations(engine: TenantEngine): Confirmations {
  return {
    async shown(id) {
      const row = isName(id) ? await engine.get(INTERACTIONS, id) : undefined;
      if (row === undefined || row["preview"] === null) return undefined;
      const { preview, definitions, hash, deadline } = shownOf(row);
      if (preview === undefined || definitions === undefined) throw damaged(row, "definitions");
      if (deadline === preview.expiresAt) return { preview, hash, definitions };
      const hint = "Its deadline is not the one that was shown. Compare with the audit log.";
      throw new SallyportError("damaged_record", { id, column: "deadline", hint });
    },
    async ofCall(sessionId, key) {
      const id = callKeyId(sessionId, key);
      const row = await engine.get(CALL_KEYS, id);
      if (row === undefined) return undefined;
      const { actionHash, decisionId, step } = CALL_KEYS.read(row);
      return { key, actionHash, decisionId, step };
    },
    show: (showing, by) => show(engine, showing, by),
  };
}

async function show(
  engine: TenantEngine,
  { preview, definitions, question, keys, along: others = [] }: Showing,
  { actor }: By,
): Promise<Interaction> {
  checkName("actor", actor);
  const { decisionId: id, expiresAt, safetyClass } = preview;
  const hash = previewHash(preview);
  const draft = {
    ...question,
    type: "confirm",
    hash,
    decisionId: id,
    deadlineAt: expiresAt,
  } as const;
  checkQuestion(draft);
  const inReview: Along = {
    step: {
      op: "update",
      table: DECISIONS,
      id,
      where: { state: "pending_ml", asked: 0 },
      set: { asked: 1, unasked: null },
    },
    event: () => ({
      type: "decision.previewed",
      subject: id,
      session: question.sessionId,
      actor,
      data: { hash, expires_at: expiresAt, safety_class: safetyClass },
    }),
  };
  const opened = openingOf(id, draft, actor, { preview, definitions });
  const keyed = keys.map((key): Along => ({ step: callKeyStep(question.sessionId, id, key) }));
  const result = await engine.commit(along([inReview, opened, ...keyed, ...others]));
  if (result.committed) {
    const row = result.rows[1];
    invariant(row !== undefined, "the second step opens the interaction");
    return interactionOf(row);
  }
  if (result.step < 2) {
    const hint = "A preview is stored once, while the business tier has the decision.";
    throw new SallyportError("illegal_transition", { id, hint });
  }
  if (result.step < 2 + keys.length) {
    const first = String(result.current?.["decision_id"]);
    const hint = "The same call was proposed before; look at that one.";
    throw new SallyportError("already_exists", { id: first, hint });
  }
  const hint = "What it was to replace was decided in the meantime.";
  throw new SallyportError("concurrent_modification", { id, hint });
}

/** One call that may be repeated. */
export interface CallKey {
  readonly key: string;
  /** Its index among the calls of the decision, from 0. */
  readonly step: number;
  /** SHA-256 of tool and input: the same key with another content is a mistake. */
  readonly actionHash: string;
}

/** One id per session and key, the same in every process; also the id of the operation of such a call. */
export function callKeyId(sessionId: SessionId, key: string): string {
  return `k-${sha256Hex(canonicalJson([sessionId, key]))}`;
}

function callKeyStep(sessionId: SessionId, decisionId: DecisionId, call: CallKey): Step {
  return {
    op: "insert",
    table: CALL_KEYS,
    id: callKeyId(sessionId, call.key),
    row: CALL_KEYS.row({ ...call, decisionId, createdAt: NOW }),
  };
}
