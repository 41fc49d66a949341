import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { client } from "../../app/client.ts";
import { inboxQuery } from "../../app/queries.ts";
import { newestEntries } from "../../app/trail.ts";
import { plural, spanOf } from "../../app/words.ts";
import { StateBadge } from "../../ui/badge.tsx";
import { Empty, PageTitle, Panel, Problem } from "../../ui/panel.tsx";
import { Ago, Moment } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { Plot } from "./plot.tsx";
import { median, type Range, seriesOf } from "./series.ts";

const RANGES = [
  ["Last hour", 3_600_000, 30],
  ["Last day", 86_400_000, 48],
  ["Last week", 7 * 86_400_000, 56],
] as const;

/** A page of the trail is 500 entries; beyond this the page says that older ones are missing. */
const MOST_PAGES = 20;
const STUCK_MS = 15 * 60_000;
const IN_FLIGHT = ["pending_tech", "pending_ml", "approved"] as const;

const trailQuery = (since: string) =>
  queryOptions({
    queryKey: ["trail", "since", since],
    queryFn: ({ signal }) => newestEntries({ since }, MOST_PAGES, signal),
  });

const stuckQuery = queryOptions({
  queryKey: ["stuck"],
  queryFn: async () => {
    const lists = await Promise.all(IN_FLIGHT.map(allStuck));
    return lists.flat();
  },
});

async function allStuck(state: (typeof IN_FLIGHT)[number]) {
  const query = { state, forAtLeastMs: STUCK_MS, limit: 500 };
  const pages = client.all((cursor) =>
    client.decisions.stuck({ ...query, ...(cursor === undefined ? {} : { cursor }) }),
  );
  const all = [];
  for await (const decision of pages) all.push(decision);
  return all;
}

export function PlotsPage() {
  const [chosen, setChosen] = useState(0);
  const [, span, buckets] = RANGES[chosen] ?? RANGES[0];
  // The window does not move by itself; choosing one moves it to now.
  const range = useMemo<Range>(() => {
    const to = Date.now();
    return { from: to - span, to, buckets };
  }, [span, buckets]);
  const { data, error } = useQuery(trailQuery(new Date(range.from).toISOString()));
  const series = useMemo(() => seriesOf(data?.entries ?? [], range), [data, range]);
  return (
    <div className="mx-auto max-w-6xl space-y-3 p-3">
      <PageTitle title="Plots">
        <fieldset className="flex gap-1">
          <legend className="sr-only">Time</legend>
          {RANGES.map(([name], index) => (
            <button
              key={name}
              type="button"
              aria-pressed={index === chosen}
              onClick={() => setChosen(index)}
              className={`min-h-8 rounded-md border px-2 ${index === chosen ? "border-accent bg-accent-soft text-accent font-semibold" : "border-line bg-panel"}`}
            >
              {name}
            </button>
          ))}
        </fieldset>
      </PageTitle>
      <Problem error={error} />
      {data?.complete === false && (
        <p className="text-warn">
          The trail is too long to draw all of it: what happened{" "}
          {data.entries[0] === undefined ? (
            "earlier"
          ) : (
            <>
              before <Moment at={data.entries[0].at} />
            </>
          )}{" "}
          is missing here. Choose a shorter time.
        </p>
      )}
      <Totals series={series} />
      <div className="grid gap-3 lg:grid-cols-2">
        <Plot
          title="Decisions over time"
          unit="count"
          times={series.times}
          lines={[
            { name: "asked", values: series.asked, tone: "accent" },
            { name: "approved", values: series.approved, tone: "ok" },
            { name: "rejected", values: series.rejected, tone: "warn" },
            { name: "failed", values: series.failed, tone: "danger" },
          ]}
        />
        <Plot
          title="Time to decide"
          unit="seconds"
          times={series.times}
          lines={[
            { name: "median", values: series.median, tone: "accent" },
            { name: "nine of ten", values: series.p90, tone: "warn" },
          ]}
        />
        <Plot
          title="Approval rate"
          unit="percent"
          max={100}
          times={series.times}
          lines={[
            { name: "yes among decisions of people", values: series.rate, tone: "ok", bars: true },
          ]}
        />
        <Stuck />
      </div>
    </div>
  );
}

function Totals({ series }: { series: ReturnType<typeof seriesOf> }) {
  const { data: inbox } = useQuery(inboxQuery);
  const sum = (counts: readonly number[]) => counts.reduce((all, count) => all + count, 0);
  const yes = sum(series.approved);
  const no = sum(series.rejected);
  const middle = median(series.waits);
  const facts: readonly (readonly [string, string])[] = [
    ["Waiting now", String(inbox?.items.length ?? "…")],
    ["Asked", String(sum(series.asked))],
    [
      "Approved",
      yes + no === 0 ? String(yes) : `${yes} (${Math.round((100 * yes) / (yes + no))} %)`,
    ],
    ["Typical time to decide", middle === null ? "–" : spanOf(middle * 1_000)],
    ["Failed", String(sum(series.failed))],
  ];
  return (
    <dl className="grid grid-cols-2 gap-2 sm:grid-cols-5">
      {facts.map(([name, value]) => (
        <div key={name} className="border-line bg-panel rounded-lg border px-3 py-2">
          <dt className="text-muted text-xs">{name}</dt>
          <dd className="text-lg font-semibold tabular-nums">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Stuck() {
  const { data, error } = useQuery(stuckQuery);
  return (
    <Panel title={`Stuck: in one state for ${spanOf(STUCK_MS)} or longer`}>
      <Problem error={error} />
      {data?.length === 0 && <Empty>Nothing is stuck.</Empty>}
      {data !== undefined && data.length > 0 && (
        <>
          <p className="mb-2 font-medium">{plural(data.length, "decision")}</p>
          <ul className="max-h-48 space-y-1 overflow-y-auto">
            {data.slice(0, 100).map((one) => (
              <li key={one.id} className="flex flex-wrap items-center gap-2">
                <StateBadge state={one.state} />
                <Link to="/decisions/$id" params={{ id: one.id }}>
                  <Untrusted text={one.sourceTool} mono inline />
                </Link>
                <span className="text-muted text-xs">
                  <Ago at={one.updatedAt} />
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Panel>
  );
}
