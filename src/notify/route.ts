// Who is told what, and when: routes as data. Pure; the notifier writes what comes out of it.

import { SallyportError } from "../model/errors.ts";
import type { NoticeFacts, NoticeKind } from "../model/notice.ts";
import type { PlannedNotice } from "../store/notices.ts";
import { fromIso } from "../util/clock.ts";
import { sha256Hex } from "../util/hash.ts";

/** One rule of who is told. Every condition that is given must hold; all routes that match apply. */
export interface NotifyRoute {
  /** Names of tools, with `*` at the end for all that begin so. */
  readonly tools?: readonly string[];
  /** Safety classes: `read`, `reversible`, `irreversible` and others that a tool declares. */
  readonly risk?: readonly string[];
  /** The person or group that the question is assigned to. */
  readonly assignee?: readonly string[];
  /** Questions assigned to one of these groups, or to a person who is in one. */
  readonly group?: readonly string[];
  /** Names of channels. */
  readonly to: readonly string[];
  /** What is told; `asked` and `decided` when left out. */
  readonly on?: readonly NoticeKind[];
  /** How long before the deadline those who were asked are reminded, once. */
  readonly remindBeforeMs?: number;
  /** Who else is told when it is still open after a time. */
  readonly escalate?: { readonly afterMs: number; readonly to: readonly string[] };
  /** One message for all that came within this time, instead of one each. */
  readonly digestMs?: number;
  /** Nothing is sent in these hours, except for what `except` names; it is sent when they are over. */
  readonly quiet?: QuietHours;
}

export interface QuietHours {
  /** Like `22:00`. */
  readonly from: string;
  readonly to: string;
  /** A name of the time zone database; UTC when left out. */
  readonly timeZone?: string;
  /** Safety classes that are told all the same. */
  readonly except?: readonly string[];
}

/** Throws invalid_input that names the field of a route that could not work. */
export function checkRoutes(routes: readonly NotifyRoute[], channels: readonly string[]): void {
  routes.forEach((route, place) => {
    const what = (field: string) => `notify.routes[${place}].${field}`;
    const wrong = (field: string, hint: string, cause?: unknown) =>
      new SallyportError("invalid_input", { what: what(field), hint }, cause);
    const { to, escalate, remindBeforeMs, digestMs, quiet } = route;
    for (const name of [...to, ...(escalate?.to ?? [])]) {
      if (channels.includes(name)) continue;
      throw wrong("to", `There is no channel "${name}". The channels are ${channels.join(", ")}.`);
    }
    if (to.length === 0) throw wrong("to", "Name at least one channel.");
    const spans = { remindBeforeMs, digestMs, "escalate.afterMs": escalate?.afterMs };
    for (const [field, ms] of Object.entries(spans)) {
      if (ms !== undefined && !(Number.isSafeInteger(ms) && ms > 0)) {
        throw wrong(field, "Give whole milliseconds above 0.");
      }
    }
    if (quiet === undefined) return;
    for (const field of ["from", "to"] as const) {
      if (!/^([01]\d|2[0-3]):[0-5]\d$/.test(quiet[field])) {
        throw wrong(`quiet.${field}`, "Write a time of day like 22:00.");
      }
    }
    try {
      minutesOfDay(0, quiet.timeZone);
    } catch (error) {
      throw wrong("quiet.timeZone", `There is no time zone "${quiet.timeZone}".`, error);
    }
  });
}

/** What happened to a question, with what may be told of it. */
export interface NoticeCause {
  readonly kind: Exclude<NoticeKind, "reminded">;
  readonly interactionId: string;
  readonly facts: NoticeFacts;
  /** Tells repetitions of one kind apart: 0, or the entry's number where a kind can happen again. */
  readonly nth: number;
}

export interface RoutingTerms {
  readonly tenant: string;
  readonly nowMs: number;
  /** The groups of a person. */
  readonly groupsOf: (person: string) => readonly string[];
}

/** Everything that this cause makes, reminders and escalations included: they are dropped if it is closed by then. */
export function plannedFor(
  cause: NoticeCause,
  routes: readonly NotifyRoute[],
  terms: RoutingTerms,
): readonly PlannedNotice[] {
  const { kind, facts, interactionId, nth } = cause;
  const { tenant, nowMs } = terms;
  const planned = new Map<string, PlannedNotice>();
  const add = (channel: string, what: NoticeKind, afterMs: number, route: NotifyRoute) => {
    const id = sha256Hex(JSON.stringify([tenant, channel, what, interactionId, nth])).slice(0, 40);
    if (planned.has(id)) return;
    const isOwn = what !== "asked" || route.digestMs === undefined;
    const at = isOwn ? nowMs + afterMs : nextDigest(nowMs + afterMs, route.digestMs);
    const due = afterQuiet(at, route.quiet, facts.risk);
    const bundle = isOwn ? "" : `${channel} ${route.digestMs}`;
    const wait = due - nowMs;
    planned.set(id, { id, channel, kind: what, interactionId, bundle, facts, afterMs: wait });
  };
  for (const route of routes.filter((one) => matches(one, facts, terms))) {
    const { to, on = ["asked", "decided"], remindBeforeMs, escalate } = route;
    if (on.includes(kind)) for (const channel of to) add(channel, kind, 0, route);
    if (kind !== "asked") continue;
    if (remindBeforeMs !== undefined) {
      const afterMs = fromIso(facts.deadline) - nowMs - remindBeforeMs;
      if (afterMs > 0) for (const channel of to) add(channel, "reminded", afterMs, route);
    }
    for (const channel of escalate?.to ?? []) {
      add(channel, "escalated", escalate?.afterMs ?? 0, route);
    }
  }
  return [...planned.values()];
}

function matches(route: NotifyRoute, facts: NoticeFacts, { groupsOf }: RoutingTerms): boolean {
  const { tools, risk, assignee, group } = route;
  const { assignedTo } = facts;
  const groups = [assignedTo, ...groupsOf(assignedTo)];
  return (
    (tools === undefined || facts.tools.some((name) => tools.some((one) => isNamed(name, one)))) &&
    (risk === undefined || risk.includes(facts.risk)) &&
    (assignee === undefined || assignee.includes(assignedTo)) &&
    (group === undefined || group.some((one) => groups.includes(one)))
  );
}

function isNamed(name: string, pattern: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

/** Digests go out at fixed times, so that all processes agree about them. */
function nextDigest(atMs: number, everyMs = 1): number {
  return Math.ceil(atMs / everyMs) * everyMs;
}

const MINUTE = 60_000;
const DAY = 1_440;

/** The end of the quiet hours if this moment is within them. */
function afterQuiet(atMs: number, quiet: QuietHours | undefined, risk: string): number {
  if (quiet === undefined || quiet.except?.includes(risk) === true) return atMs;
  const now = minutesOfDay(atMs, quiet.timeZone);
  const from = minutesIn(quiet.from);
  const length = (minutesIn(quiet.to) - from + DAY) % DAY;
  const since = (now - from + DAY) % DAY;
  if (since >= length) return atMs;
  return Math.floor(atMs / MINUTE) * MINUTE + (length - since) * MINUTE;
}

function minutesIn(text: string): number {
  const [hours = 0, minutes = 0] = text.split(":").map(Number);
  return hours * 60 + minutes;
}

/** Throws RangeError for a time zone that does not exist. */
function minutesOfDay(atMs: number, timeZone = "UTC"): number {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone,
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  return minutesIn(format.format(atMs));
}
