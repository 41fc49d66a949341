import { queryOptions, useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useState } from "react";
import { client } from "../../app/client.ts";
import { plural } from "../../app/words.ts";
import { Badge } from "../../ui/badge.tsx";
import { Empty, Panel, Problem } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { RollbackDialog } from "../sessions/rollback-dialog.tsx";
import { RunButtons } from "./run-buttons.tsx";
import { Phases, Plan, Proof, RUN_STATES } from "./run-parts.tsx";
import { SessionCalls } from "./session-calls.tsx";
import { SubAgents } from "./sub-agents.tsx";

const runQuery = (id: string) =>
  queryOptions({
    queryKey: ["runs", id],
    queryFn: ({ signal }) => client.runs.get({ id }, { signal }),
  });

/** One feature from talk to delivery: how far it is, what it may write, what proves it, and what was done for it. */
export function RunPage() {
  const { id = "" } = useParams({ strict: false });
  const { data: run, error } = useQuery(runQuery(id));
  const [back, setBack] = useState<{ readonly operationId?: string }>();
  if (run === undefined) {
    return error === null ? <Empty>Loading…</Empty> : <Problem error={error} />;
  }
  const { feature, lead, status, phase, rounds, budget, reason } = run;
  return (
    <div className="mx-auto max-w-4xl space-y-3 p-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h1>
          <Untrusted text={feature} inline />
        </h1>
        <RunButtons id={id} onUndo={() => setBack({})} />
      </div>
      <p className="text-muted flex flex-wrap items-center gap-2">
        <Badge tone={RUN_STATES[status]}>{status}</Badge>
        <span>
          led by <Untrusted text={lead} inline />, {rounds} of {plural(budget, "round")}
        </span>
      </p>
      <Phases phase={phase} />
      <Plan run={run} />
      {reason !== "" && (
        <p className="text-danger">
          <Untrusted text={reason} />
        </p>
      )}
      <Panel title="Plan, promises and evidence">
        <Proof run={run} />
      </Panel>
      <SessionCalls id={id} onUndo={(operationId) => setBack({ operationId })} />
      <SubAgents of={id} />
      {back !== undefined && (
        <RollbackDialog sessionId={id} {...back} onClose={() => setBack(undefined)} />
      )}
    </div>
  );
}
