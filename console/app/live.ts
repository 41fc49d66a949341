import { useEffect, useSyncExternalStore } from "react";
import { type FeedEvent, isSallyportError } from "sallyport/client";
import { client, type Interaction, queryClient } from "./client.ts";
import { type Inbox, updateInbox } from "./queries.ts";

// The feed keeps every window current: an entry of the trail invalidates the queries it is about, and pages read them again.
// Nothing is changed on the screen because of an event alone.

export type Line = "connecting" | "open" | "broken" | "signed_out";

let line: Line = "connecting";
const listeners = new Set<() => void>();

function setLine(next: Line): void {
  line = next;
  for (const listener of listeners) listener();
}

export function useLine(): Line {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => line,
  );
}

/** Events that arrive together are handled together. */
const GATHER_MS = 60;
/** From here on, reading the whole list again is cheaper than asking for each. */
const MANY = 20;

export function useFeed(): void {
  useEffect(() => {
    const stop = new AbortController();
    follow(stop.signal).catch((error: unknown) => {
      if (stop.signal.aborted) return;
      setLine(isSallyportError(error, "unauthenticated") ? "signed_out" : "broken");
    });
    return () => stop.abort();
  }, []);
}

async function follow(signal: AbortSignal): Promise<void> {
  let gathered: FeedEvent[] = [];
  let wasOpen = false;
  const onLine = (state: "open" | "broken") => {
    setLine(state);
    // Changes between reading the pages and connecting to the feed are in no event.
    if (state === "open" && !wasOpen) {
      wasOpen = true;
      readAllAgain();
    }
  };
  for await (const event of client.events({ signal, onLine })) {
    if (gathered.length === 0) {
      setTimeout(() => {
        const events = gathered;
        gathered = [];
        catchUp(events).catch(ignored);
      }, GATHER_MS);
    }
    gathered.push(event);
  }
}

/** A first read that is still on its way is not repeated by an invalidation, and may be older than the feed: it is read once more. */
function readAllAgain(): void {
  const early = queryClient
    .getQueryCache()
    .findAll({ fetchStatus: "fetching" })
    .filter(({ state }) => state.data === undefined);
  queryClient.invalidateQueries().catch(ignored);
  for (const { promise, queryKey } of early) {
    promise?.then(() => queryClient.invalidateQueries({ queryKey, exact: true })).catch(ignored);
  }
}

/** A query that fails shows its own error where it is used. */
function ignored(): void {}

async function catchUp(events: readonly FeedEvent[]): Promise<void> {
  const keys = new Map<string, readonly string[]>();
  const questions = new Set<string>();
  for (const event of events) {
    for (const key of staleBy(event)) keys.set(key.join("\n"), key);
    if (event.type.startsWith("interaction.")) questions.add(event.subject);
  }
  if (events.some(({ type }) => type === "decision.staged")) keys.set("sessions", ["sessions"]);
  for (const queryKey of keys.values()) queryClient.invalidateQueries({ queryKey }).catch(ignored);
  if (questions.size > 0) await readAgain([...questions]);
}

function staleBy({ type, subject, session, data }: FeedEvent): readonly (readonly string[])[] {
  // A conversation writes no entries of its own: whatever happens may be a step of one.
  const trail = [["trail"], ["head"], ["calls"], ["conversations"], ["conversation"]] as const;
  switch (type.split(".")[0]) {
    case "interaction":
      return [["interaction", subject], ["shown", subject], ["decision", subject], ...trail];
    case "decision":
      return [["decision", subject], ["shown", subject], ["decisions"], ...trail];
    case "operation":
      return [["operation", subject], ["operations", session], ...ruleOf(data), ...trail];
    case "session":
      return [["sessions"], ["session", subject], ...trail];
    case "task":
      return [["tasks"], ...trail];
    case "delegation":
      return [["delegations"], ...trail];
    case "run":
      return [["runs"], ...trail];
    case "standing_rule":
      return [["rules"], ...trail];
    case "grant":
      return [["grants"], ...trail];
    case "switch":
    case "pause":
      return [["switch"], ...trail];
    case "breaker":
      return [["breakers"], ...trail];
    case "call":
      return [["denials"], ...trail];
    default:
      return trail;
  }
}

/** A call that a rule let through is counted with the rule. */
function ruleOf(data: FeedEvent["data"]): readonly (readonly string[])[] {
  return data?.["allowed_by"] === undefined ? [] : [["rules"]];
}

/** Reads the questions named by events again and updates the inbox (R13). */
async function readAgain(ids: readonly string[]): Promise<void> {
  const known = queryClient.getQueryData<Inbox>(["inbox"]);
  if (known === undefined) return;
  // While the list is being read, what is read may be older than the event.
  if (!known.complete || ids.length > MANY) {
    await queryClient.invalidateQueries({ queryKey: ["inbox"] });
    return;
  }
  try {
    await Promise.all(ids.map(readBack));
  } catch {
    // One of them could not be read; the list may still say it.
    await queryClient.invalidateQueries({ queryKey: ["inbox"] });
  }
}

/** Reads one question and updates the inbox with it. */
export async function readBack(id: string): Promise<Interaction | undefined> {
  const read = await client.interactions.get({ id }).catch((error: unknown) => {
    if (isSallyportError(error, "not_found")) return undefined;
    throw error;
  });
  if (read !== undefined) queryClient.setQueryData(["interaction", id], newer(read));
  updateInbox(id, read);
  return read;
}

/** Two reads may arrive out of order. */
function newer(read: Interaction) {
  return (known: Interaction | undefined) =>
    known !== undefined && known.version > read.version ? known : read;
}
