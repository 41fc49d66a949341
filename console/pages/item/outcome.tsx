import { useState } from "react";
import { forPeople } from "sallyport/client";
import { client, type Decision, type Operation } from "../../app/client.ts";
import { StateBadge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { TextView } from "../../ui/diff-view.tsx";
import { Panel, Problem } from "../../ui/panel.tsx";
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
    <Panel title="Result">
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
      {truncated && <WholeOutput id={operation.id} />}
      {status === "success" && undo !== undefined && (
        <p className="text-muted text-xs">
          {undo.irreversible ? "Irreversible. By hand: " : "Undo: "}
          <Untrusted
            text={undo.irreversible ? undo.manualGuide : undo.description || undo.tool}
            inline
          />
        </p>
      )}
    </div>
  );
}

/** Only the beginning is recorded; the rest is read in parts, when a person wants to see it. */
function WholeOutput({ id }: { id: string }) {
  const [parts, setParts] = useState<readonly string[]>([]);
  const [next, setNext] = useState<number | undefined>(0);
  const [error, setError] = useState<unknown>(null);
  const read = async () => {
    try {
      const { text, nextOffset, totalBytes } = await client.operations.output({
        id,
        offset: next ?? 0,
      });
      setParts((before) => [...before, text]);
      setNext(nextOffset < totalBytes ? nextOffset : undefined);
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <div className="space-y-1">
      {parts.length > 0 && <TextView text={parts.join("")} label="Whole output" />}
      {next !== undefined && (
        <Button onClick={() => void read()}>
          {parts.length === 0 ? "Show the whole output" : "Show more"}
        </Button>
      )}
      <Problem error={error} />
    </div>
  );
}
