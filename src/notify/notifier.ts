import type { Gate } from "../gate/create-gate.ts";
import type { TrailEntry } from "../model/audit-entry.ts";
import { SallyportError } from "../model/errors.ts";
import type { Interaction } from "../model/interaction.ts";
import type { Notice, NoticeFacts } from "../model/notice.ts";
import type { PlannedNotice } from "../store/notices.ts";
import type { Store } from "../store/store.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { systemTimers, type Timers, withDeadline } from "../util/timers.ts";
import {
  isForGood,
  itemOf,
  type NotifyChannel,
  type NotifyMessage,
  RefusedForGood,
} from "./channel.ts";
import { checkRoutes, type NoticeCause, type NotifyRoute, plannedFor } from "./route.ts";

/** Who is notified and how. Channels are made by `webhook`, `slack` and `email`. */
export interface NotifyConfig {
  readonly channels: Readonly<Record<string, NotifyChannel>>;
  readonly routes: readonly NotifyRoute[];
  /** How often one message is tried; 8 when left out, over about three hours. Then it is a dead letter. */
  readonly attempts?: number;
  /** How long one attempt may take; 10 s when left out. */
  readonly timeoutMs?: number;
}

export interface NotifierOptions {
  readonly gate: Pick<Gate, "audit" | "interactions" | "people" | "onCommit">;
  readonly store: Store;
  readonly tenant: string;
  readonly config: NotifyConfig;
  /** The address of the console, for the links. */
  readonly baseUrl: string;
  /** A round that failed; the next one comes all the same. Shape: push. */
  readonly onError: (error: unknown) => void;
  readonly clock?: Clock;
  readonly timers?: Timers;
  readonly everyMs?: number;
}

/** What one round did. */
export interface NotifyRound {
  readonly planned: number;
  readonly sent: number;
  readonly failed: number;
  readonly dropped: number;
}

/** Throws invalid_input that names the field. */
export function checkNotify({ channels, routes, attempts = 8, timeoutMs = 1 }: NotifyConfig): void {
  checkRoutes(routes, Object.keys(channels));
  for (const [field, value] of Object.entries({ attempts, timeoutMs })) {
    if (Number.isSafeInteger(value) && value > 0) continue;
    const hint = "Give a whole number above 0.";
    throw new SallyportError("invalid_input", { what: `notify.${field}`, hint });
  }
}

const PAGE = 500;
/** The cursor is written at least this often, also when nothing had to be told. */
const WRITE_EVERY = 1_000;
const AT_ONCE = 50;
const EVERY_MS = 1_000;
const AFTER_HINT_MS = 50;

/**
 * Reads the trail from its own cursor, plans what has to be told and sends it. Any number of processes may run it: the cursor
 * moves with what was planned for it, and each attempt is a lease. A message may arrive twice, always under its id.
 */
