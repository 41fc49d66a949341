import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { type AnswerOf, isSallyportError } from "sallyport/client";
import { client, queryClient } from "../../app/client.ts";
import { interactionQuery, meQuery } from "../../app/queries.ts";
import { plural } from "../../app/words.ts";
import { Button } from "../../ui/button.tsx";
import { Empty, Fact, Facts, Panel, Problem } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { ItemView } from "../item/item-view.tsx";
import { SayMore } from "./say-more.tsx";

type Conversation = AnswerOf<"conversations.get">;

const conversationQuery = (id: string) =>
  queryOptions({
    queryKey: ["conversation", id],
    queryFn: ({ signal }) => client.conversations.get({ id }, { signal }),
    retry: false,
  });

/** One talk with the agent: its plan, how far it is, and the question it waits for, to be answered here. */
export function ConversationPage() {
  const { id = "" } = useParams({ strict: false });
  const { data, error } = useQuery(conversationQuery(id));
  const { data: me } = useQuery(meQuery);
  const [said, setSaid] = useState("");
  const isOwn = me !== undefined && data?.user === me.subject && me.roles.includes("operator");
  if (isSallyportError(error, "not_found")) {
    return (
      <div className="mx-auto max-w-4xl p-3">
        <h1>Conversation</h1>
        {said !== "" && <Said text={said} />}
        <Empty>This conversation has ended, or never was.</Empty>
        <Link to="/conversations">All conversations</Link>
      </div>
    );
  }
  if (data === undefined) return error ? <Problem error={error} /> : <Empty>Loading…</Empty>;
  const { user, sessionId, steps, rounds, roundLimit, waitsFor } = data;
  return (
    <div className="mx-auto max-w-4xl space-y-3 p-3">
      <h1>
        Conversation with <Untrusted text={user} inline />
      </h1>
      <Facts>
        <Fact name="Id">
          <Untrusted text={id} mono inline />
        </Fact>
        <Fact name="Calls">
          <Link to="/sessions/$id" params={{ id: sessionId }}>
            What the agent did for it
          </Link>
        </Fact>
        <Fact name="Rounds">
          {rounds} of {roundLimit}
        </Fact>
      </Facts>
      <Plan steps={steps} />
      {said !== "" && <Said text={said} />}
      {isOwn && <Continue talk={data} onSaid={setSaid} />}
      {waitsFor !== null && (
        <section
          aria-label="What it waits for"
          className="border-line bg-panel overflow-clip rounded-lg border"
        >
          <ItemView key={waitsFor.interaction_id} id={waitsFor.interaction_id} />
        </section>
      )}
      {isOwn && waitsFor === null && <SayMore id={id} label="Say more" />}
    </div>
  );
}

function Plan({ steps }: Pick<Conversation, "steps">) {
  if (steps.length === 0) return <p className="text-muted">It has no plan yet.</p>;
  const done = steps.filter((step) => step.done).length;
  return (
    <Panel title={`Plan: ${done} of ${plural(steps.length, "step")} done`}>
      <ol aria-label="Steps" className="list-decimal space-y-1 pl-5">
        {steps.map(({ text, done: isDone }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: steps have no other identity
          <li key={index} className={isDone ? "text-muted" : ""}>
            <Untrusted text={text} inline /> {isDone && <span className="text-ok">✓ done</span>}
          </li>
        ))}
      </ol>
    </Panel>
  );
}

function Said({ text }: { text: string }) {
  return (
    <p role="status" className="border-line bg-panel my-2 rounded-md border px-3 py-2">
      <Untrusted text={text} />
    </p>
  );
}

/** The server continues a conversation by itself once its question is answered; its owner need not wait for that. */
function Continue({ talk, onSaid }: { talk: Conversation; onSaid: (text: string) => void }) {
  const { id, waitsFor } = talk;
  const question = useQuery({
    ...interactionQuery(waitsFor?.interaction_id ?? ""),
    enabled: waitsFor !== null,
  });
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const isOpen = waitsFor !== null && question.data?.status === "open";
  async function go() {
    setBusy(true);
    setError(null);
    try {
      const answer = await continued(talk);
      onSaid(answer.text ?? answer.summary ?? "");
    } catch (problem) {
      setError(problem);
    }
    await queryClient.invalidateQueries({ queryKey: ["conversation", id] });
    setBusy(false);
  }
  return (
    <div>
      <Problem error={error} />
      <Button disabled={busy || isOpen} onClick={go}>
        {busy ? "Continuing…" : "Continue"}
      </Button>{" "}
      {isOpen && <span className="text-muted">It waits for the answer below.</span>}
    </div>
  );
}

function continued({ id, waitsFor }: Conversation) {
  if (waitsFor === null) return client.conversations.resume({ id });
  const answer = { id, interactionId: waitsFor.interaction_id, version: waitsFor.version };
  return waitsFor.type === "confirm"
    ? client.conversations.confirm(answer)
    : client.conversations.reply(answer);
}
