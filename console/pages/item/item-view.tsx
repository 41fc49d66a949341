import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { forPeople } from "sallyport/client";
import type { Decision, Interaction, Preview } from "../../app/client.ts";
import { whyNotMine } from "../../app/facts-of.ts";
import {
  decisionQuery,
  interactionQuery,
  meQuery,
  operationsQuery,
  shownQuery,
  toolsQuery,
} from "../../app/queries.ts";
import { CHANGED, expiredAt } from "../../app/words.ts";
import { canonical, type Json } from "../../text/canonical.ts";
import { Badge, ClassBadge, StateBadge } from "../../ui/badge.tsx";
import { JsonDiff } from "../../ui/diff-view.tsx";
import { OpeningsOf } from "../../ui/openings.tsx";
import { Empty, Panel, Problem } from "../../ui/panel.tsx";
import { Ago, Until, useIsOver } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { AgentWords } from "./agent-words.tsx";
import { Binding, useBinding } from "./binding.tsx";
import { Calls } from "./calls.tsx";
import { ConfirmActions } from "./confirm-actions.tsx";
import { ItemTimeline } from "./item-timeline.tsx";
import { LostCall, LostForm } from "./lost-form.tsx";
import { Outcome } from "./outcome.tsx";
import { People } from "./people.tsx";
import { QuestionForm } from "./question-form.tsx";
import { Reviews } from "./reviews.tsx";

/** Everything about one question or decision; its id is the same where there are both. */
export function ItemView({ id }: { id: string }) {
  const question = useQuery(interactionQuery(id));
  const asked = question.data ?? null;
  const decisionId = asked === null ? id : asked.decisionId;
  const decision = useQuery({
    ...decisionQuery(decisionId),
    enabled: decisionId !== "" && question.isFetched,
  });
  const shown = useQuery({ ...shownQuery(id), enabled: asked?.type === "confirm" });
  const error = question.error ?? decision.error ?? shown.error;
  if (error !== null) return <Problem error={error} />;
  const isReady =
    question.isFetched &&
    (decisionId === "" || decision.isFetched) &&
    (asked?.type !== "confirm" || shown.isFetched);
  if (!isReady) return <Empty>Loading…</Empty>;
  if (asked === null && decision.data == null) return <Empty>This decision does not exist.</Empty>;
  return (
    // Another item begins with everything folded again.
    <OpeningsOf key={id}>
      <Item question={asked} decision={decision.data ?? null} preview={shown.data ?? null} />
    </OpeningsOf>
  );
}

interface Props {
  readonly question: Interaction | null;
  readonly decision: Decision | null;
  readonly preview: Preview | null;
}

function Item({ question, decision, preview }: Props) {
  const { data: me } = useQuery(meQuery);
  const { data: tools } = useQuery(toolsQuery);
  const bound = useBinding(question, decision, preview);
  const whyNot = question === null ? undefined : whyNotMine(question, me);
  // The outcome of a lost call can be reported at any time.
  const ends = question?.status === "open" && question.type !== "connection_lost";
  const isLate = useIsOver(ends ? question.deadline : "");
  const hasExpired = isLate || question?.outcome === "expired";
  const sessionId = question?.sessionId ?? decision?.sessionId ?? "";
  const { data: operations = [] } = useQuery(operationsQuery(sessionId));
  const own = operations.filter((one) => one.decisionId !== "" && one.decisionId === decision?.id);
  const since = [question?.createdAt, decision?.createdAt]
    .filter((at) => at !== undefined)
    .sort()[0];
  const subjects = [
    ...new Set([
      question?.id ?? "",
      decision?.id ?? "",
      question?.operationId ?? "",
      ...own.map((one) => one.id),
    ]),
  ].filter((subject) => subject !== "");
  return (
    <article className="flex min-h-full flex-col" data-item={question?.id ?? decision?.id}>
      <div className="flex-1 space-y-3 p-3">
        <Head question={question} decision={decision} preview={preview} sessionId={sessionId} />
        {bound === "no" && (
          <p
            role="alert"
            className="border-danger bg-danger-soft text-danger rounded-md border p-3 font-semibold"
          >
            This page does not show what the approval would be bound to. Do not approve it; tell
            your operator.
          </p>
        )}
        {question?.type === "ask_user" && (
          <Panel
            title={
              <>
                The agent asks <Badge tone="warn">agent says</Badge>
              </>
            }
          >
            <p className="text-base">
              <Untrusted text={question.displayText} />
            </p>
          </Panel>
        )}
        {question?.type === "connection_lost" && <LostCall question={question} />}
        {decision !== null && <Calls decision={decision} preview={preview} tools={tools} />}
        {decision !== null && <Outcome decision={decision} operations={own} />}
        {decision !== null && <Reviews decision={decision} question={question} />}
        {question !== null && <People question={question} />}
        {question !== null && preview !== null && (
          <Binding bound={bound} question={question} preview={preview} />
        )}
        <AgentWords question={question} decision={decision} />
        {since !== undefined && (
          <ItemTimeline sessionId={sessionId} since={since} subjects={subjects} />
        )}
      </div>
      {question !== null && hasExpired && (
        <p
          role="status"
          className="border-line bg-panel text-warn sticky bottom-0 z-10 border-t px-3 py-2 font-medium"
        >
          {expiredAt(question.deadline)}
        </p>
      )}
      {question?.status === "open" && !isLate && (
        <div
          className="border-line bg-panel sticky bottom-0 z-10 border-t px-3 py-2"
          data-actions=""
        >
          {whyNot !== undefined && <p className="text-warn mb-1">{whyNot}</p>}
          {question.type === "confirm" && decision !== null && preview !== null && (
            <ConfirmActions {...{ question, decision, preview, bound, whyNot }} />
          )}
          {question.type === "ask_user" && <QuestionForm question={question} whyNot={whyNot} />}
          {question.type === "connection_lost" && <LostForm question={question} whyNot={whyNot} />}
        </div>
      )}
    </article>
  );
}

