import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { AnswerOf } from "sallyport/client";
import { client } from "../../app/client.ts";
import { all } from "../../app/queries.ts";
import { Badge, type Tone } from "../../ui/badge.tsx";
import { Panel } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";

export type Delegation = AnswerOf<"delegations.get">;

export const DELEGATION_STATES: Readonly<Record<Delegation["state"], readonly [Tone, string]>> = {
  active: ["accent", "active"],
  reported: ["ok", "reported"],
  failed: ["danger", "failed"],
  revoked: ["danger", "revoked"],
};

export const delegationsQuery = queryOptions({
  queryKey: ["delegations"],
  queryFn: ({ signal }) =>
    all((cursor) => client.delegations.list({ limit: 500, ...cursor }, { signal })),
});

/** Those that a session delegated to, indented by depth. */
export function SubAgents({ of }: { of: string }) {
  const { data = [] } = useQuery(delegationsQuery);
  if (!data.some(({ parentSession }) => parentSession === of)) return null;
  return (
    <Panel title="Sub-agents">
      <Below parent={of} all={data} />
    </Panel>
  );
}

function Below({ parent, all: known }: { parent: string; all: readonly Delegation[] }) {
  const own = known.filter(({ parentSession }) => parentSession === parent);
  if (own.length === 0) return null;
  return (
    <ul className="border-line ml-1 space-y-1 border-l-2 pl-3">
      {own.map(({ id, agents, state, task }) => (
        <li key={id}>
          <Link to="/sessions/$id" params={{ id }} className="text-ink font-semibold">
            <Untrusted text={agents[0] ?? ""} inline />
          </Link>{" "}
          <Badge tone={DELEGATION_STATES[state][0]}>{DELEGATION_STATES[state][1]}</Badge>{" "}
          <Untrusted text={task} inline />
          <Below parent={id} all={known} />
        </li>
      ))}
    </ul>
  );
}
