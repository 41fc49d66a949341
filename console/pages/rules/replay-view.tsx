import { Link } from "@tanstack/react-router";
import type { AnswerOf } from "sallyport/client";
import { Badge } from "../../ui/badge.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";

type Replay = AnswerOf<"standingRules.replay">;

/** Enough to look at; the sentence above says how many there are. */
const MOST = 20;

/** Replay of a rule over past decisions; those where it would have been wrong come first. */
export function ReplayView({ replay }: { replay: Replay }) {
  const { text, rejected, stopped, open, agreed } = replay;
  const wrong = [...rejected, ...stopped];
  return (
    <section
      aria-label="Replay on past decisions"
      className={`rounded-md border px-3 py-2 ${wrong.length > 0 ? "border-danger bg-danger-soft" : "border-line bg-page"}`}
    >
      <p className="font-medium" role="status">
        {text}
      </p>
      <ul className="mt-1 space-y-1 empty:hidden">
        {wrong.slice(0, MOST).map(({ id, by, reason }) => (
          <li key={id}>
            <Badge tone="danger">was rejected</Badge> <DecisionLink id={id} /> by{" "}
            <Untrusted text={by} inline /> {reason !== "" && <Untrusted text={`“${reason}”`} />}
          </li>
        ))}
        {open.slice(0, MOST).map((id) => (
          <li key={id}>
            <Badge tone="warn">not decided yet</Badge> <DecisionLink id={id} />
          </li>
        ))}
        {agreed.slice(0, MOST).map((id) => (
          <li key={id}>
            <Badge tone="ok">was approved</Badge> <DecisionLink id={id} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function DecisionLink({ id }: { id: string }) {
  return (
    <Link to="/decisions/$id" params={{ id }} target="_blank" className="font-mono text-xs">
      {id}
    </Link>
  );
}
