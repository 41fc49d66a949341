import { createHmac, timingSafeEqual } from "node:crypto";
import type { Inbox } from "../gate/inbox.ts";
import { SallyportError } from "../model/errors.ts";
import { type Interaction, missingFactors } from "../model/interaction.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import type { JsonValue } from "../util/json.ts";
import {
  checkedUrl,
  checkReceived,
  lineOf,
  type NotifyChannel,
  type NotifyItem,
  type NotifyMessage,
  RefusedForGood,
} from "./channel.ts";

export interface SlackOptions {
  /** A bot token with `chat:write`. */
  readonly token: string;
  /** The id of the Slack channel. */
  readonly channel: string;
  /** With it the buttons of messages work: point Slack's interactivity at `/v1/notify/NAME/slack`. */
  readonly signingSecret?: string;
  /**
   * Which Slack user is which person. Only they decide in Slack, and only while they are signed in to the console as a
   * reviewer; names that Slack shows are never believed.
   */
  readonly people?: Readonly<Record<string, string>>;
  /**
   * Tools of low risk, by their full names: calls of these alone may be decided in Slack, where they only read or can be
   * undone and one person is enough. Everything else has a link to the console. None when left out.
   */
  readonly lowRisk?: readonly string[];
  readonly apiUrl?: string;
  readonly clock?: Clock;
}

/** A channel whose messages are changed when a question is decided, and whose buttons may decide what is of low risk. */
export interface SlackChannel extends NotifyChannel {
  /** Receives what Slack sends when a button was pressed; the answer is shown to that person alone. */
  pressed(request: PressedButton, desk: PressDesk): Promise<string>;
}

/** What a press is decided with. */
export interface PressDesk {
  readonly inbox: Pick<Inbox, "get" | "shown" | "approve" | "reject">;
  /** The person under the name they are signed in with now; undefined when they may not decide. Shape: callback. */
  signedIn(person: string): Promise<string | undefined>;
}

export interface PressedButton {
  /** The body exactly as it was sent: the signature is over these bytes. */
  readonly body: Buffer;
  readonly timestamp: string;
  readonly signature: string;
}

/** A request that is older was recorded and sent again. */
const OLDEST_MS = 5 * 60_000;

/** Throws invalid_input. */
export function slack(options: SlackOptions): SlackChannel {
  const { token, channel, clock = systemClock, lowRisk = [], people = {} } = options;
  const api = checkedUrl("notify slack apiUrl", options.apiUrl ?? "https://slack.com/api/");
  const wrong = (hint: string) =>
    new SallyportError("invalid_input", { what: "notify slack", hint });
  if (token === "" || channel === "") throw wrong("Give a bot token and the id of a channel.");
  if (lowRisk.length > 0 && !options.signingSecret) {
    throw wrong("Deciding in Slack needs the signing secret: without it anyone could press.");
  }

  async function post(method: string, body: object, signal: AbortSignal): Promise<JsonValue> {
    const headers = {
      authorization: `Bearer ${token}`,
      "content-type": "application/json; charset=utf-8",
    };
    const terms = {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      signal,
      redirect: "error",
    } as const;
    const answer = await fetch(new URL(method, api), terms);
    const text = await answer.text();
    checkReceived(answer.status);
    const said = JSON.parse(text) as {
      ok?: boolean;
      error?: string;
      ts?: string;
      channel?: string;
    };
    if (said.ok === true) return { ts: said.ts ?? "", channel: said.channel ?? channel };
    const error = String(said.error ?? "no answer").slice(0, 100);
    throw FOR_GOOD.includes(error)
      ? new RefusedForGood(`Slack: ${error}`)
      : new Error(`Slack: ${error}`);
  }

  const content = (message: NotifyMessage) => ({
    text: message.items.map((item) => lineOf(kindOf(message, item), item)).join("\n"),
    blocks: message.items.slice(0, MOST_ITEMS).flatMap((item) => blocksOf(message, item, lowRisk)),
  });

  return {
    kind: "slack",
    send: (message, signal) =>
      post(
        "chat.postMessage",
        // Slack drops a second message with the same id.
        { channel, client_msg_id: uuidOf(message.id), unfurl_links: false, ...content(message) },
        signal,
      ),
    async update(message, receipt, signal) {
      const { ts, channel: place } = receipt as { ts: string; channel: string };
      await post("chat.update", { channel: place, ts, ...content(message) }, signal);
    },
    async pressed(request, { inbox, signedIn }) {
      checkSignature(request, options.signingSecret, clock);
      const form = new URLSearchParams(request.body.toString("utf8"));
      const { user, action } = pressIn(form.get("payload") ?? "");
      const person = Object.hasOwn(people, user) ? people[user] : undefined;
      if (person === undefined)
        return "You are not known to Sallyport from Slack. Open the link to decide there.";
      const by = await signedIn(person);
      if (by === undefined) {
        return "Sign in to the console as a reviewer first: a press counts only while you are signed in.";
      }
      const question = await inbox.get(action.id);
      const shown = await inbox.shown(action.id);
      if (shown === undefined || question.status !== "open")
        return "This was decided before. Nothing changed.";
      const tools = shown.definitions.map((tool) => String(tool["name"] ?? ""));
      const risk = shown.preview.safetyClass;
      if (!needsOneYes(question) || !isLow({ tools, risk }, lowRisk)) {
        return "This is decided in the console alone. Open the link.";
      }
      const answer = { hash: action.hash, by };
      try {
        if (action.verb === "reject") await inbox.reject(action.id, answer);
        else await inbox.approve(action.id, answer);
      } catch (error) {
        if (!(error instanceof SallyportError)) throw error;
        return `Nothing changed: ${error.details["hint"] ?? error.message}`;
      }
      return action.verb === "reject" ? "Rejected." : "Your yes was recorded.";
    },
  };
}

