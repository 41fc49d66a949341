import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { AnswerOf } from "sallyport/client";
import { client } from "../../app/client.ts";
import { all, inboxQuery, meQuery } from "../../app/queries.ts";
import { useSending } from "../../app/sending.ts";
import { plural } from "../../app/words.ts";
import { Badge, type Tone } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Fact, Facts, Problem } from "../../ui/panel.tsx";
import { Ago } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { ReasonDialog } from "../item/reason-dialog.tsx";

export type Run = AnswerOf<"runs.get">;

const runsQuery = queryOptions({
  queryKey: ["runs"],
  queryFn: ({ signal }) => all((cursor) => client.runs.list({ limit: 500, ...cursor }, { signal })),
});

const PHASES = ["discuss", "spec", "plan", "execute", "verify", "ship"] as const;

export const RUN_STATES: Readonly<Record<Run["status"], Tone>> = {
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
        <Link to="/runs/$id" params={{ id }} className="text-ink font-semibold">
          <Untrusted text={feature} inline />
        </Link>
        <Badge tone={RUN_STATES[status]}>{status}</Badge>
        <span className="text-muted">
          led by <Untrusted text={lead} inline />, {rounds} of {plural(budget, "round")}
        </span>
      </div>
      <Phases phase={phase} />
      <Plan run={run} />
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

export function Phases({ phase }: Pick<Run, "phase">) {
  return (
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
  );
}

/** The plan that waits for a person, and the end of a run that goes wrong. */
export function Plan({ run: { id, status } }: { run: Run }) {
  const { data: inbox } = useQuery(inboxQuery);
  const { data: me } = useQuery(meQuery);
  const [stopping, setStopping] = useState(false);
  const { busy, error, run } = useSending(["runs"], () => setStopping(false));
  if (status !== "open") return null;
  const waiting = inbox?.items.find(
    ({ sessionId, callId }) => sessionId === id && callId.startsWith("plan-"),
  );
  return (
    <div className="flex flex-wrap items-center gap-2">
      {waiting !== undefined && (
        <Link to="/inbox/$id" params={{ id: waiting.id }}>
          Its plan waits for approval
        </Link>
      )}
      {me?.roles.includes("operator") === true && (
        <Button tone="danger" className="ml-auto" onClick={() => setStopping(true)}>
          Stop
        </Button>
      )}
      {stopping && (
        <ReasonDialog
          title="Stop this run for good"
          label="Why?"
          submit="Stop"
          tone="danger"
          required
          busy={busy}
          error={error}
          onSubmit={(why) => run(() => client.runs.stop({ id, reason: why }))}
          onClose={() => setStopping(false)}
        />
      )}
    </div>
  );
}

/** Only what the gate itself saw proves anything; a server that does not say has seen nothing. */
function EvidenceBadge({ evidence }: { evidence: Run["evidence"][number] | undefined }) {
  if (evidence === undefined) return <Badge tone="warn">not shown yet</Badge>;
  if (!evidence.green) return <Badge tone="danger">failed</Badge>;
  const isSeen = (evidence as { readonly observed?: boolean }).observed === true;
  return isSeen ? <Badge tone="ok">proved</Badge> : <Badge tone="warn">claimed</Badge>;
}

export function Proof({ run }: { run: Run }) {
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
                <EvidenceBadge evidence={newest} /> <Untrusted text={name} inline />
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
