import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { AnswerOf } from "sallyport/client";
import { client } from "../../app/client.ts";
import { all, meQuery } from "../../app/queries.ts";
import { plural } from "../../app/words.ts";
import { Badge } from "../../ui/badge.tsx";
import { Empty, PageTitle, Problem } from "../../ui/panel.tsx";
import { Ago } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { SayMore } from "./say-more.tsx";

const conversationsQuery = queryOptions({
  queryKey: ["conversations"],
  queryFn: ({ signal }) =>
    all((cursor) => client.conversations.list({ limit: 100, ...cursor }, { signal })),
});

type Line = AnswerOf<"conversations.list">["items"][number];

/** Talks of people and programs with the agent of this server that have not ended. */
export function ConversationsPage() {
  const { data, error } = useQuery(conversationsQuery);
  const { data: me } = useQuery(meQuery);
  return (
    <div className="mx-auto max-w-4xl space-y-3 p-3">
      <PageTitle title="Conversations" />
      <Problem error={error} />
      {data?.length === 0 && (
        <Empty>
          Nobody talks with an agent now. A conversation is listed from its first message until it
          is delivered.
        </Empty>
      )}
      <ul
        aria-label="Conversations"
        className="border-line bg-panel divide-line divide-y rounded-lg border empty:hidden"
      >
        {data?.toReversed().map((one) => (
          <ConversationRow key={one.id} line={one} />
        ))}
      </ul>
      {me?.roles.includes("operator") === true && <SayMore label="Begin a conversation" />}
    </div>
  );
}

function ConversationRow({ line }: { line: Line }) {
  const { id, user, steps, waitsFor, updatedAt } = line;
  const done = steps.filter((step) => step.done).length;
  return (
    <li className="px-3 py-2" data-conversation={id}>
      <div className="flex flex-wrap items-center gap-2">
        <Link
          to="/conversations/$id"
          params={{ id }}
          className="text-ink inline-block min-h-6 font-semibold"
        >
          <Untrusted text={steps.find((step) => !step.done)?.text ?? id} inline />
        </Link>
        {waitsFor === null ? (
          <Badge tone="accent">at work</Badge>
        ) : (
          <Badge tone="warn">waits for a person</Badge>
        )}
        <span className="text-muted ml-auto text-xs">
          <Ago at={updatedAt} />
        </span>
      </div>
      <p className="text-muted text-xs">
        with <Untrusted text={user} inline />
        {steps.length > 0 && `, ${done} of ${plural(steps.length, "step")} done`}
      </p>
    </li>
  );
}