export function createNotifier(options: NotifierOptions) {
  const { gate, tenant, config, baseUrl, clock = systemClock, timers = systemTimers } = options;
  checkNotify(config);
  const { notices } = options.store.tenant(tenant);
  const { channels, routes, attempts: most = 8, timeoutMs = 10_000 } = config;
  let seen = 0;

  const groupsOf = (person: string) => gate.people?.find(({ id }) => id === person)?.groups ?? [];

  async function plan(): Promise<number> {
    const from = await notices.cursor();
    if (from === undefined) return planFirst();
    const after = Math.max(from, seen);
    const entries = await gate.audit.entries({ after, limit: PAGE });
    const last = entries.at(-1);
    if (last === undefined) return 0;
    const planned = await fresh(await causesIn(entries));
    if (planned.length === 0 && last.seq - from < WRITE_EVERY) {
      seen = last.seq;
      return entries.length < PAGE ? 0 : plan();
    }
    const isMoved = await notices.plan({ from, to: last.seq }, planned);
    // Another process was first; what it did not plan yet is read from its cursor.
    if (isMoved) seen = last.seq;
    return isMoved ? planned.length : 0;
  }

  /** The first time: whoever is waited for now is told, and the trail is followed from here. */
  async function planFirst(): Promise<number> {
    const { seq } = await gate.audit.head();
    const open = await gate.interactions.list({ limit: PAGE });
    const causes = await Promise.all(open.map((one) => causeOf(one, "asked", 0)));
    const planned = await fresh(causes);
    return (await notices.plan({ from: undefined, to: seq }, planned)) ? planned.length : 0;
  }

  async function causesIn(entries: readonly TrailEntry[]): Promise<readonly NoticeCause[]> {
    const causes: NoticeCause[] = [];
    for (const { type, subject, seq } of entries) {
      const kind = Object.hasOwn(CAUSES, type) ? CAUSES[type] : undefined;
      if (kind === undefined) continue;
      const interaction = await gate.interactions.get(subject);
      const isOpen = interaction.status === "open";
      if (isOpen === (kind === "decided")) continue;
      const isFirst = type === "interaction.opened" || kind === "decided";
      causes.push(await causeOf(interaction, kind, isFirst ? 0 : seq));
    }
    return causes;
  }

  async function causeOf(
    interaction: Interaction,
    kind: NoticeCause["kind"],
    nth: number,
  ): Promise<NoticeCause> {
    return { kind, nth, interactionId: interaction.id, facts: await factsOf(interaction) };
  }

  async function factsOf(interaction: Interaction): Promise<NoticeFacts> {
    const { id, type, chain, sessionId, assignedTo, deadline, pendingTool } = interaction;
    const shown = type === "confirm" ? await gate.interactions.shown(id) : undefined;
    const named = shown?.definitions.map((tool) => String(tool["name"] ?? ""));
    return {
      type,
      tools: [...new Set(named ?? (pendingTool === undefined ? [] : [pendingTool.tool_name]))],
      risk: shown?.preview.safetyClass ?? "",
      agent: chain[0] ?? "",
      sessionId,
      assignedTo,
      deadline,
      ...(shown === undefined ? {} : { hash: shown.hash }),
      outcome: interaction.outcome ?? "",
      by: interaction.answeredBy,
    };
  }

  /** What was not planned before; a decision is told only where the question was. */
  async function fresh(causes: readonly NoticeCause[]): Promise<readonly PlannedNotice[]> {
    const planned: PlannedNotice[] = [];
    for (const cause of causes) {
      const terms = { tenant, nowMs: clock.now(), groupsOf };
      const told = cause.kind === "decided" ? await toldAbout(cause.interactionId) : undefined;
      for (const one of plannedFor(cause, routes, terms)) {
        if (told !== undefined && !told.has(one.channel)) continue;
        if ((await notices.peek(one.id)) === undefined) planned.push(one);
      }
    }
    return planned;
  }

  async function toldAbout(interactionId: string): Promise<ReadonlySet<string>> {
    const before = await notices.about(interactionId);
    return new Set(before.filter(({ attempts }) => attempts > 0).map(({ channel }) => channel));
  }

  async function send(): Promise<Omit<NotifyRound, "planned">> {
    const done = { sent: 0, failed: 0, dropped: 0 };
    const due = await notices.due(AT_ONCE);
    const groups = Map.groupBy(due, ({ bundle, id }) => (bundle === "" ? id : bundle));
    await Promise.all(
      [...groups.values()].map(async (group) => {
        const claimed = await notices.claim(group, togetherAs(group), 3 * timeoutMs);
        const wanted: Notice[] = [];
        const closed: Notice[] = [];
        for (const notice of claimed) {
          ((await isWanted(notice)) ? wanted : closed).push(notice);
        }
        if (closed.length > 0 && (await notices.finish(closed, { state: "dropped" }))) {
          done.dropped += closed.length;
        }
        if (wanted.length > 0) done[await sendOne(wanted)] += wanted.length;
      }),
    );
    return done;
  }

  /** Nobody has to be told about a question that was closed meanwhile. */
  async function isWanted({ kind, interactionId }: Notice): Promise<boolean> {
    return kind === "decided" || (await gate.interactions.get(interactionId)).status === "open";
  }

  async function sendOne(group: readonly Notice[]): Promise<"sent" | "failed"> {
    const [first] = group;
    const channel = first && (channels[first.channel] as NotifyChannel | undefined);
    try {
      if (first === undefined) return "sent";
      if (channel === undefined) throw new RefusedForGood("there is no such channel any more");
      // Of a digest it is that of its first attempt, also when some of it was decided since.
      const id = first.bundle === "" ? first.id : sha256Hex(first.bundle).slice(0, 40);
      const items = group.map((notice) => itemOf(notice, baseUrl));
      const message: NotifyMessage = { id, kind: first.kind, tenant, items };
      const work = (signal: AbortSignal) => deliver(channel, first, message, signal);
      const receipt = await withDeadline(work, timeoutMs, timers);
      const sent = { of: receipt ?? null, ids: group.map((notice) => notice.id) } satisfies Sent;
      await notices.finish(group, {
        state: "sent",
        receipt: receipt === undefined ? receipt : sent,
      });
      return "sent";
    } catch (error) {
      // Errors of channels may quote what they sent, but only names and times were given to them.
      const problem = errorText(error).slice(0, 500);
      const attempts = first?.attempts ?? most;
      const isDead = isForGood(error) || attempts >= most;
      const retryMs = Math.min(LONGEST_MS, FIRST_MS * 4 ** (attempts - 1));
      const how = isDead
        ? ({ state: "dead", problem } as const)
        : ({ state: "waiting", problem, retryMs } as const);
      await notices.finish(group, how);
      return "failed";
    }
  }

  async function deliver(
    channel: NotifyChannel,
    { kind, interactionId, channel: name }: Notice,
    message: NotifyMessage,
    signal: AbortSignal,
  ) {
    const receipts =
      kind === "decided" && channel.update !== undefined
        ? (await notices.about(interactionId)).filter((one) => one.channel === name)
        : [];
    const known = receipts.flatMap(({ receipt }) =>
      receipt === undefined ? [] : [receipt as Sent],
    );
    if (known.length === 0) return channel.send(message, signal);
    for (const { of, ids } of known) {
      const items = ids.length === 1 ? message.items : await itemsOf(ids);
      await channel.update?.({ ...message, items }, of, signal);
    }
    return undefined;
  }

  /** Everything in one message as it is now: what of it is open keeps its place in it. */
  async function itemsOf(ids: readonly string[]): Promise<NotifyMessage["items"]> {
    const all = await Promise.all(ids.map((id) => notices.peek(id)));
    const found = all.filter((notice) => notice !== undefined);
    return Promise.all(
      found.map(async (notice) => {
        const { outcome = "", answeredBy: by } = await gate.interactions.get(notice.interactionId);
        return { ...itemOf(notice, baseUrl), outcome, by };
      }),
    );
  }

  async function round(): Promise<NotifyRound> {
    const planned = await plan();
    return { planned, ...(await send()) };
  }

  return { round };
}

