import type { Decision, Interaction } from "../../app/client.ts";
import { Badge } from "../../ui/badge.tsx";
import { Panel } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";

type Verdict = Decision["techVerdict"];

/** The two doors: what the technical and the business review said, and on which evidence. */
export function Reviews({
  decision,
  question,
}: {
  decision: Decision;
  question: Interaction | null;
}) {
  const { techVerdict, bizVerdict, state } = decision;
  // Only confirmations hold facts of the gate; what an agent writes into its question is no review.
  const machine =
    question?.type === "confirm"
      ? (question.metadata["machine"] as Verdict | undefined)
      : undefined;
  const waits = state === "pending_ml" ? "passed by machine, waits for a person" : "not reached";
  return (
    <Panel title="Reviews">
      <div className="grid gap-3 sm:grid-cols-2">
        <Door name="1. Technical" verdict={techVerdict} none="not reviewed yet" />
        {machine !== undefined && (
          <Door name="2. Business, by machine" verdict={machine} none="not reviewed yet" />
        )}
        {(machine === undefined || bizVerdict.validator !== "") && (
          <Door
            name={machine === undefined ? "2. Business" : "2. Business, by people"}
            verdict={bizVerdict}
            none={waits}
          />
        )}
      </div>
    </Panel>
  );
}

function Door({ name, verdict, none }: { name: string; verdict: Verdict; none: string }) {
  const { validator, approved, reason, score, severity, policyVersion } = verdict;
  return (
    <div className="space-y-1">
      <h3 className="text-xs font-semibold">
        {name}{" "}
        {validator === "" ? (
          <Badge tone="warn">{none}</Badge>
        ) : (
          <Badge tone={approved ? "ok" : "danger"}>{approved ? "yes" : "no"}</Badge>
        )}
      </h3>
      {validator !== "" && (
        <>
          <p>
            {reason === "" ? (
              <span className="text-muted">no reason given</span>
            ) : (
              <Untrusted text={reason} />
            )}
          </p>
          <p className="text-muted text-xs">
            <Untrusted text={validator} inline />, score {score}
            {severity !== "" && `, severity ${severity}`}
            {policyVersion !== "" && `, policy ${policyVersion}`}
          </p>
        </>
      )}
    </div>
  );
}
