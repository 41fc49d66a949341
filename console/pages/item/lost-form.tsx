import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { forPeople } from "sallyport/client";
import { useAct } from "../../app/act.ts";
import { client, type Interaction } from "../../app/client.ts";
import { parsed } from "../../app/facts-of.ts";
import { tell } from "../../app/notice.ts";
import { operationQuery } from "../../app/queries.ts";
import { StateBadge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { JsonView } from "../../ui/json-view.tsx";
import { Fact, Facts, Panel, Problem } from "../../ui/panel.tsx";
import { Moment } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { PassOn } from "./pass-on.tsx";
import { ReasonDialog } from "./reason-dialog.tsx";

/** What was sent and never answered. */
export function LostCall({ question }: { question: Interaction }) {
  const { data: operation, error } = useQuery(operationQuery(question.operationId));
  const input = operation == null ? undefined : parsed(operation.input);
  return (
    <Panel title="Outcome unknown">
      <Problem error={error} />
      {operation != null && (
        <div className="space-y-3">
          <Facts>
            <Fact name="Tool">
              <Untrusted text={operation.tool} mono inline />
            </Fact>
            <Fact name="State">
              <StateBadge state={operation.status} />
            </Fact>
            <Fact name="Started">
              <Moment at={operation.createdAt} />, attempt {operation.attempt}
            </Fact>
            {operation.decisionId !== "" && (
              <Fact name="Allowed by">
                <Link to="/decisions/$id" params={{ id: operation.decisionId }}>
                  this decision
                </Link>
              </Fact>
            )}
            <Fact name="Why">
              <Untrusted
                text={operation.error === "" ? "the connection ended" : forPeople(operation.error)}
              />
            </Fact>
          </Facts>
          {input !== undefined && <JsonView value={input} label={`Input of ${operation.tool}`} />}
        </div>
      )}
    </Panel>
  );
}

/** No blind retry: a person checks the target first and reports what they found. */
export function LostForm({
  question,
  whyNot,
}: {
  question: Interaction;
  whyNot: string | undefined;
}) {
  const { id, hash } = question;
  const [open, setOpen] = useState<"" | "happened" | "repeat" | "give_up">("");
  const act = useAct(id);
  const blocked = whyNot !== undefined || act.busy;
  async function settle(reason: string) {
    const done = await act.run(async () => {
      const found =
        open === "happened"
          ? { happened: true }
          : {
              happened: false,
              otherwise: open === "repeat" ? ("repeat" as const) : ("give_up" as const),
            };
      const { answer, text } = await client.interactions.settle({ id, hash, reason, ...found });
      tell({
        text: `${SETTLED[answer] ?? "Recorded."} ${forPeople(text)}`,
        tone: answer === "done" ? "ok" : "warn",
        id,
      });
    });
    if (done) setOpen("");
  }
  return (
    <div className="space-y-2">
      <Problem error={act.error} />
      <p className="font-medium">Outcome unknown: check the target, then say what you found.</p>
      <div className="flex flex-wrap gap-2">
        <Button tone="primary" disabled={blocked} onClick={() => setOpen("happened")}>
          It happened
        </Button>
        <Button disabled={blocked} onClick={() => setOpen("repeat")}>
          It didn't happen, run it again
        </Button>
        <Button tone="danger" disabled={blocked} onClick={() => setOpen("give_up")}>
          It didn't happen, close it
        </Button>
        <PassOn question={question} />
      </div>
      {open !== "" && (
        <ReasonDialog
          title={TITLES[open]}
          label="How do you know? (recorded in the audit log)"
          submit="Submit"
          busy={act.busy}
          error={act.error}
          onSubmit={settle}
          onClose={() => setOpen("")}
        />
      )}
    </div>
  );
}

const TITLES = {
  happened: "It happened",
  repeat: "It didn't happen, run it again",
  give_up: "It didn't happen, close it",
} as const;

const SETTLED: Readonly<Record<string, string>> = {
  done: "Recorded as done.",
  failed: "Closed.",
  pending: "Recorded.",
  unknown: "Still unknown.",
};