/** What can be undone, or changes nothing. Nothing else is ever decided outside of a signed-in session. */
const UNDOABLE: readonly string[] = ["read", "reversible"];

/** Both have to say so: the gate by its class, and whoever set this up by the names of all its tools. */
function isLow({ tools, risk }: Pick<NotifyItem, "tools" | "risk">, lowRisk: readonly string[]) {
  const areNamed = tools.length > 0 && tools.every((tool) => lowRisk.includes(tool));
  return areNamed && UNDOABLE.includes(risk);
}

/** Votes of several people, and factors that name who gives them, are given in the console. */
function needsOneYes({ type, requires }: Interaction): boolean {
  const [missing, ...more] = missingFactors(requires, []);
  const isOpenToAll = missing?.count === 1 && missing.from === undefined;
  return type === "confirm" && isOpenToAll && more.length === 0;
}

/** A digest is redrawn when one of its questions was decided; the others still wait. */
function kindOf({ kind }: NotifyMessage, { outcome }: NotifyItem): NotifyMessage["kind"] {
  if (outcome !== "") return "decided";
  return kind === "decided" ? "asked" : kind;
}
/** Slack shows at most fifty blocks. */
const MOST_ITEMS = 20;
const FOR_GOOD: readonly string[] = [
  "channel_not_found",
  "invalid_auth",
  "account_inactive",
  "token_revoked",
  "not_in_channel",
  "is_archived",
  "message_not_found",
  "cant_update_message",
];

function blocksOf(message: NotifyMessage, item: NotifyItem, lowRisk: readonly string[]): object[] {
  const kind = kindOf(message, item);
  // Plain text: what Slack would read as a mention, a link or formatting stays what it is.
  const text = {
    type: "section",
    text: { type: "plain_text", text: lineOf(kind, item).slice(0, 2_900) },
  };
  if (kind === "decided") return [text];
  const open = button("Open in Sallyport", { url: item.url, action_id: "open" });
  const mayDecide = item.type === "confirm" && item.hash !== undefined && isLow(item, lowRisk);
  const value = (verb: string) => JSON.stringify([verb, item.interactionId, item.hash]);
  const deciding = mayDecide
    ? [
        button("Approve", { action_id: "approve", value: value("approve"), style: "primary" }),
        button("Reject", { action_id: "reject", value: value("reject"), style: "danger" }),
      ]
    : [];
  return [text, { type: "actions", elements: [...deciding, open] }];
}

function button(text: string, rest: object): object {
  return { type: "button", text: { type: "plain_text", text }, ...rest };
}

/** Throws unauthenticated for what Slack did not sign just now. */
function checkSignature(request: PressedButton, secret: string | undefined, clock: Clock): void {
  const { body, timestamp, signature } = request;
  const refused = new SallyportError("unauthenticated", { hint: "Slack has not signed this." });
  if (!secret || !/^\d{1,12}$/.test(timestamp)) throw refused;
  if (Math.abs(clock.now() - Number(timestamp) * 1_000) > OLDEST_MS) throw refused;
  const mac = createHmac("sha256", secret).update(`v0:${timestamp}:`).update(body).digest("hex");
  const expected = Buffer.from(`v0=${mac}`);
  const given = Buffer.from(signature);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw refused;
}

interface Press {
  readonly user: string;
  readonly action: {
    readonly verb: "approve" | "reject";
    readonly id: string;
    readonly hash: string;
  };
}

/** Throws invalid_input. */
function pressIn(payload: string): Press {
  try {
    const { user, actions } = JSON.parse(payload);
    const [verb, id, hash] = JSON.parse(actions[0].value);
    const texts = [user.id, id, hash];
    if (
      texts.every((text) => typeof text === "string") &&
      (verb === "approve" || verb === "reject")
    ) {
      return { user: user.id, action: { verb, id, hash } };
    }
  } catch {
    // The same answer as for a press without its parts.
  }
  throw new SallyportError("invalid_input", {
    what: "payload",
    hint: "This is no button of ours.",
  });
}

/** Slack wants a UUID. */
function uuidOf(id: string): string {
  return id.slice(0, 32).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
