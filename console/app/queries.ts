import { queryOptions } from "@tanstack/react-query";
import { isSallyportError } from "sallyport/client";
import type { Json } from "../text/canonical.ts";
import { client, type Interaction, queryClient } from "./client.ts";

/** Everything the pages read, each under the key that the feed invalidates. */
export const meQuery = queryOptions({ queryKey: ["me"], queryFn: () => client.me.get() });

export const switchQuery = queryOptions({
  queryKey: ["switch"],
  queryFn: () => client.switch.get(),
});

/** Under the key of the switch: both change together. */
export const pausesQuery = queryOptions({
  queryKey: ["switch", "pauses"],
  queryFn: async () => (await client.pauses.list()).items,
});

export const toolsQuery = queryOptions({
  queryKey: ["tools"],
  queryFn: async () => (await client.tools.list()).items,
});

export const breakersQuery = queryOptions({
  queryKey: ["breakers"],
  queryFn: async () => (await client.breakers.list()).items,
});

export const denialsQuery = queryOptions({
  queryKey: ["denials"],
  queryFn: () => client.denials.get(),
});

export interface Inbox {
  /** Oldest first. */
  readonly items: readonly Interaction[];
  /** False while later pages are still on their way. */
  readonly complete: boolean;
}

const FIRST_PAGE = 50;
const PAGE = 500;

/** Questions that were read by themselves while the list was on its way: newer than what the list says about them. */
const readMeanwhile = new Map<string, Interaction | undefined>();

/** All open questions. The first page is shown as soon as it is there. */
export const inboxQuery = queryOptions({
  queryKey: ["inbox"],
  queryFn: async ({ signal }): Promise<Inbox> => {
    readMeanwhile.clear();
    const items: Interaction[] = [];
    let cursor: string | undefined;
    do {
      const ask = cursor === undefined ? { limit: FIRST_PAGE } : { limit: PAGE, cursor };
      const page = await client.interactions.list(ask, { signal });
      items.push(...page.items);
      cursor = page.next ?? undefined;
      const known = queryClient.getQueryData<Inbox>(["inbox"]);
      if (known === undefined && cursor !== undefined) {
        queryClient.setQueryData<Inbox>(["inbox"], { items: inPlace(items), complete: false });
      }
    } while (cursor !== undefined);
    let inbox: Inbox = { items: inPlace(items), complete: true };
    for (const [id, read] of readMeanwhile) inbox = placed(inbox, id, read);
    return inbox;
  },
});

/** Puts one question that was just read into the list, or takes it out if it is not open any more. */
export function updateInbox(id: string, read: Interaction | undefined): void {
  if (queryClient.isFetching({ queryKey: ["inbox"] }) > 0) readMeanwhile.set(id, read);
  queryClient.setQueryData<Inbox>(["inbox"], (inbox) => inbox && placed(inbox, id, read));
}

/** The places of questions that another one replaced: it takes the place of the one that it came from. */
const places = new Map<string, number>();

function placeOf({ id, ord, type, metadata }: Interaction): number {
  // Only confirmations hold facts of the gate: an agent's question names no place for itself.
  const facts = type === "confirm" ? metadata : {};
  const from = String(facts["cameBackFrom"] ?? facts["editedFrom"] ?? "");
  const place = places.get(id) ?? places.get(from) ?? ord;
  places.set(id, place);
  return place;
}

function inPlace(items: readonly Interaction[]): readonly Interaction[] {
  const known = items.map((item) => [placeOf(item), item] as const);
  return known.toSorted(([a], [b]) => a - b).map(([, item]) => item);
}

function placed(inbox: Inbox, id: string, read: Interaction | undefined): Inbox {
  const known = inbox.items.find((item) => item.id === id);
  if (read === undefined || read.status !== "open") {
    return known === undefined
      ? inbox
      : { ...inbox, items: inbox.items.filter((item) => item.id !== id) };
  }
  if (known !== undefined) {
    if (known.version >= read.version) return inbox;
    return { ...inbox, items: inbox.items.map((item) => (item.id === id ? read : item)) };
  }
  const place = placeOf(read);
  const at = inbox.items.findLastIndex((item) => placeOf(item) <= place) + 1;
  return { ...inbox, items: inbox.items.toSpliced(at, 0, read) };
}

export const interactionQuery = (id: string) =>
  queryOptions({
    queryKey: ["interaction", id],
    queryFn: ({ signal }) => found(client.interactions.get({ id }, { signal })),
  });

export const shownQuery = (id: string) =>
  queryOptions({
    queryKey: ["shown", id],
    queryFn: async ({ signal }) =>
      (await found(client.interactions.shown({ id }, { signal })))?.preview ?? null,
  });

export const decisionQuery = (id: string) =>
  queryOptions({
    queryKey: ["decision", id],
    queryFn: ({ signal }) => found(client.decisions.get({ id }, { signal })),
  });

export const operationsQuery = (sessionId: string) =>
  queryOptions({
    queryKey: ["operations", sessionId],
    // The route gives the newest first; the page shows the oldest first.
    queryFn: async ({ signal }) =>
      (
        await all((cursor) =>
          client.operations.list({ sessionId, limit: PAGE, ...cursor }, { signal }),
        )
      ).toReversed(),
  });

export const operationQuery = (id: string) =>
  queryOptions({
    queryKey: ["operation", id],
    queryFn: ({ signal }) => found(client.operations.get({ id }, { signal })),
  });

export interface SessionLine {
  readonly id: string;
  readonly agent: string;
  readonly owner: string;
  readonly createdAt: string;
}

const DAY_MS = 86_400_000;
const RECENT_MS = 7 * DAY_MS;

/** Runs of agents, oldest first; those that work inside the server's program if they asked for something in the last days. */
export const sessionsQuery = queryOptions({
  queryKey: ["sessions"],
  queryFn: async ({ signal }): Promise<readonly SessionLine[]> => {
    const since = new Date(Date.now() - RECENT_MS).toISOString();
    const known = await all((cursor) =>
      client.sessions.list({ since, limit: PAGE, ...cursor }, { signal }),
    );
    return known.toSorted((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
  },
});

export const sessionQuery = (id: string) =>
  queryOptions({
    queryKey: ["session", id],
    queryFn: ({ signal }) => found(client.sessions.get({ id }, { signal })),
  });

/** The newest input that was asked for with a tool, to begin a rule with; null when there was none. */
export const decisionsOfToolQuery = (tool: string) =>
  queryOptions({
    queryKey: ["decisions", "of-tool", tool],
    queryFn: async ({ signal }): Promise<Json> => {
      const since = new Date(Date.now() - DAY_MS).toISOString();
      const decisions = await all((cursor) =>
        client.decisions.list({ since, limit: PAGE, ...cursor }, { signal }),
      );
      const calls = decisions.flatMap((decision) => decision.calls ?? []);
      return calls.findLast((call) => call.tool === tool)?.input ?? null;
    },
  });

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

/** All pages of a list. */
export async function all<Item>(
  ask: (cursor: { readonly cursor?: string }) => Promise<Page<Item>>,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  for await (const item of client.all((cursor) => ask(cursor === undefined ? {} : { cursor }))) {
    items.push(item);
  }
  return items;
}

/** Null for a missing record, because a query must not return undefined. */
async function found<Answer>(asked: Promise<Answer>): Promise<Answer | null> {
  try {
    return await asked;
  } catch (error) {
    if (isSallyportError(error, "not_found")) return null;
    throw error;
  }
}
