// What every channel has in common: the message it gets, and what it answers.

import { SallyportError } from "../model/errors.ts";
import type { Notice, NoticeFacts, NoticeKind } from "../model/notice.ts";
import type { JsonValue } from "../util/json.ts";

/**
 * A way to reach people. `send` throws when the message may not have arrived: it is sent again under the same id. Shape: callback;
 * it has the time of its signal.
 */
export interface NotifyChannel {
  readonly kind: string;
  /** Returns what `update` needs to find the message again; undefined for a channel that cannot change a message. */
  send(message: NotifyMessage, signal: AbortSignal): Promise<JsonValue | undefined>;
  /** Changes a message that was sent: the question was decided. Left out: the decision is a message of its own. */
  update?(message: NotifyMessage, receipt: JsonValue, signal: AbortSignal): Promise<void>;
}

/** What a channel sends. It holds names and times, never what an agent wrote or a tool was given. */
export interface NotifyMessage {
  /** The same for every attempt: receivers ignore one that they have seen. */
  readonly id: string;
  readonly kind: NoticeKind;
  readonly tenant: string;
  /** One, or all of a digest. */
  readonly items: readonly NotifyItem[];
}

export interface NotifyItem extends NoticeFacts {
  readonly interactionId: string;
  /** The page of the question in the console. */
  readonly url: string;
}

/** An answer of the receiver that another attempt would not change. */
export class RefusedForGood extends Error {
  override readonly name = "RefusedForGood";
}

/** By its name: the channel may come from another copy of this package than the server. */
export function isForGood(error: unknown): boolean {
  return error instanceof Error && error.name === "RefusedForGood";
}

/** Throws RefusedForGood for an answer that another attempt would not change. */
export function checkReceived(status: number): void {
  if (status >= 200 && status < 300) return;
  const said = `the receiver answered ${status}`;
  const isLater = status === 408 || status === 425 || status === 429 || status >= 500;
  throw isLater ? new Error(said) : new RefusedForGood(said);
}

/** https, or http on loopback. Throws invalid_input. */
export function checkedUrl(what: string, text: string): string {
  const url = URL.parse(text);
  const isLocal = url !== null && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isLocal)) return url.href;
  const hint = "Use an https address: what is sent there must not be readable on the way.";
  throw new SallyportError("invalid_input", { what, hint });
}

export function itemOf({ interactionId, facts }: Notice, baseUrl: string): NotifyItem {
  const url = `${baseUrl}/inbox/${encodeURIComponent(interactionId)}`;
  return { ...facts, interactionId, url };
}

/** One line for people, of names and times alone. */
export function lineOf(kind: NoticeKind, item: NotifyItem): string {
  const what = item.tools.length === 0 ? TYPES[item.type] : item.tools.join(", ");
  const risk = item.risk === "" ? "" : ` (${item.risk})`;
  const who = item.agent === "" ? "" : ` for ${item.agent}`;
  if (kind === "decided") {
    const by = item.by === "" ? "" : ` by ${item.by}`;
    return `${what}${who}: ${item.outcome}${by}`;
  }
  return `${KINDS[kind]}: ${what}${risk}${who}, until ${item.deadline}`;
}

const KINDS: Readonly<Record<NoticeKind, string>> = {
  asked: "Waits for you",
  reminded: "Still waits, and its time is nearly over",
  escalated: "Nobody has answered yet",
  decided: "Decided",
};

const TYPES = {
  ask_user: "a question of an agent",
  confirm: "a call",
  connection_lost: "a call whose outcome is not known",
} as const;
