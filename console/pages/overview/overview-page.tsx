import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { client, type Interaction } from "../../app/client.ts";
import { summaryOf } from "../../app/facts-of.ts";
import { inboxQuery, pausesQuery, switchQuery } from "../../app/queries.ts";
import { plural, spanOf } from "../../app/words.ts";
import { Empty, PageTitle, Panel, Problem } from "../../ui/panel.tsx";
import { Ago } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { nameOf } from "../inbox/inbox-row.tsx";
import { bucketsOf, byTrouble, RANGES, type Range, sumOf } from "./figures.ts";
import { type Bucket, type Count, OutcomeBars } from "./outcome-bars.tsx";

/** Counted by the server over everything in the range; read again when something happens. */
const statsQuery = (range: Range, count: "hour" | "day" | "agent" | "tool" | "by") =>
  queryOptions({
    queryKey: ["calls", "stats", range, count],
    queryFn: async ({ signal }) => {
      const from = new Date(Date.now() - RANGES[range][1]).toISOString();
      return { from, ...(await client.calls.stats({ from, count }, { signal })) };
    },
    placeholderData: (before) => before,
  });

/** What needs a person now, and what the gate did. */
export function OverviewPage() {
  const { range = "day" } = useSearch({ strict: false }) as { range?: Range };
  const navigate = useNavigate();
  const [, span, step] = RANGES[range];
  const over = useQuery(statsQuery(range, step));
  const agents = useQuery(statsQuery(range, "agent"));
  const tools = useQuery(statsQuery(range, "tool"));
  const people = useQuery({
    ...statsQuery(range, "by"),
    select: (stats) => ({
      ...stats,
      items: stats.items.filter(({ outcome }) => outcome !== "refused"),
    }),
  });
  const buckets =
    over.data === undefined ? [] : bucketsOf(over.data.items, over.data.from, span, step);
  return (
    <div className="mx-auto max-w-6xl space-y-3 p-3">
      <PageTitle title="Overview">
        <fieldset className="flex flex-wrap gap-1">
          <legend className="sr-only">Time</legend>
          {(Object.keys(RANGES) as Range[]).map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={one === range}
              onClick={() =>
                navigate({ to: "/overview", search: { range: one }, replace: true }).catch(() => {})
              }
              className={`min-h-8 rounded-md border px-2 ${one === range ? "border-accent bg-accent-soft text-accent font-semibold" : "border-line bg-panel"}`}
            >
              {RANGES[one][0]}
            </button>
          ))}
        </fieldset>
      </PageTitle>
      <Problem error={over.error ?? agents.error ?? tools.error ?? people.error} />
      <NeedsYou />
      <Totals
        items={over.data?.items ?? []}
        medianMs={over.data?.medianMs ?? null}
        p90Ms={over.data?.p90Ms ?? null}
      />
      <OutcomeBars
        buckets={buckets}
        onPick={({ from, to }: Bucket) =>
          navigate({ to: "/decisions", search: { from, to } }).catch(() => {})
        }
      />
      <div className="grid gap-3 lg:grid-cols-2">
        <Trouble title="By agent" items={agents.data?.items ?? []} filter="agent" />
        <Trouble title="By tool" items={tools.data?.items ?? []} filter="tool" />
        <Trouble
          title="By decider"
          items={(people.data?.items ?? []).filter(({ key }) => key !== "")}
          filter="by"
        />
      </div>
    </div>
  );
}

const AGES: readonly (readonly [string, number])[] = [
  ["under 5 min", 5 * 60_000],
  ["under 1 h", 3_600_000],
  ["older", Number.POSITIVE_INFINITY],
];

