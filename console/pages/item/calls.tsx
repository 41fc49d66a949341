import type { Decision, Preview, Tool } from "../../app/client.ts";
import type { Json } from "../../text/canonical.ts";
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
  return calls.map((call, index) => (
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
  ));
}
