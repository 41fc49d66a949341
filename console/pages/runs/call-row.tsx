import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { type AnswerOf, forPeople } from "sallyport/client";
import { client, type Me, type Operation } from "../../app/client.ts";
import { inputText, parsed } from "../../app/facts-of.ts";
import { useSending } from "../../app/sending.ts";
import { spanOf } from "../../app/words.ts";
import { Badge, StateBadge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { TextView } from "../../ui/diff-view.tsx";
import { JsonView } from "../../ui/json-view.tsx";
import { Fact, Facts, Problem } from "../../ui/panel.tsx";
import { Ago, Moment } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { OUTCOMES } from "../decisions/call-search.ts";
import { canUndo } from "../item/undo-dialog.tsx";

type SessionCall = AnswerOf<"sessions.calls">["items"][number];

interface Props {
  readonly call: SessionCall;
  readonly me: Me | undefined;
  readonly onUndo: (operationId: string) => void;
}

/** One call: what, through which doors, by whom, what came of it and how long it took; opened, everything behind it. */
export function CallRow({ call, me, onUndo }: Props) {
  const { id, kind, at, tool, title, outcome, reason, votes, by, waitMs, operations } = call;
  const [isOpen, setOpen] = useState(false);
  const [tone, words] = OUTCOMES[outcome];
  const isOperator = me?.roles.includes("operator") === true;
  const undoable = isOperator ? operations.find(canUndo) : undefined;
  const running = operations.find(({ status }) => status === "started");
  const people = votes.length > 0 ? votes : outcome === "rejected" && by !== "" ? [by] : [];
  return (
    <li className="py-1.5" data-call={id}>
      <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
        <span className="min-w-40 flex-1 font-semibold">
          {kind === "decision" ? (
            <Link to="/decisions/$id" params={{ id }} className="text-ink inline-block min-h-6">
              <Untrusted text={title} inline />
            </Link>
          ) : (
            <Untrusted text={title} inline />
          )}
          {title === tool && operations[0] !== undefined && (
            <span className="text-muted ml-2 font-normal">
              <Untrusted text={inputText(operations[0].input)} inline />
            </span>
          )}
        </span>
        <Badge tone={tone}>{words}</Badge>
        {running !== undefined && isOperator && <Cancel operation={running} />}
        {undoable !== undefined && <Button onClick={() => onUndo(undoable.id)}>Undo</Button>}
      </div>
      <div className="text-muted flex flex-wrap items-center gap-x-3 text-xs">
        <Ago at={at} />
        {tool !== title && <Untrusted text={tool} mono inline />}
        <Doors call={call} />
        {people.length > 0 && (
          <span>
            {outcome === "rejected" ? "rejected" : "approved"} by{" "}
            <Untrusted text={people.join(", ")} inline />
            {waitMs !== null && ` after ${spanOf(waitMs)}`}
          </span>
        )}
        {operations.map((one) => (
          <Duration key={one.id} operation={one} />
        ))}
        {reason !== "" && <Untrusted text={forPeople(reason).slice(0, 300)} inline />}
        {kind !== "refusal" && (
          <button
            type="button"
            aria-expanded={isOpen}
            className="text-accent min-h-6 underline"
            onClick={() => setOpen(!isOpen)}
          >
            {isOpen ? "Less" : "Input and result"}
          </button>
        )}
      </div>
      {isOpen && <Behind call={call} />}
    </li>
  );
}

/** The two reviews as signs with words for those who cannot see them. */
function Doors({ call: { tech, business, kind } }: { call: SessionCall }) {
  if (kind !== "decision") return null;
  return (
    <span className="flex gap-1">
      {[tech, business].map((door, index) => (
        <Badge key={index === 0 ? "technical" : "business"} tone={toneOf(door)}>
          {door === null ? "·" : door.passed ? "✓" : "✗"} {index === 0 ? "technical" : "business"}
        </Badge>
      ))}
    </span>
  );
}

function toneOf(door: SessionCall["tech"]) {
  if (door === null) return "plain";
  return door.passed ? "ok" : "danger";
}

function Duration({ operation: { status, createdAt, updatedAt } }: { operation: Operation }) {
  if (status === "started") {
    return (
      <span>
        began <Ago at={createdAt} />
      </span>
    );
  }
  const ms = Date.parse(updatedAt) - Date.parse(createdAt);
  return <span>{ms < 1_000 ? `${Math.max(0, ms)} ms` : spanOf(ms)}</span>;
}

/** A call that runs in this server is aborted; its answer says what became of it. */
function Cancel({ operation: { sessionId, callId } }: { operation: Operation }) {
  const [note, setNote] = useState("");
  const { busy, error, run } = useSending(["calls"], () => {});
  const cancel = () =>
    run(async () => {
      const { canceled } = await client.sessions.cancel({ id: sessionId, callId });
      setNote(canceled ? "Canceling…" : "It does not run in this server.");
    });
  return (
    <>
      {note === "" ? (
        <Button tone="danger" disabled={busy} onClick={cancel}>
          Cancel
        </Button>
      ) : (
        <span role="status" className="text-muted text-xs">
          {note}
        </span>
      )}
      <Problem error={error} />
    </>
  );
}

function Behind({ call: { tech, business, operations } }: { call: SessionCall }) {
  const doors = [
    ["Technical", tech],
    ["Business", business],
  ] as const;
  return (
    <div className="mt-1 space-y-2">
      <Facts>
        {doors.map(
          ([name, door]) =>
            door !== null && (
              <Fact key={name} name={name}>
                <Untrusted text={door.by} inline />: {door.passed ? "passed" : "no"}{" "}
                <Untrusted text={door.reason} inline />
              </Fact>
            ),
        )}
      </Facts>
      {operations.length === 0 && <p className="text-muted">Nothing was executed.</p>}
      {operations.map((one) => (
        <Ran key={one.id} operation={one} />
      ))}
    </div>
  );
}

function Ran({ operation }: { operation: Operation }) {
  const { tool, input, status, output, error, updatedAt, undo, truncated } = operation;
  const value = parsed(input);
  const text = status === "failed" || status === "unknown" ? forPeople(error) : output;
  return (
    <div className="space-y-1">
      <p className="flex flex-wrap items-center gap-2 text-xs">
        <Untrusted text={tool} mono inline /> <StateBadge state={status} />
        <Moment at={updatedAt} />
      </p>
      {value === undefined ? (
        <TextView text={input} label={`Input of ${tool}`} />
      ) : (
        <JsonView value={value} label={`Input of ${tool}`} />
      )}
      {text !== "" && <TextView text={text} label={`Result of ${tool}`} />}
      {truncated && <p className="text-muted text-xs">The decision has the whole output.</p>}
      {undo !== undefined && (
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
