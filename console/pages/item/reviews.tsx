import type { Decision, Interaction } from "../../app/client.ts";
import { Badge } from "../../ui/badge.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";

type Verdict = Decision["techVerdict"];

interface Props {
  readonly decision: Decision;
  readonly question: Interaction | null;
}

/** The two doors as chips that open: what the technical and the business review said, and on which evidence. */
export function Reviews({ decision, question }: Props) {
  const { techVerdict, bizVerdict, machineVerdict, state } = decision;
  const machine = machineVerdict.validator === "" ? earlierOf(question) : machineVerdict;
  const waits = state === "pending_ml" ? "needs a person" : "not reached";
  return (
    <div className="flex flex-wrap gap-2">
      <Door name="1 Technical" verdict={techVerdict} none="not reviewed yet" />
      {machine !== undefined && (
        <Door name="2 Business" verdict={machine} none="not reviewed yet" />
      )}
      {(machine === undefined || bizVerdict.validator !== "") && (
        <Door
          name={machine === undefined ? "2 Business" : "People"}
          verdict={bizVerdict}
          none={waits}
        />
      )}
    </div>
  );
}

/**
 * Where earlier versions kept the machine's verdict. Only confirmations hold facts of the gate; what an agent writes into its
 * question is no review.
 */
function earlierOf(question: Interaction | null): Verdict | undefined {
  if (question?.type !== "confirm") return undefined;
  return question.metadata["machine"] as Verdict | undefined;
}

function Door({ name, verdict, none }: { name: string; verdict: Verdict; none: string }) {
  const { validator, approved, reason, score, severity, policyVersion } = verdict;
  if (validator === "") {
    return (
      <span>
        <Badge tone="warn">
          {name}: {none}
        </Badge>
      </span>
    );
  }
  return (
    <details className="max-w-full" open={!approved}>
      <summary className="inline-block min-h-6 list-none">
        <Badge tone={approved ? "ok" : "danger"}>
          {approved ? "✓" : "✗"} {name}: {approved ? "passed" : "no"} ▾
        </Badge>
      </summary>
      <div className="mt-1">
        {reason === "" ? (
          <p className="text-muted">No reason given.</p>
        ) : (
          <p>
            <Untrusted text={reason} />
          </p>
        )}
        <p className="text-muted text-xs">
          <Untrusted text={validator} inline />, score {score}
          {severity !== "" && `, severity ${severity}`}
          {policyVersion !== "" && `, policy ${policyVersion}`}
        </p>
      </div>
    </details>
  );
}
