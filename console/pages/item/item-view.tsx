import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { forPeople } from "sallyport/client";
import type { Decision, Interaction, Operation, Preview } from "../../app/client.ts";
import { whyNotMine } from "../../app/facts-of.ts";
import { useKeys } from "../../app/keys.ts";
import {
  decisionQuery,
  interactionQuery,
  meQuery,
  operationsQuery,
  shownQuery,
  toolsQuery,
} from "../../app/queries.ts";
import { CHANGED, expiredAt, plural } from "../../app/words.ts";
import { canonical, type Json } from "../../text/canonical.ts";
import { isObject } from "../../text/json-diff.ts";
import { Badge, ClassBadge, StateBadge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { sentenceOf } from "../../ui/change-view.tsx";
import { Changed } from "../../ui/changed.tsx";
import { OpeningsOf } from "../../ui/openings.tsx";
import { Empty, Fact, Facts, Panel, Problem } from "../../ui/panel.tsx";
import { Ago, Due, useIsOver } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { AgentWords } from "./agent-words.tsx";
import { Binding, useBinding } from "./binding.tsx";
import { UndoLine } from "./call-view.tsx";
import { Calls } from "./calls.tsx";
import { ConfirmActions } from "./confirm-actions.tsx";
import { ItemTimeline } from "./item-timeline.tsx";
import { LostCall, LostForm } from "./lost-form.tsx";
import { Outcome } from "./outcome.tsx";
import { People } from "./people.tsx";
import { QuestionForm } from "./question-form.tsx";
import { Reviews } from "./reviews.tsx";
import { canUndo, mayUndo, UndoDialog } from "./undo-dialog.tsx";

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
  const [ran] = own.filter(canUndo);
  const calls = decision?.calls ?? [];
  return (
    <article className="flex min-h-full flex-col" data-item={question?.id ?? decision?.id}>
      <div className="flex-1 space-y-3 p-3">
        <Head question={question} decision={decision} preview={preview} sessionId={sessionId}>
          {ran !== undefined && <UndoButton operation={ran} may={mayUndo(ran, question, me)} />}
        </Head>
        {bound === "no" && (
          <p
            role="alert"
            className="border-danger bg-danger-soft text-danger rounded-md border p-3 font-semibold"
          >
            This page does not show what the approval would be bound to. Do not approve it; tell
            your operator.
          </p>
        )}
        <Kin question={question} decision={decision} preview={preview} />
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
        <Warnings preview={preview} />
        {decision !== null && <Outcome decision={decision} operations={own} />}
        {decision !== null && <Calls decision={decision} preview={preview} tools={tools} />}
        {decision !== null && (
          <Panel>
            <Facts>
              {question?.type === "confirm" && question.status === "open" && (
                <Fact name="Why you">
                  <WhyAsked question={question} />
                </Fact>
              )}
              <Fact name="Checks">
                <Reviews decision={decision} question={question} />
              </Fact>
              {calls.length > 0 && (
                <Fact name="Undo">
                  <UndoLine calls={calls} tools={tools} />
                </Fact>
              )}
              {question !== null && preview !== null && (
                <Fact name="Proof">
                  <Binding bound={bound} question={question} preview={preview} />
                </Fact>
              )}
            </Facts>
          </Panel>
        )}
        <AgentWords question={question} decision={decision} />
        {question !== null && <People question={question} />}
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
            <ConfirmActions
              {...{ question, decision, preview, bound, whyNot }}
              sentence={titleOf(question, decision, preview)}
            />
          )}
          {question.type === "ask_user" && <QuestionForm question={question} whyNot={whyNot} />}
          {question.type === "connection_lost" && <LostForm question={question} whyNot={whyNot} />}
        </div>
      )}
    </article>
  );
}

/** Why a person was asked, as the gate recorded it. Only confirmations hold facts of the gate. */
function WhyAsked({ question }: { question: Interaction }) {
  const said = question.metadata["askedBecause"];
  const reasons = Array.isArray(said) ? said.map(String) : [];
  const [{ count = 1, from } = {}] = question.requires;
  const who = from === undefined ? "anyone but the one who asked for it" : from.join(", ");
  const needs = `Needs ${plural(count, "approval")}, from ${who}.`;
  return <Untrusted text={[...reasons, needs].join(" ")} />;
}

/** What is wrong with a tool by its own declaration. The gate says it, and it is part of what is approved. */
function Warnings({ preview }: Pick<Props, "preview">) {
  const warnings = preview?.warnings ?? [];
  if (warnings.length === 0) return null;
  return (
    <ul
      aria-label="Warnings"
      className="border-warn bg-warn-soft text-warn rounded-md border px-3 py-2"
    >
      {warnings.map((text) => (
        <li key={text}>
          <strong>Careful:</strong> <Untrusted text={forPeople(text)} inline />
        </li>
      ))}
    </ul>
  );
}

