import { useQuery } from "@tanstack/react-query";
import { sessionTrailQuery } from "../../app/trail.ts";
import { Panel, Problem } from "../../ui/panel.tsx";
import { OlderMissing, Timeline } from "../../ui/timeline.tsx";

interface Props {
  readonly sessionId: string;
  readonly since: string;
  /** The records it is about: decision, question, operations. */
  readonly subjects: readonly string[];
}

export function ItemTimeline({ sessionId, since, subjects }: Props) {
  const { data, error } = useQuery(sessionTrailQuery(sessionId, since));
  const entries = data?.entries.filter(({ subject }) => subjects.includes(subject)) ?? [];
  return (
    <Panel title="Timeline (from the audit log)">
      <Problem error={error} />
      {data?.complete === false && <OlderMissing entries={data.entries} />}
      {data === undefined ? <p className="text-muted">Loading…</p> : <Timeline entries={entries} />}
    </Panel>
  );
}
