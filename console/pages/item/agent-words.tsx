import type { Decision, Interaction } from "../../app/client.ts";
import type { Json } from "../../text/canonical.ts";
import { Badge } from "../../ui/badge.tsx";
import { JsonView } from "../../ui/json-view.tsx";
import { Panel } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { CounterChecks } from "./counter-checks.tsx";

/** Where the gate keeps what an agent brought up against its own calls. */
const COUNTER_CHECKS = "sallyport.counterfactual.deliverable";

/** What the gate writes into a decision that is made of calls; everything else there comes from the one who staged it. */
const OURS = new Set([
  "requester",
  "chain",
  "owner",
  "messageId",
  "keys",
  "facts",
  "editors",
  "claim",
  COUNTER_CHECKS,
]);

interface Props {
  readonly question: Interaction | null;
  readonly decision: Decision | null;
}

/** Below the facts and labelled, because it proves nothing (T14): remarks between reviewers and the agent, and claims. */
export function AgentWords({ question, decision }: Props) {
  const remarks = question?.remarks ?? [];
  const claims = Object.fromEntries(
    Object.entries(decision?.metadata ?? {}).filter(
      ([key]) => decision?.calls === null || !OURS.has(key),
    ),
  ) as Record<string, Json>;
  const asked = Object.fromEntries(
    Object.entries(question?.type === "ask_user" ? question.metadata : {}),
  ) as Record<string, Json>;
  const said = { ...claims, ...asked };
  const checks = decision?.calls === null ? undefined : decision?.metadata[COUNTER_CHECKS];
  if (remarks.length === 0 && Object.keys(said).length === 0 && checks === undefined) return null;
  return (
    <Panel tone="quiet" title="From the agent (unverified)">
      <div className="space-y-2">
        {checks !== undefined && <CounterChecks value={checks as Json} />}
        {Object.keys(said).length > 0 && (
          <div>
            <p className="text-muted mb-1 text-xs">The agent says:</p>
            <JsonView value={said} label="What the agent says" />
          </div>
        )}
        {remarks.map(({ by, text }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a talk only grows at its end
          <div key={index}>
            <p className="text-muted text-xs">
              <Untrusted text={by} inline />{" "}
              {question?.chain.includes(by) && <Badge tone="warn">agent says</Badge>}
            </p>
            <Untrusted text={text} />
          </div>
        ))}
      </div>
    </Panel>
  );
}
