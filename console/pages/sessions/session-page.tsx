import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { sessionQuery, sessionsQuery } from "../../app/queries.ts";
import { sessionTrailQuery } from "../../app/trail.ts";
import { Badge } from "../../ui/badge.tsx";
import { Fact, Facts, Panel, Problem } from "../../ui/panel.tsx";
import { Moment } from "../../ui/time.tsx";
import { OlderMissing, Timeline } from "../../ui/timeline.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { isDelegation } from "../item/undo-dialog.tsx";
import { RunButtons } from "../runs/run-buttons.tsx";
import { SessionCalls } from "../runs/session-calls.tsx";
import {
  DELEGATION_STATES,
  type Delegation,
  delegationsQuery,
  SubAgents,
} from "../runs/sub-agents.tsx";
import { RollbackDialog } from "./rollback-dialog.tsx";

/** What one agent did in one session, or a sub-agent under its delegation: its calls, and the trail behind them. */
export function SessionPage() {
  const { id = "" } = useParams({ strict: false });
  const session = useQuery(sessionQuery(id));
  const { data: sessions } = useQuery(sessionsQuery);
  const { data: delegations } = useQuery({ ...delegationsQuery, enabled: isDelegation(id) });
  const delegation = delegations?.find((one) => one.id === id);
  const line = session.data ?? sessions?.find((one) => one.id === id);
  const [back, setBack] = useState<{ readonly operationId?: string } | undefined>();
  const since = delegation?.createdAt ?? line?.createdAt;
  const agent = delegation?.agents[0] ?? line?.agent ?? "an agent";
  return (
    <div className="mx-auto max-w-4xl space-y-3 p-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h1>
          Session of <Untrusted text={agent} inline />
        </h1>
        <RunButtons id={id} onUndo={() => setBack({})} />
      </div>
      <Problem error={session.error} />
      <Facts>
        <Fact name="Id">
          <Untrusted text={id} mono inline />
        </Fact>
        {line?.owner ? (
          <Fact name="On behalf of">
            <Untrusted text={line.owner} inline />
          </Fact>
        ) : null}
        {since !== undefined && (
          <Fact name="Since">
            <Moment at={since} />
          </Fact>
        )}
        {delegation !== undefined && <Task delegation={delegation} />}
      </Facts>
      <SessionCalls id={id} onUndo={(operationId) => setBack({ operationId })} />
      <SubAgents of={id} />
      {since !== undefined && <SessionTimeline id={id} since={since} />}
      {back !== undefined && (
        <RollbackDialog sessionId={id} {...back} onClose={() => setBack(undefined)} />
      )}
    </div>
  );
}

/** Of a sub-agent: for whom it works, on what. */
function Task({ delegation: { agents, parentSession, task, state } }: { delegation: Delegation }) {
  return (
    <>
      <Fact name="Delegated by">
        <Link to="/sessions/$id" params={{ id: parentSession }}>
          <Untrusted text={agents[1] ?? parentSession} inline />
        </Link>
      </Fact>
      <Fact name="Task">
        <Untrusted text={task} />{" "}
        <Badge tone={DELEGATION_STATES[state][0]}>{DELEGATION_STATES[state][1]}</Badge>
      </Fact>
    </>
  );
}

function SessionTimeline({ id, since }: { id: string; since: string }) {
  const { data, error } = useQuery(sessionTrailQuery(id, since));
  return (
    <Panel title="Timeline (from the audit log)">
      <Problem error={error} />
      {data?.complete === false && <OlderMissing entries={data.entries} />}
      {data === undefined ? (
        <p className="text-muted">Loading…</p>
      ) : (
        <Timeline entries={data.entries} />
      )}
    </Panel>
  );
}