/** The only figures that call for action, each with the place to act. */
function NeedsYou() {
  const { data: inbox } = useQuery(inboxQuery);
  const { data: all } = useQuery(switchQuery);
  const { data: pauses = [] } = useQuery(pausesQuery);
  const items = inbox?.items ?? [];
  const now = Date.now();
  const ageOf = ({ createdAt }: Interaction) => now - Date.parse(createdAt);
  const lost = items.filter(({ type }) => type === "connection_lost");
  const [oldest] = items;
  const soon = items.filter(({ deadline }) => Date.parse(deadline) - now < 2 * 3_600_000);
  const paused = (all?.stopped === true ? 1 : 0) + pauses.length;
  let from = 0;
  const ages = AGES.map(([words, to]) => {
    const count = items.filter((item) => ageOf(item) >= from && ageOf(item) < to).length;
    from = to;
    return [words, count] as const;
  });
  return (
    <Panel title="Needs you">
      {items.length === 0 && paused === 0 ? (
        <Empty>All clear. Nothing waits for a person.</Empty>
      ) : (
        <ul className="space-y-1">
          <li>
            <Link to="/inbox" className="underline">
              {plural(items.length, "question")} waiting
            </Link>
            : {ages.map(([words, count]) => `${count} ${words}`).join(", ")}
          </li>
          {oldest !== undefined && (
            <li>
              Oldest, <Ago at={oldest.createdAt} />:{" "}
              <Link to="/inbox/$id" params={{ id: oldest.id }} className="underline">
                <Untrusted
                  text={
                    oldest.type === "confirm"
                      ? (summaryOf(oldest) ?? nameOf(oldest))
                      : nameOf(oldest)
                  }
                  inline
                />
              </Link>
            </li>
          )}
          {soon.length > 0 && (
            <li className="text-danger">
              {plural(soon.length, "question")} expire within two hours
            </li>
          )}
          {lost.map(({ id }) => (
            <li key={id} className="text-danger">
              <Link to="/inbox/$id" params={{ id }} className="underline">
                Outcome unknown: check the target
              </Link>
            </li>
          ))}
          {paused > 0 && (
            <li className="text-danger">
              {plural(paused, "pause")} in effect: see the banner above
            </li>
          )}
        </ul>
      )}
    </Panel>
  );
}

interface TotalsProps {
  readonly items: readonly Count[];
  readonly medianMs: number | null;
  readonly p90Ms: number | null;
}

function Totals({ items, medianMs, p90Ms }: TotalsProps) {
  const yes = sumOf(items, "ran", "undone", "approved");
  const no = sumOf(items, "rejected");
  const facts: readonly (readonly [string, string, object])[] = [
    ["Calls", String(sumOf(items)), {}],
    ["Refused by checks", String(sumOf(items, "refused")), { tab: "refused" }],
    [
      "Approved",
      yes + no === 0 ? String(yes) : `${yes} (${Math.round((100 * yes) / (yes + no))} %)`,
      {},
    ],
    ["Rejected", String(no), {}],
    ["Failed or unknown", String(sumOf(items, "failed", "unknown")), { tab: "failed" }],
    ["Undone", String(sumOf(items, "undone")), { tab: "undone" }],
    ["Median time to decide", medianMs === null ? "–" : spanOf(medianMs), {}],
    ["p90", p90Ms === null ? "–" : spanOf(p90Ms), {}],
  ];
  return (
    <dl className="grid grid-cols-2 gap-2 sm:grid-cols-4">
      {facts.map(([name, value, search]) => (
        <div key={name} className="border-line bg-panel rounded-lg border px-3 py-2">
          <dt className="text-muted text-xs">
            <Link to="/decisions" search={search} className="text-muted">
              {name}
            </Link>
          </dt>
          <dd className="text-lg font-semibold tabular-nums">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const COLUMNS = [
  ["Calls", "calls"],
  ["Refused", "refused"],
  ["Rejected", "rejected"],
  ["Failed", "failed"],
  ["Undone", "undone"],
] as const;

interface TroubleProps {
  readonly title: string;
  readonly items: readonly Count[];
  readonly filter: "agent" | "tool" | "by";
}

/** Sorted by trouble: what was refused, rejected, failed or undone most. */
function Trouble({ title, items, filter }: TroubleProps) {
  const rows = byTrouble(items);
  return (
    <Panel title={title}>
      {rows.length === 0 ? (
        <Empty>Nothing in this time.</Empty>
      ) : (
        <div className="overflow-x-auto">
          <table aria-label={title} className="w-full text-left tabular-nums">
            <thead className="text-muted text-xs">
              <tr>
                <th className="font-medium">Name</th>
                {COLUMNS.map(([name]) => (
                  <th key={name} className="px-1 text-right font-medium">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, 12).map((row) => (
                <tr key={row.key} className="border-line border-t">
                  <td className="max-w-40 py-1">
                    <Link to="/decisions" search={{ [filter]: row.key }} className="one-line">
                      <Untrusted text={row.key} inline />
                    </Link>
                  </td>
                  {COLUMNS.map(([name, of]) => (
                    <td
                      key={name}
                      className={`px-1 text-right ${name !== "Calls" && row[of] > 0 ? "text-danger font-semibold" : ""}`}
                    >
                      {row[of]}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}
