import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { forPeople } from "sallyport/client";
import type { Operation } from "../../app/client.ts";
import { meQuery, operationsQuery, sessionQuery, sessionsQuery } from "../../app/queries.ts";
import { sessionTrailQuery } from "../../app/trail.ts";
import { Badge, StateBadge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty, Fact, Facts, Panel, Problem } from "../../ui/panel.tsx";
import { Moment } from "../../ui/time.tsx";
import { OlderMissing, Timeline } from "../../ui/timeline.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { canUndo } from "../item/undo-dialog.tsx";
import { RollbackDialog } from "./rollback-dialog.tsx";

/** One session as a timeline, with undo. */
export function SessionPage() {
  const { id = "" } = useParams({ strict: false });
  const { data: me } = useQuery(meQuery);
  const session = useQuery(sessionQuery(id));
  const { data: sessions } = useQuery(sessionsQuery);
  const line = session.data ?? sessions?.find((one) => one.id === id);
  const { data: operations = [], error } = useQuery(operationsQuery(id));
  const [back, setBack] = useState<{ readonly operationId?: string } | undefined>();
  const since = line?.createdAt ?? operations[0]?.createdAt;
  const mayUndo = me?.roles.includes("operator") === true;
  return (
    <div className="mx-auto max-w-4xl space-y-3 p-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h1>
          Session of <Untrusted text={line?.agent ?? "an agent"} inline />
        </h1>
        <Button
          tone="danger"
          disabled={!mayUndo || operations.length === 0}
          title={mayUndo ? "" : "Only operators can undo a run"}
          onClick={() => setBack({})}
        >
          Undo run
        </Button>
      </div>
      <Problem error={session.error ?? error} />
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
      </Facts>
      <Panel title="Operations">
        {operations.length === 0 ? (
          <Empty>Nothing was executed yet.</Empty>
        ) : (
          <ul className="divide-line divide-y">
            {operations.map((one) => (
              <OperationRow
                key={one.id}
                operation={one}
                onUndo={
                  mayUndo && canUndo(one) ? () => setBack({ operationId: one.id }) : undefined
                }
              />
            ))}
          </ul>
        )}
      </Panel>
      {since !== undefined && <SessionTimeline id={id} since={since} />}
      {back !== undefined && (
        <RollbackDialog sessionId={id} {...back} onClose={() => setBack(undefined)} />
      )}
    </div>
  );
}

function OperationRow({
  operation,
  onUndo,
}: {
  operation: Operation;
  onUndo: (() => void) | undefined;
}) {
  const { tool, input, status, output, error, decisionId, undoOf, createdAt, effect } = operation;
  const text = status === "failed" || status === "unknown" ? forPeople(error) : output;
  return (
    <li className="lazy-row py-2">
      <div className="flex flex-wrap items-center gap-2">
        <span className="text-muted text-xs">
          <Moment at={createdAt} />
        </span>
        <Untrusted text={tool} mono inline className="font-semibold" />
        <StateBadge state={status} />
        {effect === "read" && <Badge>Reads only</Badge>}
        {undoOf !== "" && <Badge tone="accent">undo call</Badge>}
        {decisionId !== "" && (
          <Link to="/decisions/$id" params={{ id: decisionId }} className="text-xs">
            decision
          </Link>
        )}
        {onUndo !== undefined && (
          <Button className="ml-auto" onClick={onUndo}>
            Undo
          </Button>
        )}
      </div>
      <div className="text-muted line-clamp-3 font-mono text-xs">
        <Untrusted text={input.slice(0, 600)} mono inline />
      </div>
      {text !== "" && (
        <div className="line-clamp-3">
          <Untrusted text={text.slice(0, 600)} />
        </div>
      )}
    </li>
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
