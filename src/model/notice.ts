import type { JsonValue } from "../util/json.ts";
import type { InteractionId, InteractionType } from "./interaction.ts";
import type { Instant } from "./names.ts";
import {
  data,
  instant,
  integer,
  key,
  oneOf,
  place,
  prose,
  type RecordOf,
  record,
  text,
} from "./record.ts";

/** Why a person is notified about a question. */
export const NOTICE_KINDS = ["asked", "reminded", "escalated", "decided"] as const;
export type NoticeKind = (typeof NOTICE_KINDS)[number];

/** `dropped`: the question was closed before anyone had to be told. `dead`: every attempt failed, and a person has to look. */
export const NOTICE_STATES = ["waiting", "sent", "dropped", "dead"] as const;
export type NoticeState = (typeof NOTICE_STATES)[number];

/**
 * What a notification may say: names and times, never what an agent wrote or a tool was given. Channels are outside of the
 * gate, and what leaves it cannot be called back.
 */
export interface NoticeFacts {
  readonly type: InteractionType;
  readonly tools: readonly string[];
  /** The safety class of what would happen; empty for a question without a call. */
  readonly risk: string;
  readonly agent: string;
  readonly sessionId: string;
  readonly assignedTo: string;
  readonly deadline: Instant;
  /** What an approval of it has to name; left out for questions that are not approved. */
  readonly hash?: string;
  /** How it was closed and by whom; empty while it is open. */
  readonly outcome: string;
  readonly by: string;
}

/**
 * The outbox: one row for each thing that one channel is told. The id is the same for every attempt, so that a receiver can
 * recognise a repetition.
 */
export const NOTICES = record(
  "notices",
  {
    id: key(),
    channel: text(),
    kind: oneOf(NOTICE_KINDS),
    /** The question. */
    interactionId: text<InteractionId>(),
    state: oneOf(NOTICE_STATES),
    attempts: integer(),
    /** Notices of one channel with the same bundle are sent as one message; empty for one of its own. */
    bundle: text(),
    /** When the next attempt is due, or until when the current one may take; empty once it is over. */
    nextAt: instant().optional(),
    facts: data<NoticeFacts>({ limit: "none" }),
    /** What the channel returned, with which it finds its message again. */
    receipt: data<JsonValue>({ limit: "none" }).optional(),
    /** Why the last attempt failed. */
    problem: prose({ limit: "none" }).optional(""),
    createdAt: instant(),
    updatedAt: instant(),
    ord: place(),
  },
  {
    indexes: [
      { name: "by_next", on: ["next_at"], whenSet: true },
      { name: "by_state", on: ["state", "ord"] },
      { name: "by_interaction", on: ["interaction_id", "ord"] },
    ],
  },
);
export type Notice = Omit<RecordOf<typeof NOTICES>, "updatedAt">;

/** Up to which entry of the trail notices were planned. */
export const NOTICE_CURSORS = record("notice_cursors", {
  id: key(),
  seq: integer(),
  updatedAt: instant(),
});
