import type { SessionId } from "../model/decision.ts";
import type {
  Interaction,
  InteractionDraft,
  InteractionId,
  InteractionStatus,
} from "../model/interaction.ts";
import type { Verdict } from "../model/verdict.ts";
import type { JsonValue } from "../util/json.ts";
import type { By } from "./decisions.ts";

/**
 * Durable questions to people. Every call is one transaction with its audit entries; each question is closed exactly once,
 * by the store's clock. Throws not_found for an unknown id, already_answered with who was first and what was decided for a
 * closed one, approval_void for another hash or a deadline that is over.
 */
export interface InteractionStore {
  /** Under an id of the caller's choice. Throws already_exists when there is one: the first question stays. */
  open(id: InteractionId, draft: InteractionDraft, by: By): Promise<Interaction>;
  get(id: InteractionId): Promise<Interaction>;
  /** Oldest first. */
  list(query: InteractionQuery): Promise<readonly Interaction[]>;
  /** Undefined when there is none. */
  peek(id: InteractionId): Promise<Interaction | undefined>;
  /** The answer to an `ask_user` or a `connection_lost`. */
  answer(id: InteractionId, answer: GivenAnswer, look?: Look): Promise<Interaction>;
  /** A yes to a confirmation. With the last one that is required the decision is approved, in the same transaction. */
  approve(id: InteractionId, yes: GivenVerdict, look?: Look): Promise<Interaction>;
  /** A no to a confirmation, and so to its decision. */
  reject(id: InteractionId, no: GivenVerdict, look?: Look): Promise<Interaction>;
  /** Throws illegal_transition for a `connection_lost`: only what was found out closes it. */
  cancel(id: InteractionId, reason: string, by: By, look?: Look): Promise<Interaction>;
  handOver(
    id: InteractionId,
    to: string,
    reason: string,
    by: By,
    look?: Look,
  ): Promise<Interaction>;
  /** One more remark; a reviewer's gives the turn to the agent, the agent's gives it back. */
  remark(
    id: InteractionId,
    text: string,
    from: "people" | "agent",
    by: By,
    look?: Look,
  ): Promise<Interaction>;
  /** Open ones whose deadline is over, and open ones that should have been escalated by now. */
  overdue(limit: number, after?: number): Promise<readonly Interaction[]>;
  toEscalate(limit: number, after?: number): Promise<readonly Interaction[]>;
  /**
   * Silence means no; false when it was closed before. The decision behind it is rejected in the same transaction. False for
   * a `connection_lost`: silence does not say what happened, so that stays open.
   */
  expire(id: InteractionId): Promise<boolean>;
  /**
   * A `connection_lost` that nobody answered in time gets another deadline and goes to everybody who may answer it; false
   * when its time is not over, or it was answered.
   */
  askAgain(id: InteractionId): Promise<boolean>;
  /** Once; false when it was done before, or the question is closed. */
  escalate(id: InteractionId): Promise<boolean>;
}

/**
 * Looks at the very version that the change is written over, and throws when it must not be: what is true of an older one
 * (who may decide, whose it is) says nothing. Shape: callback, at once.
 */
export type Look = (now: Interaction) => void;

export interface InteractionQuery {
  readonly status?: InteractionStatus;
  readonly sessionId?: SessionId;
  readonly assignedTo?: string;
  /** Only those opened after this one (`ord`). */
  readonly after?: number;
  readonly limit: number;
}

export interface GivenAnswer {
  /** The hash of what was seen. */
  readonly hash: string;
  readonly by: string;
  readonly answer: JsonValue;
  readonly reason?: string;
}

export interface GivenVerdict {
  readonly hash: string;
  readonly verdict: Verdict;
  readonly by: string;
  /** The factor that a yes is meant for; the first open one when left out. */
  readonly factor?: string;
}
