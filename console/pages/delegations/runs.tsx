import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { AnswerOf } from "sallyport/client";
import { client } from "../../app/client.ts";
import { all } from "../../app/queries.ts";
import { plural } from "../../app/words.ts";
import { Badge, type Tone } from "../../ui/badge.tsx";
import { Fact, Facts, Problem } from "../../ui/panel.tsx";
import { Ago } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";

type Run = AnswerOf<"runs.get">;

const runsQuery = queryOptions({
  queryKey: ["runs"],
  queryFn: ({ signal }) => all((cursor) => client.runs.list({ limit: 500, ...cursor }, { signal })),
});

const PHASES = ["discuss", "spec", "plan", "execute", "verify", "ship"] as const;

const STATES: Readonly<Record<Run["status"], Tone>> = {
  open: "accent",
  done: "ok",
  stopped: "danger",
};

/** Features from talk to delivery: how far each is, and what proves it. */
export function Runs() {
  const { data: runs = [], error } = useQuery(runsQuery);
  if (runs.length === 0 && error === null) return null;
  return (
    <section aria-label="Runs" className="border-line bg-panel rounded-lg border">
      <h2 className="border-line border-b px-3 py-2">Runs</h2>
      <Problem error={error} />
      <ul className="divide-line divide-y">
        {runs.map((run) => (
          <RunRow key={run.id} run={run} />
        ))}
      </ul>
    </section>
  );
}

function RunRow({ run }: { run: Run }) {
  const { id, feature, lead, status, phase, rounds, budget, reason } = run;
  return (
    <li className="space-y-1.5 px-3 py-2.5" data-run={id}>
      <div className="flex flex-wrap items-center gap-2">
        <Untrusted text={feature} inline className="font-semibold" />
        <Badge tone={STATES[status]}>{status}</Badge>
        <span className="text-muted">
          led by <Untrusted text={lead} inline />, {rounds} of {plural(budget, "round")}
        </span>
        <Link to="/sessions/$id" params={{ id }} className="text-xs">
          session
        </Link>
      </div>
      <ol className="flex flex-wrap gap-1 text-xs" aria-label="Phases">
        {PHASES.map((one) => (
          <li
            key={one}
            aria-current={one === phase ? "step" : undefined}
            className={`rounded border px-1.5 ${one === phase ? "border-accent bg-accent-soft text-accent font-semibold" : "border-line text-muted"}`}
          >
            {one}
          </li>
        ))}
      </ol>
      {reason !== "" && (
        <p className="text-danger">
          <Untrusted text={reason} />
        </p>
      )}
      <details className="text-xs">
        <summary className="text-muted">Plan, promises and evidence</summary>
        <Proof run={run} />
      </details>
    </li>
  );
}

function Proof({ run }: { run: Run }) {
  return (
    <Facts>
      <Fact name="May write">
        {run.planFiles.length === 0 ? (
          "nothing: no plan is agreed to"
        ) : (
          <Untrusted text={run.planFiles.join("\n")} mono />
        )}
      </Fact>
      {run.promises.map((promise) => (
        <Fact key={promise.id} name="Promise">
          <Untrusted text={promise.statement} />
          {promise.evidence.map(({ name }) => {
            const newest = run.evidence.findLast(
              ({ promiseId, need }) => promiseId === promise.id && need === name,
            );
            return (
              <div key={name}>
                <Badge tone={newest?.green === true ? "ok" : "warn"}>
                  {newest === undefined ? "not shown yet" : newest.green ? "proved" : "failed"}
                </Badge>{" "}
                <Untrusted text={name} inline />
                {newest !== undefined && (
                  <>
                    : <Untrusted text={newest.conclusion} inline />, <Ago at={newest.at} />
                  </>
                )}
              </div>
            );
          })}
        </Fact>
      ))}
    </Facts>
  );
}
