import type { Interaction } from "../../app/client.ts";
import { plural } from "../../app/words.ts";
import type { Json } from "../../text/canonical.ts";
import { Badge } from "../../ui/badge.tsx";
import { JsonView } from "../../ui/json-view.tsx";
import { Fact, Facts, Panel } from "../../ui/panel.tsx";
import { Moment, Until } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";

/** Who may say yes, who has, and until when. */
export function People({ question }: { question: Interaction }) {
  const { requires, votes, chain, assignedTo, deadline, escalation, escalated } = question;
  const isOpen = question.status === "open";
  return (
    <Panel title="People">
      <Facts>
        {requires.map(({ name, count, from }) => {
          const given = votes.filter(({ factor }) => factor === name);
          return (
            <Fact key={name} name={requires.length === 1 ? "Needs" : name}>
              <Badge tone={given.length >= count ? "ok" : "warn"}>
                {given.length} of {count}
              </Badge>{" "}
              {from === undefined
                ? `${plural(count, "person", "people")}: anyone but the one who asked for it`
                : from.join(", ")}
              {given.length > 0 && ` · approved by ${given.map(({ by }) => by).join(", ")}`}
            </Fact>
          );
        })}
        <Fact name="Asked by">
          <Untrusted text={chain.join(" for ")} inline />{" "}
          <span className="text-muted">(none of them may decide)</span>
        </Fact>
        {assignedTo !== "" && (
          <Fact name="Assigned to">
            <Untrusted text={assignedTo} inline />
          </Fact>
        )}
        {isOpen && (
          <Fact name="Deadline">
            <Until at={deadline} /> <span className="text-muted">(then it is rejected)</span>
          </Fact>
        )}
        {isOpen && escalation !== undefined && !escalated && (
          <Fact name="Escalates">
            to <Untrusted text={escalation.to} inline /> at <Moment at={escalation.at} />
          </Fact>
        )}
        {question.type === "ask_user" && question.answer !== undefined && (
          <Fact name="Answer">
            <Answer value={question.answer as Json} />
          </Fact>
        )}
        {!isOpen && (
          <Fact name="Closed">
            {question.outcome ?? question.status}
            {question.answeredBy !== "" && (
              <>
                {" by "}
                <Untrusted text={question.answeredBy} inline />
              </>
            )}{" "}
            {question.reason !== "" && <Untrusted text={`“${question.reason}”`} />}
          </Fact>
        )}
      </Facts>
    </Panel>
  );
}

/** Programs may answer with any value; people answer with words. */
function Answer({ value }: { value: Json }) {
  if (typeof value === "object" && value !== null) return <JsonView value={value} label="Answer" />;
  return <Untrusted text={String(value)} className="font-medium" />;
}
