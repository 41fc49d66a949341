import { infiniteQueryOptions, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import type { AnswerOf } from "sallyport/client";
import { client } from "../../app/client.ts";
import { useKeys } from "../../app/keys.ts";
import { meQuery } from "../../app/queries.ts";
import { spanOf } from "../../app/words.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty, PageTitle, Problem } from "../../ui/panel.tsx";
import { Ago } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { type CallSearch, OUTCOMES, TABS } from "./call-search.ts";

type IndexedCall = AnswerOf<"calls.list">["items"][number];

const PAGE = 50;

const callsQuery = (search: CallSearch, me: string) =>
  infiniteQueryOptions({
    queryKey: ["calls", search, me],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) => {
      const { tab = "all", text, agent, tool, by, from, to } = search;
      const { outcome, isMine } = TABS[tab];
      const given = Object.entries({ text, agent, tool, from, to, by: isMine ? me : by });
      const filter = Object.fromEntries(given.filter(([, value]) => value !== undefined));
      const place = pageParam === "" ? {} : { cursor: pageParam };
      const outcomes = outcome === undefined ? {} : { outcome: [...outcome] };
      return client.calls.list({ ...filter, ...outcomes, ...place, limit: PAGE }, { signal });
    },
    getNextPageParam: ({ next }) => next,
    // The feed says when there is something new; what was read stays while it is read again.
    placeholderData: (before) => before,
  });

/** Every call that agents asked for, whatever became of it: searched by words, filtered in the address. */
export function DecisionsPage() {
  const search = useSearch({ strict: false }) as CallSearch;
  const navigate = useNavigate();
  const { data: me } = useQuery(meQuery);
  const { data, error, fetchNextPage, hasNextPage, isFetching } = useInfiniteQuery({
    ...callsQuery(search, me?.subject ?? ""),
    enabled: me !== undefined,
  });
  const calls = data?.pages.flatMap(({ items }) => items) ?? [];
  const set = (change: Partial<CallSearch>) => {
    const next = Object.fromEntries(
      Object.entries({ ...search, ...change }).filter(
        ([, value]) => value !== undefined && value !== "",
      ),
    );
    navigate({ to: "/decisions", search: next, replace: true }).catch(() => {});
  };
  const tab = search.tab ?? "all";
  const chips = (["agent", "tool", "by", "from", "to"] as const).filter(
    (name) => search[name] !== undefined,
  );
  return (
    <div className="mx-auto max-w-6xl p-3">
      <PageTitle title="Decisions">
        <SearchField text={search.text ?? ""} onText={(text) => set({ text })} />
      </PageTitle>
      <fieldset className="mb-2 flex flex-wrap gap-1">
        <legend className="sr-only">Outcome</legend>
        {(Object.keys(TABS) as (keyof typeof TABS)[]).map((one) => (
          <button
            key={one}
            type="button"
            aria-pressed={one === tab}
            onClick={() => set({ tab: one === "all" ? undefined : one })}
            className={`min-h-8 rounded-md border px-2 ${one === tab ? "border-accent bg-accent-soft text-accent font-semibold" : "border-line bg-panel"}`}
          >
            {TABS[one].words}
          </button>
        ))}
        {chips.map((name) => (
          <button
            key={name}
            type="button"
            aria-label={`Remove the filter ${name}`}
            onClick={() => set({ [name]: undefined })}
            className="border-line bg-raised min-h-8 rounded-md border px-2"
          >
            {name}: <Untrusted text={search[name] ?? ""} inline /> ✕
          </button>
        ))}
      </fieldset>
      <Problem error={error} />
      {data !== undefined && calls.length === 0 && (
        <Empty>
          {search.text === undefined && tab === "all"
            ? "No agent has asked for anything yet. Everything it asks for is listed here, also what the checks refused."
            : "Nothing matches. Words match from their beginning; secrets are never searched."}
        </Empty>
      )}
      <ul
        aria-label="Calls"
        className="border-line bg-panel divide-line divide-y rounded-lg border empty:hidden"
      >
        {calls.map((call) => (
          <CallRow key={call.id} call={call} onFilter={set} />
        ))}
      </ul>
      {hasNextPage && (
        <div className="mt-2 text-center">
          <Button disabled={isFetching} onClick={() => fetchNextPage()}>
            {isFetching ? "Loading…" : "Show older"}
          </Button>
        </div>
      )}
    </div>
  );
}

const TYPING_MS = 150;

/** Searches while one types, but not each letter. */
function SearchField({
  text,
  onText,
}: {
  text: string;
  onText: (text: string | undefined) => void;
}) {
  const [typed, setTyped] = useState(text);
  const field = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => field.current?.focus() });
  const send = useRef(onText);
  send.current = onText;
  useEffect(() => setTyped(text), [text]);
  useEffect(() => {
    if (typed === text) return undefined;
    const timer = setTimeout(() => send.current(typed === "" ? undefined : typed), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed, text]);
  return (
    <input
      ref={field}
      type="search"
      aria-label="Search decisions"
      placeholder="Invoice, customer, reason, id ( / )"
      value={typed}
      onChange={({ target }) => setTyped(target.value)}
      className="border-strong bg-panel w-full max-w-sm rounded-md border px-2 py-1"
    />
  );
}

function CallRow({
  call,
  onFilter,
}: {
  call: IndexedCall;
  onFilter: (change: Partial<CallSearch>) => void;
}) {
  const { id, kind, at, sessionId, agent, tool, title, outcome, by, reason, waitMs } = call;
  const [tone, words] = OUTCOMES[outcome];
  const name = <Untrusted text={title} inline />;
  return (
    <li className="lazy-row px-3 py-1.5" data-call={id}>
      <div className="flex items-baseline gap-2">
        <span className="one-line min-w-0 flex-1 font-semibold">
          {kind === "decision" ? (
            <Link to="/decisions/$id" params={{ id }} className="text-ink inline-block min-h-6">
              {name}
            </Link>
          ) : (
            <Link
              to="/sessions/$id"
              params={{ id: sessionId }}
              className="text-ink inline-block min-h-6"
            >
              {name}
            </Link>
          )}
        </span>
        <Badge tone={tone}>{words}</Badge>
        <span className="text-muted w-20 shrink-0 text-right text-xs">
          <Ago at={at} />
        </span>
      </div>
      <div className="text-muted flex flex-wrap items-center gap-x-3 text-xs">
        <button
          type="button"
          className="min-h-6 underline-offset-2 hover:underline"
          onClick={() => onFilter({ agent })}
        >
          <Untrusted text={agent} inline />
        </button>
        {tool !== title && (
          <button
            type="button"
            className="min-h-6 font-mono underline-offset-2 hover:underline"
            onClick={() => onFilter({ tool })}
          >
            <Untrusted text={tool} inline />
          </button>
        )}
        {by !== "" && (
          <span>
            by <Untrusted text={by} inline />
            {waitMs !== null && ` after ${spanOf(waitMs)}`}
          </span>
        )}
        {reason !== "" && (
          <span className="one-line min-w-0 flex-1">
            <Untrusted text={reason} inline />
          </span>
        )}
      </div>
    </li>
  );
}