function UndoButton({ operation, may }: { operation: Operation; may: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const { id: operationId, sessionId } = operation;
  useKeys({ z: may ? () => setOpen(true) : undefined });
  if (!may) return <span className="text-muted text-xs">An operator can undo this.</span>;
  return (
    <>
      <Button hotkey="z" onClick={() => setOpen(true)}>
        Undo
      </Button>
      {isOpen && <UndoDialog {...{ operationId, sessionId }} onClose={() => setOpen(false)} />}
    </>
  );
}

interface HeadProps extends Props {
  readonly sessionId: string;
  readonly children: ReactNode;
}

function Head({ question, decision, preview, sessionId, children }: HeadProps) {
  const at = question?.createdAt ?? decision?.createdAt ?? "";
  const owner = String(decision?.metadata["owner"] ?? "");
  return (
    <header className="space-y-1">
      <div className="flex flex-wrap items-center gap-2">
        <h1 className="min-w-0">
          <Untrusted text={titleOf(question, decision, preview)} inline />
        </h1>
        {preview !== null && <ClassBadge safetyClass={preview.safetyClass} />}
        {decision !== null && <StateBadge state={decision.state} />}
        {question?.status === "open" && question.waitsFor === "agent" && (
          <Badge tone="accent">waiting for the agent's reply</Badge>
        )}
        {children}
      </div>
      <p className="text-muted flex flex-wrap gap-x-3">
        <span>
          <Untrusted
            text={question?.chain[0] ?? String(decision?.metadata["requester"] ?? "")}
            inline
          />
          {owner !== "" && (
            <>
              {" for "}
              <Untrusted text={owner} inline />
            </>
          )}
          , <Ago at={at} />
        </span>
        {question?.status === "open" && <Due at={question.deadline} />}
        <Link to="/sessions/$id" params={{ id: sessionId }}>
          Run
        </Link>
        {decision?.calls?.length === 1 && (
          <Untrusted text={decision.calls[0]?.tool ?? ""} mono inline className="text-xs" />
        )}
      </p>
      <DecidedBy question={question} />
    </header>
  );
}

/** Who was first, while another person looks at it. */
function DecidedBy({ question }: { question: Interaction | null }) {
  if (question === null || question.status === "open" || question.answeredBy === "") return null;
  return (
    <p role="status" className="text-muted">
      <Untrusted text={question.answeredBy} inline /> {question.outcome ?? "closed"} this{" "}
      <Ago at={question.updatedAt} />
      {question.reason !== "" && (
        <>
          {": "}
          <Untrusted text={question.reason} inline />
        </>
      )}
    </p>
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
  const was = seenOf(earlier?.dryRun as Json | undefined);
  const is = seenOf(preview?.dryRun as Json | undefined);
  const hasDiff = was !== undefined && is !== undefined && canonical(was) !== canonical(is);
  return (
    <Changed
      title={
        <>
          <strong>{CHANGED}.</strong> <DecisionLink id={id}>The approval</DecisionLink> did not run
          anything. Approve this instead, or reject it.
        </>
      }
      before={was ?? null}
      after={is ?? null}
      label="What was approved, and what would happen now"
      heads={["You saw", "Now"]}
    >
      {!hasDiff && <Untrusted text={forPeople(difference)} />}
    </Changed>
  );
}

/** A single call by itself, and without a long text where its facts say the same. */
function seenOf(dryRun: Json | undefined): Json | undefined {
  const one = Array.isArray(dryRun) && dryRun.length === 1 ? (dryRun[0] as Json) : dryRun;
  if (!isObject(one) || one["summary"] === undefined) return one;
  const { preview: _preview, ...rest } = one;
  return rest;
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
  return original?.calls?.map(({ input, callId }, index) => {
    const now = calls[index];
    if (now === undefined || canonical(input as Json) === canonical(now.input as Json)) return null;
    return (
      <Changed
        key={callId}
        title={
          <>
            Edited from <DecisionLink id={id}>what the agent asked for</DecisionLink>.
          </>
        }
        before={input as Json}
        after={now.input as Json}
        label={`Asked and edited input of ${now.tool}`}
        heads={["Asked for", "Edited"]}
      />
    );
  });
}

function titleOf(
  question: Interaction | null,
  decision: Decision | null,
  preview: Preview | null,
): string {
  if (question?.type === "ask_user") return "The agent asks you";
  if (question?.type === "connection_lost") return "Outcome unknown";
  const calls = decision?.calls ?? [];
  if (calls.length > 1) return `${calls.length} calls as a whole`;
  const runs = (preview?.dryRun ?? null) as Json;
  const sentence = Array.isArray(runs) ? sentenceOf(runs[0] as Json) : "";
  return sentence || (calls[0]?.tool ?? decision?.sourceTool ?? "");
}
