import { queryOptions } from "@tanstack/react-query";
import { forPeople } from "sallyport/client";
import type { Json } from "../text/canonical.ts";
import { isObject } from "../text/json-diff.ts";
import { client, type Entry } from "./client.ts";
import { parsed } from "./facts-of.ts";

/** How much of a session's trail is read before the page says that older entries are missing. */
const MOST_PAGES = 10;

export interface TrailPart {
  /** Oldest first. */
  readonly entries: readonly Entry[];
  /** False when the oldest entries were left out because the trail is too long. */
  readonly complete: boolean;
}

type TrailQuery = NonNullable<Parameters<typeof client.audit.entries>[0]>;

/** Reads backwards from the end of the trail, so that what is left out of a long one is its oldest part. */
export async function newestEntries(
  query: TrailQuery,
  mostPages: number,
  signal: AbortSignal,
): Promise<TrailPart> {
  const found: Entry[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < mostPages; pages += 1) {
    const page = await client.audit.entries(
      { ...query, order: "newest", limit: 500, ...(cursor === undefined ? {} : { cursor }) },
      { signal },
    );
    found.push(...page.items);
    if (page.next === null) return { entries: found.toReversed(), complete: true };
    cursor = page.next;
  }
  return { entries: found.toReversed(), complete: false };
}

/** The entries of one session since a moment. */
export const sessionTrailQuery = (session: string, since: string) =>
  queryOptions({
    queryKey: ["trail", session, since],
    queryFn: ({ signal }) => newestEntries({ session, since }, MOST_PAGES, signal),
  });

export function dataOf({ data }: Entry): { readonly [key: string]: Json } {
  const value = data === null ? undefined : parsed(data);
  return isObject(value) ? value : {};
}

const WORDS: Readonly<Record<string, string>> = {
  "decision.staged": "asked for",
  "decision.reviewed": "reviewed",
  "decision.previewed": "dry run made, shown to people",
  "decision.awaits_tool": "approved, waits for a process that has the tool",
  "decision.asked_again": "the agent asked for the same again",
  "decision.executed": "executed",
  "decision.failed": "failed",
  "interaction.opened": "a person was asked",
  "interaction.voted": "approved",
  "interaction.answered": "answered",
  "interaction.superseded": "replaced by another question",
  "interaction.expired": "not answered in time: rejected",
  "interaction.canceled": "canceled",
  "interaction.handed_over": "reassigned",
  "interaction.escalated": "escalated",
  "interaction.asked_again": "outcome still unknown: asked again",
  "interaction.asked_back": "asked the agent back",
  "interaction.replied": "the agent replied",
  "operation.started": "started",
  "operation.succeeded": "succeeded",
  "operation.failed": "failed",
  "operation.lost": "outcome unknown",
  "operation.undone": "undone",
  "operation.brought_back": "current again, because a later change was undone",
  "operation.reopened": "reopened",
  "operation.returned": "permit returned, not executed",
  "operation.attempted": "another attempt started",
  "operation.taken_over": "taken over by another process",
  "session.opened": "session opened",
  "call.denied": "refused by the gate",
  "gate.evaluated": "evaluated by the gate",
  "standing_rule.proposed": "a rule was proposed",
  "standing_rule.made": "a rule was confirmed",
  "standing_rule.revoked": "a rule was revoked",
  "grant.given": "a finding was overridden",
  "grant.revoked": "an override was revoked",
  "task.added": "task added",
  "task.claimed": "task claimed",
  "task.completed": "task completed",
  "task.failed": "task failed",
  "delegation.started": "delegated to a sub-agent",
  "delegation.revoked": "sub-agent stopped",
  "run.started": "run started",
  "run.phase_changed": "run entered another phase",
  "token.made": "token or sign-in made",
  "token.ended": "token or sign-in ended",
  "switch.stopped": "everything was paused",
  "switch.resumed": "everything was resumed",
  "pause.started": "paused",
  "pause.ended": "resumed",
  "request.begun": "a request with a key was begun",
  "request.answered": "a request with a key was answered",
  "breaker.opened": "a tool was stopped after failures in a row",
  "breaker.closed": "a stopped tool is called again",
};

/** An entry in words; the detail is untrusted text and drawn as such. */
export function wordsOf(entry: Entry): { readonly words: string; readonly detail: string } {
  const data = dataOf(entry);
  const verdict = data["verdict"];
  if (entry.type === "decision.reviewed" && isObject(verdict)) {
    const tier = data["tier"] === "tech" ? "technical" : "business";
    const said = verdict["approved"] === true ? "yes" : "no";
    return { words: `${tier} review: ${said}`, detail: String(verdict["reason"] ?? "") };
  }
  const words = WORDS[entry.type] ?? entry.type;
  if (entry.type === "interaction.handed_over") {
    const why = String(data["reason"] ?? "");
    return { words, detail: `to ${String(data["to"] ?? "")}${why === "" ? "" : `: ${why}`}` };
  }
  const outcome = entry.type === "interaction.answered" ? `: ${String(data["outcome"] ?? "")}` : "";
  const detail = data["reason"] ?? data["text"] ?? data["error"] ?? "";
  return { words: words + outcome, detail: typeof detail === "string" ? forPeople(detail) : "" };
}
