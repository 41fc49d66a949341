import type { DecisionId, SessionId } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import {
  type Interaction,
  type InteractionDraft,
  type Preview,
  previewHash,
} from "../model/interaction.ts";
import { checkName, isName } from "../model/names.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { fromIso } from "../util/clock.ts";
import { invariant } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject } from "../util/json.ts";
import { DECISIONS, encoded } from "./decision-rows.ts";
import type { By } from "./decisions.ts";
import { type Along, along, NOW, type Step, type Table } from "./engine.ts";
import { checkQuestion, interactionOf, openingOf } from "./interaction-rows.ts";
import { type GivingUp, giveUp } from "./left-behind.ts";
import { decoded, instantIn } from "./readable.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** What is shown for a decision. The question about it is opened in the same transaction. */
export interface ApprovalStore {
  /**
   * Stores what reviewers will see, once, while the business tier has the decision, and asks. Throws illegal_transition,
   * already_exists when one of the keyed calls led to a decision before, concurrent_modification when what goes along does not hold.
   */
  show(showing: Showing, by: By): Promise<Interaction>;
  /** Undefined when nothing was shown yet. */
  shown(id: DecisionId): Promise<Shown | undefined>;
  /** An approved decision that cannot be carried out any further; false when somebody has gone on with it in the meantime. */
  giveUp(id: DecisionId, giving: GivingUp): Promise<boolean>;
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
  /** What it takes the place of. */
  readonly along?: readonly Along[];
}

export function engineApprovals(engine: TenantEngine): ApprovalStore {
  return {
    async shown(id) {
      const row = isName(id) ? await engine.get(APPROVALS, id) : undefined;
      if (row === undefined) return undefined;
      const preview = decoded<Preview>(row, "preview");
      if (instantIn(row, "expires_at") !== preview.expiresAt) {
        const hint = "Its expiry is not the one that was shown. Compare with the audit trail.";
        throw new SallyportError("damaged_record", { id, column: "expires_at", hint });
      }
      const definitions = decoded<readonly JsonObject[]>(row, "definitions");
      return { preview, hash: String(row["hash"]), definitions };
    },
    async ofCall(sessionId, key) {
      const id = callKeyId(sessionId, key);
      const row = await engine.get(CALL_KEYS, id);
      if (row === undefined) return undefined;
      const actionHash = String(row["action_hash"]);
      const decisionId = String(row["decision_id"]);
      return { key, actionHash, decisionId, step: Number(row["step"]) };
    },
    giveUp: (id, giving) => giveUp(engine, id, giving),
    show: (showing, by) => show(engine, showing, by),
  };
}

async function show(
  engine: TenantEngine,
  { preview, definitions, question, keys, along: others = [] }: Showing,
  { actor }: By,
): Promise<Interaction> {
  checkName("actor", actor);
  const { decisionId: id, expiresAt } = preview;
  const hash = previewHash(preview);
  const draft = {
    ...question,
    type: "confirm",
    hash,
    decisionId: id,
    deadlineAt: expiresAt,
  } as const;
  checkQuestion(draft);
  const previewed: Along = {
    step: {
      op: "insert",
      table: APPROVALS,
      id,
      row: {
        hash,
        preview: encoded("preview", preview),
        definitions: encoded("definitions", definitions),
        expires_at: fromIso(expiresAt),
        created_at: NOW,
      },
    },
    event: () => ({
      type: "decision.previewed",
      subject: id,
      session: question.sessionId,
      actor,
      data: { hash, expires_at: expiresAt, safety_class: preview.safetyClass },
    }),
  };
  const inReview: Along = {
    step: {
      op: "update",
      table: DECISIONS,
      id,
      where: { state: "pending_ml", asked: 0 },
      set: { asked: 1, unasked: null },
    },
  };
  const keyed = keys.map((key): Along => ({ step: callKeyStep(question.sessionId, id, key) }));
  const opened = openingOf(id, draft, actor);
  const result = await engine.commit(along([inReview, previewed, opened, ...keyed, ...others]));
  if (result.committed) {
    const row = result.rows[2];
    invariant(row !== undefined, "the third step opens the question");
    return interactionOf(row);
  }
  if (result.step < 3) {
    const hint = "A preview is stored once, while the business tier has the decision.";
    throw new SallyportError("illegal_transition", { id, hint });
  }
  if (result.step < 3 + keys.length) {
    const first = String(result.current?.["decision_id"]);
    const hint = "The same call was proposed before; look at that one.";
    throw new SallyportError("already_exists", { id: first, hint });
  }
  const hint = "What it was to take the place of was decided in the meantime.";
  throw new SallyportError("concurrent_modification", { id, hint });
}

/** What was shown for a decision and can be approved; the key is the decision's id. */
export const APPROVALS: Table = {
  name: "approvals",
  columns: {
    hash: "text",
    preview: "text",
    definitions: "text",
    expires_at: "int",
    created_at: "int",
  },
  indexed: [],
};

/** Which decision a keyed call of a session led to, so that the same call asked for again finds it instead of a second one. */
const CALL_KEYS: Table = {
  name: "call_keys",
  columns: { decision_id: "text", step: "int", action_hash: "text", created_at: "int" },
  indexed: [],
};

/** One call that may be asked for again. */
export interface CallKey {
  readonly key: string;
  /** Its place among the calls of the decision, from 0. */
  readonly step: number;
  /** SHA-256 of tool and input: the same key with another content is a mistake. */
  readonly actionHash: string;
}

/** One id per session and key, the same in every process; also the id of what such a call becomes. */
export function callKeyId(sessionId: SessionId, key: string): string {
  return `k-${sha256Hex(canonicalJson([sessionId, key]))}`;
}

function callKeyStep(sessionId: SessionId, decisionId: DecisionId, call: CallKey): Step {
  return {
    op: "insert",
    table: CALL_KEYS,
    id: callKeyId(sessionId, call.key),
    row: {
      decision_id: decisionId,
      step: call.step,
      action_hash: call.actionHash,
      created_at: NOW,
    },
  };
}
