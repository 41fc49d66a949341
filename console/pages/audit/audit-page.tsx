import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { client, type Entry } from "../../app/client.ts";
import { meQuery } from "../../app/queries.ts";
import { dataOf, wordsOf } from "../../app/trail.ts";
import { Button } from "../../ui/button.tsx";
import { JsonView } from "../../ui/json-view.tsx";
import { PageTitle, Problem } from "../../ui/panel.tsx";
import { Moment } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { ExportTrail } from "./export-trail.tsx";
import { Verify } from "./verify.tsx";

const PAGE = 100;

const headQuery = queryOptions({ queryKey: ["head"], queryFn: () => client.audit.head() });

const entriesQuery = (last: number) =>
  queryOptions({
    queryKey: ["entries", last],
    queryFn: async () => {
      const after = Math.max(0, last - PAGE);
      const { items } = await client.audit.entries({ after, limit: Math.max(1, last - after) });
      return items.filter(({ seq }) => seq <= last).toReversed();
    },
  });

/** The trail, newest first, and its verification. */
export function AuditPage() {
  const { data: me } = useQuery(meQuery);
  const { data: head, error: headError } = useQuery(headQuery);
  // Undefined: the end of the trail, wherever it is by now.
  const [place, setPlace] = useState<number>();
  const last = place ?? head?.seq ?? 0;
  const { data: entries, error } = useQuery({
    ...entriesQuery(last),
    enabled: last > 0,
    placeholderData: (before) => before,
  });
  const mayVerify = me?.roles.some((role) => role !== "reviewer" && role !== "agent") === true;
  const end = head?.seq ?? 0;
  return (
    <div className="mx-auto max-w-6xl space-y-3 p-3">
      <PageTitle title="Audit">{mayVerify && <ExportTrail />}</PageTitle>
      <Problem error={headError ?? error} />
      <Verify mayVerify={mayVerify} />
      <nav aria-label="Pages of the audit log" className="flex flex-wrap items-center gap-2">
        <Button disabled={place === undefined} onClick={() => setPlace(undefined)}>
          Newest
        </Button>
        <Button
          disabled={last >= end}
          onClick={() => setPlace(last + PAGE >= end ? undefined : last + PAGE)}
        >
          Newer
        </Button>
        <Button disabled={last <= PAGE} onClick={() => setPlace(last - PAGE)}>
          Older
        </Button>
        <span className="text-muted">
          {Math.max(1, last - PAGE + 1)} to {last} of {end.toLocaleString("en")}
        </span>
      </nav>
      <ol className="border-line bg-panel divide-line divide-y rounded-lg border empty:hidden">
        {entries?.map((entry) => (
          <EntryRow key={entry.seq} entry={entry} />
        ))}
      </ol>
    </div>
  );
}

function EntryRow({ entry }: { entry: Entry }) {
  const { words, detail } = wordsOf(entry);
  const [open, setOpen] = useState(false);
  return (
    <li className="lazy-row px-3 py-1.5">
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary className="marked">
          <span className="flex min-w-0 flex-wrap items-baseline gap-x-3">
            <span className="text-muted font-mono text-xs sm:w-14">#{entry.seq}</span>
            <span className="text-muted text-xs">
              <Moment at={entry.at} />
            </span>
            <span className="font-medium">{words}</span>
            {words !== entry.type && (
              <span className="text-muted font-mono text-xs">{entry.type}</span>
            )}
            <Untrusted text={entry.actor} inline className="text-muted" />
            <Untrusted text={detail.slice(0, 120)} inline />
          </span>
        </summary>
        {open && (
          <div className="mt-1">
            <JsonView
              value={{ ...entry, data: entry.data === null ? null : dataOf(entry) }}
              label={`Entry ${entry.seq}`}
            />
          </div>
        )}
      </details>
    </li>
  );
}
