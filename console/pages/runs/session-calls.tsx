import {
  infiniteQueryOptions,
  queryOptions,
  useInfiniteQuery,
  useQuery,
} from "@tanstack/react-query";
import { client } from "../../app/client.ts";
import { meQuery } from "../../app/queries.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty, Panel, Problem } from "../../ui/panel.tsx";
import { OUTCOMES } from "../decisions/call-search.ts";
import { type Count, STACK } from "../overview/outcome-bars.tsx";
import { CallRow } from "./call-row.tsx";

const PAGE = 50;

const sessionCallsQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: ["calls", "of", id],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) => {
      const place = pageParam === "" ? {} : { cursor: pageParam };
      return client.sessions.calls({ id, limit: PAGE, ...place }, { signal });
    },
    getNextPageParam: ({ next }) => next,
    placeholderData: (before) => before,
  });

const totalsQuery = (sessionId: string) =>
  queryOptions({
    queryKey: ["calls", "stats", "of", sessionId],
    queryFn: async ({ signal }) =>
      (await client.calls.stats({ sessionId, count: "tool" }, { signal })).items,
  });

interface Props {
  readonly id: string;
  /** Opens the plan of undoing one call. */
  readonly onUndo: (operationId: string) => void;
}

/** What an agent did in one session, newest first: a row for each call, whatever became of it. */
export function SessionCalls({ id, onUndo }: Props) {
  const { data: me } = useQuery(meQuery);
  const { data, error, fetchNextPage, hasNextPage, isFetching } = useInfiniteQuery(
    sessionCallsQuery(id),
  );
  const { data: totals } = useQuery(totalsQuery(id));
  const calls = data?.pages.flatMap(({ items }) => items) ?? [];
  return (
    <Panel title="Calls" aside={totals === undefined ? null : <Totals items={totals} />}>
      <Problem error={error} />
      {data === undefined && error === null && <p className="text-muted">Loading…</p>}
      {data !== undefined && calls.length === 0 && (
        <Empty>This agent has not asked for anything yet.</Empty>
      )}
      <ul aria-label="Calls of this run" className="divide-line divide-y empty:hidden">
        {calls.map((call) => (
          <CallRow key={call.id} call={call} me={me} onUndo={onUndo} />
        ))}
      </ul>
      {hasNextPage && (
        <div className="mt-2 text-center">
          <Button disabled={isFetching} onClick={() => fetchNextPage()}>
            {isFetching ? "Loading…" : "Show older"}
          </Button>
        </div>
      )}
    </Panel>
  );
}

function Totals({ items }: { items: readonly Count[] }) {
  const of = (outcome: Count["outcome"]) =>
    items.filter((one) => one.outcome === outcome).reduce((sum, { count }) => sum + count, 0);
  return (
    <ul aria-label="Totals" className="flex flex-wrap gap-1">
      {STACK.map(([outcome]) => [outcome, of(outcome)] as const)
        .filter(([, count]) => count > 0)
        .map(([outcome, count]) => (
          <li key={outcome}>
            <Badge tone={OUTCOMES[outcome][0]}>
              {count} {OUTCOMES[outcome][1].toLowerCase()}
            </Badge>
          </li>
        ))}
    </ul>
  );
}
