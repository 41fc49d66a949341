import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { inboxQuery, sessionsQuery } from "../../app/queries.ts";
import { plural } from "../../app/words.ts";
import { Badge } from "../../ui/badge.tsx";
import { Empty, PageTitle, Problem } from "../../ui/panel.tsx";
import { Ago } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";

/** Runs of agents, newest first. */
export function SessionsPage() {
  const { data: sessions, error } = useQuery(sessionsQuery);
  const { data: inbox } = useQuery(inboxQuery);
  const [text, setText] = useState("");
  const wanted = text.toLowerCase();
  const shown = (sessions ?? [])
    .filter(({ id, agent, owner }) => `${id} ${agent} ${owner}`.toLowerCase().includes(wanted))
    .toReversed();
  return (
    <div className="mx-auto max-w-5xl p-3">
      <PageTitle title="Sessions">
        <input
          type="search"
          aria-label="Search sessions"
          placeholder="Agent, owner or id"
          value={text}
          onChange={(event) => setText(event.target.value)}
          className="border-strong bg-panel rounded-md border px-2 py-1"
        />
      </PageTitle>
      <Problem error={error} />
      {sessions !== undefined && shown.length === 0 && <Empty>No sessions yet.</Empty>}
      <ul className="border-line bg-panel overflow-hidden rounded-lg border empty:hidden">
        {shown.map(({ id, agent, owner, createdAt }) => {
          const waiting = inbox?.items.filter(({ sessionId }) => sessionId === id).length ?? 0;
          return (
            <li key={id} className="lazy-row border-line border-b last:border-b-0">
              <Link
                to="/sessions/$id"
                params={{ id }}
                className="text-ink hover:bg-raised flex flex-wrap items-center gap-x-3 px-3 py-2 hover:no-underline"
              >
                <Untrusted text={agent} inline className="font-semibold" />
                {owner !== "" && (
                  <span className="text-muted">
                    for <Untrusted text={owner} inline />
                  </span>
                )}
                {waiting > 0 && <Badge tone="warn">{plural(waiting, "question")} open</Badge>}
                <span className="text-muted ml-auto flex gap-3 text-xs">
                  <Untrusted text={id} mono inline />
                  <Ago at={createdAt} />
                </span>
              </Link>
            </li>
          );
        })}
      </ul>
    </div>
  );
}
