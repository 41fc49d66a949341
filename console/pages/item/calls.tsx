import type { Decision, Preview, Tool } from "../../app/client.ts";
import type { Json } from "../../text/canonical.ts";
import { Amount, type Presented, presentedIn } from "../../ui/change-view.tsx";
import { Panel } from "../../ui/panel.tsx";
import { CallView } from "./call-view.tsx";
import { RawPayload } from "./raw-payload.tsx";

interface CallsProps {
  readonly decision: Decision;
  readonly preview: Preview | null;
  readonly tools: readonly Tool[] | undefined;
}

/** Every call of a decision, or the payload staged by another platform. */
export function Calls({ decision, preview, tools }: CallsProps) {
  const { calls } = decision;
  if (calls === null) return <RawPayload decision={decision} />;
  const runs = Array.isArray(preview?.dryRun) ? (preview.dryRun as readonly Json[]) : [];
  const total = calls.length > 1 ? totalOf(runs) : undefined;
  return (
    <>
      {total !== undefined && (
        <Panel title={`All ${calls.length} calls together`}>
          <Amount amount={total} />
        </Panel>
      )}
      {calls.map((call, index) => (
        <CallView
          key={`${call.callId}-${call.tool}`}
          call={call}
          dryRun={runs[index]}
          targets={decision.targets[index]}
          tool={tools?.find(
            ({ name, metadata }) => name === call.tool || metadata.aliases.includes(call.tool),
          )}
          place={calls.length === 1 ? "" : `${index + 1} of ${calls.length}`}
        />
      ))}
    </>
  );
}

/** Only where every call says how much, and in the same unit. */
function totalOf(runs: readonly Json[]): Presented["amount"] {
  const amounts = runs.map((run) => presentedIn(run).amount);
  const [first] = amounts;
  if (first === undefined || amounts.some((one) => one?.unit !== first.unit)) return undefined;
  const value = amounts.reduce((sum, one) => sum + (one?.value ?? 0), 0);
  return { value, unit: first.unit };
}
