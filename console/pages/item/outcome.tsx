import { forPeople } from "sallyport/client";
import type { Decision, Operation } from "../../app/client.ts";
import { StateBadge } from "../../ui/badge.tsx";
import { TextView } from "../../ui/diff-view.tsx";
import { Panel } from "../../ui/panel.tsx";
import { Moment } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";

/** The outcome, once it ran. */
export function Outcome({
  decision,
  operations,
}: {
  decision: Decision;
  operations: readonly Operation[];
}) {
  if (operations.length === 0 && decision.executionError === "") return null;
  return (
    <Panel title="Outcome">
      <div className="space-y-3">
        {decision.executionError !== "" && (
          <p className="text-danger">
            <Untrusted text={forPeople(decision.executionError)} />
          </p>
        )}
        {operations.map((one) => (
          <OperationView key={one.id} operation={one} />
        ))}
      </div>
    </Panel>
  );
}

export function OperationView({ operation }: { operation: Operation }) {
  const { tool, status, output, error, undo, updatedAt, truncated } = operation;
  const text = status === "failed" || status === "unknown" ? forPeople(error) || output : output;
  return (
    <div className="space-y-1">
      <div className="flex flex-wrap items-center gap-2">
        <Untrusted text={tool} mono inline className="font-medium" />
        <StateBadge state={status} />
        <span className="text-muted text-xs">
          <Moment at={updatedAt} />
        </span>
      </div>
      {text !== "" && <TextView text={text} label={`Output of ${tool}`} />}
      {truncated && <p className="text-warn text-xs">The full output is stored in a file.</p>}
      {status === "success" && undo !== undefined && (
        <p className="text-muted text-xs">
          {undo.irreversible ? "Cannot be undone automatically: " : "Undo: "}
          <Untrusted
            text={undo.irreversible ? undo.manualGuide : undo.description || undo.tool}
            inline
          />
        </p>
      )}
    </div>
  );
}
