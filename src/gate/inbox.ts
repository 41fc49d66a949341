import type { CallAnswer } from "../model/call.ts";
import type { Interaction, InteractionId, Preview, Requirement } from "../model/interaction.ts";
import type { Shown } from "../store/confirmations.ts";
import { MAX_LIST } from "../store/decisions.ts";
import type { InteractionQuery, InteractionStore } from "../store/interactions.ts";
import type { JsonValue } from "../util/json.ts";

/**
 * The one inbox: everything that waits for a person, from every agent and every depth. Each question is answered exactly
 * once. Throws not_found for an unknown id, already_answered (with who was first and what was decided) for a closed one,
 * approval_void for another hash than the one shown or when the deadline is over, not_allowed for a person who may not decide.
 */
export interface Inbox {
  /** Oldest first; without a status the open ones. Without a limit all of them, however many; with one at most 1,000 at a time. */
  list(query?: Partial<InteractionQuery>): Promise<readonly Interaction[]>;
  get(id: InteractionId): Promise<Interaction>;
  /**
   * What a confirmation shows, with the hash that an answer must name. A confirmation has the id of its decision. Undefined
   * when nothing was shown under this id.
   */
  shown(id: InteractionId): Promise<Shown | undefined>;
  /** Answers an `ask_user`. */
  answer(
    id: InteractionId,
    given: PersonsAnswer & { readonly answer: JsonValue },
  ): Promise<Interaction>;
  /** A person saw exactly this and approves it. With the last approval that is required it is executed, once. */
  approve(id: InteractionId, yes: PersonsYes): Promise<Approved>;
  reject(id: InteractionId, no: PersonsAnswer): Promise<Interaction>;
  /**
   * Another input for some of the calls (by their place, from 0): checked, reviewed and previewed again. The edited call is a
   * new confirmation that replaces this one; nothing runs before a person approves what it shows.
   */
  edit(
    id: InteractionId,
    edit: PersonsAnswer & { readonly inputs: Readonly<Record<number, JsonValue>> },
  ): Promise<Edited>;
  /**
   * Exactly these, each with the hash that was seen; those in `veto` are rejected. One that fails does not stop the others.
   * Throws not_allowed, and decides nothing, when those to be approved are calls of different tools or cannot be undone,
   * unless the review rules about all of them say `mayBatch`.
   */
  approveAll(
    list: readonly { readonly id: InteractionId; readonly hash: string }[],
    by: {
      readonly by: string;
      readonly reason?: string;
      readonly veto?: readonly InteractionId[];
    },
  ): Promise<readonly BatchItem[]>;
  /**
   * What a person found out about a call whose outcome was lost. Throws invalid_input, and settles nothing, when no undo can
   * be made from `resultData`.
   */
  settle(id: InteractionId, found: PersonsAnswer & FoundOut): Promise<CallAnswer>;
  handOver(
    id: InteractionId,
    to: { readonly by: string; readonly to: string; readonly reason?: string },
  ): Promise<Interaction>;
  /** A reviewer wants to know more before deciding; the agent replies through its session. The question stays open. */
  askBack(
    id: InteractionId,
    asked: { readonly by: string; readonly text: string },
  ): Promise<Interaction>;
  cancel(
    id: InteractionId,
    by: { readonly by: string; readonly reason: string },
  ): Promise<Interaction>;
  /** Closes what was not answered in time and escalates what waits too long. Call it periodically, in any number of processes. */
  sweep(): Promise<Swept>;
}

export interface PersonsAnswer {
  /** The hash of what was seen. */
  readonly hash: string;
  readonly by: string;
  readonly reason?: string;
}

export interface PersonsYes extends PersonsAnswer {
  /** The factor this yes is meant for; the first one open to this person when left out. */
  readonly factor?: string;
}

/**
 * - `waiting`: this yes counts, and another person's is still missing.
 * - `executed`: every call was executed.
 * - `asked_again`: nothing ran, because it is no longer what was approved; a new question asks about it as it is now.
 * - `held`: approved, and not executed yet: everything is stopped, or another process executes it.
 * - `unknown`: it is not known whether one of the calls happened; a person has to look.
 * - `failed`: it did not go through, and what was done of it was undone as far as that could be done.
 */
export type ApprovalOutcome = (typeof APPROVAL_OUTCOMES)[number];

export const APPROVAL_OUTCOMES = [
  "waiting",
  "executed",
  "asked_again",
  "held",
  "unknown",
  "failed",
] as const;

export interface Approved {
  readonly interaction: Interaction;
  readonly outcome: ApprovalOutcome;
  /** Who must still say yes to this question. Empty does not mean that anything ran: see `outcome`. */
  readonly missing: Requirement;
  /** The results of the calls, in order; each `pending` while an approval is missing. */
  readonly answers: readonly CallAnswer[];
}

export type Edited =
  | { readonly edited: true; readonly interaction: Interaction; readonly preview: Preview }
  /** The input is wrong or the review said no to it: the question stays as it was. */
  | { readonly edited: false; readonly text: string };

export type FoundOut =
  | {
      readonly happened: true;
      readonly output?: string;
      /** What the tool would have returned as `data`: from it the tool makes its undo. Left out, the call has none. */
      readonly resultData?: JsonValue;
    }
  /** It did not: call it once more, or leave it. */
  | { readonly happened: false; readonly otherwise: "repeat" | "give_up" };

export type BatchItem =
  | { readonly id: InteractionId; readonly outcome: "approved"; readonly approved: Approved }
  | { readonly id: InteractionId; readonly outcome: "rejected" }
  | {
      readonly id: InteractionId;
      readonly outcome: "refused";
      readonly code: string;
      readonly text: string;
    };

export interface Swept {
  readonly expired: readonly InteractionId[];
  /** Lost calls whose outcome is still not known: they do not expire, people are asked again. */
  readonly askedAgain: readonly InteractionId[];
  readonly escalated: readonly InteractionId[];
}

/** Page after page, to the end. */
export async function allQuestions(
  interactions: Pick<InteractionStore, "list">,
  query: Omit<InteractionQuery, "limit">,
): Promise<readonly Interaction[]> {
  const all: Interaction[] = [];
  for (let { after = 0 } = query; ; ) {
    const page = await interactions.list({ ...query, after, limit: MAX_LIST });
    all.push(...page);
    const last = page.at(-1);
    if (page.length < MAX_LIST || last === undefined) return all;
    after = last.ord;
  }
}