function Head({ question, decision, preview, sessionId }: Props & { sessionId: string }) {
  const at = question?.createdAt ?? decision?.createdAt ?? "";
  return (
    <header className="space-y-1">
      <div className="flex flex-wrap items-center gap-2">
        <h1 className="min-w-0">
          <Untrusted text={titleOf(question, decision)} inline />
        </h1>
        {preview !== null && <ClassBadge safetyClass={preview.safetyClass} />}
        {decision !== null && <StateBadge state={decision.state} />}
        {question?.status === "open" && question.waitsFor === "agent" && (
          <Badge tone="accent">waits for the agent's reply</Badge>
        )}
      </div>
      <p className="text-muted flex flex-wrap gap-x-3">
        <span>
          <Untrusted
            text={question?.chain[0] ?? String(decision?.metadata["requester"] ?? "")}
            inline
          />
          , <Ago at={at} />
        </span>
        {question?.status === "open" && <Until at={question.deadline} />}
        <Link to="/sessions/$id" params={{ id: sessionId }}>
          session
        </Link>
      </p>
      <Kin question={question} decision={decision} preview={preview} />
    </header>
  );
}

/** What it replaces and what replaced it. Only the gate writes these facts, and only into confirmations. */
function Kin({ question, decision, preview }: Props) {
  const facts = question?.type === "confirm" ? question.metadata : {};
  const from = String(facts["editedFrom"] ?? "");
  const before = String(facts["cameBackFrom"] ?? "");
  const next = question?.supersededBy ?? "";
  return (
    <>
      {from !== "" && <EditedFrom id={from} decision={decision} />}
      {before !== "" && (
        <CameBack id={before} preview={preview} difference={String(facts["difference"] ?? "")} />
      )}
      {next !== "" && (
        <p>
          Replaced by <DecisionLink id={next}>another decision</DecisionLink>.
        </p>
      )}
    </>
  );
}

interface CameBackProps {
  readonly id: string;
  readonly preview: Preview | null;
  readonly difference: string;
}

/** It was approved and did not run, because its dry run, its target or its tool was no longer the same. */
function CameBack({ id, preview, difference }: CameBackProps) {
  const { data: earlier } = useQuery(shownQuery(id));
  const was = earlier?.dryRun as Json | undefined;
  const is = preview?.dryRun as Json | undefined;
  const hasDiff = was !== undefined && is !== undefined && canonical(was) !== canonical(is);
  return (
    <div className="border-warn bg-warn-soft text-warn space-y-1 rounded-md border px-2 py-1">
      <p>
        <strong>{CHANGED}.</strong> <DecisionLink id={id}>It was approved</DecisionLink>, did not
        run, and is asked again:
      </p>
      {hasDiff ? (
        <JsonDiff before={was} after={is} label="What was approved, and what would happen now" />
      ) : (
        <Untrusted text={forPeople(difference)} />
      )}
    </div>
  );
}

function DecisionLink({ id, children }: { id: string; children: string }) {
  return (
    <Link to="/decisions/$id" params={{ id }}>
      {children}
    </Link>
  );
}

function EditedFrom({ id, decision }: { id: string; decision: Decision | null }) {
  const { data: original } = useQuery(decisionQuery(id));
  const calls = decision?.calls ?? [];
  return (
    <div className="space-y-1">
      <p>
        Edited from <DecisionLink id={id}>what the agent asked for</DecisionLink>; the difference:
      </p>
      {original?.calls?.map(({ input, callId }, index) => {
        const now = calls[index];
        if (now === undefined) return null;
        return (
          <JsonDiff
            key={callId}
            before={input as Json}
            after={now.input as Json}
            label={`Asked and edited input of ${now.tool}`}
          />
        );
      })}
    </div>
  );
}

function titleOf(question: Interaction | null, decision: Decision | null): string {
  if (question?.type === "ask_user") return "A question";
  if (question?.type === "connection_lost") return "Did it happen?";
  const calls = decision?.calls ?? [];
  if (calls.length > 1) return `${calls.length} calls as a whole`;
  return calls[0]?.tool ?? decision?.sourceTool ?? "";
}