const FIRST_MS = 5_000;
const LONGEST_MS = 3_600_000;

/** What is kept of a message that was sent: the channel's own receipt, and all notices that are in it. */
interface Sent extends JsonObject {
  readonly of: JsonValue;
  readonly ids: string[];
}

/** Under which bundle these are sent, now and at every later attempt; empty for one by itself. */
function togetherAs([first, ...others]: readonly Notice[]): string {
  if (first === undefined) return "";
  const isDigest = DIGEST.test(first.bundle);
  if (!isDigest && others.length === 0) return "";
  return isDigest ? first.bundle : `digest of ${first.id}`;
}

/** Bundles that routes make end with a span instead. */
const DIGEST = /^digest of [0-9a-f]{40}$/;

const CAUSES: Readonly<Record<string, NoticeCause["kind"]>> = {
  "interaction.opened": "asked",
  "interaction.handed_over": "asked",
  "interaction.escalated": "escalated",
  "interaction.answered": "decided",
  "interaction.superseded": "decided",
  "interaction.expired": "decided",
  "interaction.canceled": "decided",
};

/** Rounds after commits and periodically, until it is stopped. */
export function startNotifier(options: NotifierOptions): { stop(): Promise<void> } {
  const { gate, onError, timers = systemTimers, everyMs = EVERY_MS } = options;
  const notifier = createNotifier(options);
  const ending = new AbortController();
  let hint = new AbortController();
  const forget = gate.onCommit(() => hint.abort());
  async function run(): Promise<void> {
    while (!ending.signal.aborted) {
      hint = new AbortController();
      try {
        await notifier.round();
      } catch (error) {
        onError(error);
      }
      const either = AbortSignal.any([hint.signal, ending.signal]);
      // It rejects when there is news, or it is over; the loop sees which.
      await timers.sleep(everyMs, either).catch(() => {});
      // Commits come in bursts: one round answers for all of them.
      await timers.sleep(AFTER_HINT_MS, ending.signal).catch(() => {});
    }
  }
  const running = run();
  return {
    async stop() {
      ending.abort();
      forget();
      await running;
    },
  };
}

/** Sends an example to one channel now, past the outbox: for `sallyport notify test`. Throws what the channel throws. */
export async function testChannel(
  channel: NotifyChannel,
  { baseUrl, tenant, id, deadline }: TestMessage,
  timers: Timers = systemTimers,
): Promise<void> {
  const item = {
    type: "confirm",
    tools: ["sallyport.test"],
    risk: "read",
    agent: "sallyport notify test",
    sessionId: "",
    assignedTo: "",
    deadline,
    outcome: "",
    by: "",
    interactionId: "test",
    url: `${baseUrl}/inbox`,
  } as const;
  const message: NotifyMessage = { id, kind: "asked", tenant, items: [item] };
  await withDeadline((signal) => channel.send(message, signal), TEST_MS, timers);
}

const TEST_MS = 10_000;

export interface TestMessage {
  readonly baseUrl: string;
  readonly tenant: string;
  readonly id: string;
  readonly deadline: string;
}
