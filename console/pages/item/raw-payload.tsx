import type { Decision } from "../../app/client.ts";
import { parsed } from "../../app/facts-of.ts";
import { plural } from "../../app/words.ts";
import { TextView } from "../../ui/diff-view.tsx";
import { JsonView } from "../../ui/json-view.tsx";
import { Panel } from "../../ui/panel.tsx";

/** A payload staged by another platform: shown as it is, or as not inspectable. */
export function RawPayload({ decision }: { decision: Decision }) {
  const { raw, sourceTool } = decision;
  if (raw === null) return null;
  const value = raw.text === null ? undefined : parsed(raw.text);
  return (
    <Panel title={`Payload of ${sourceTool}, ${plural(raw.bytes, "byte")}`}>
      {raw.text === null ? (
        <p className="border-danger bg-danger-soft text-danger rounded-md border px-2 py-1">
          <strong>Cannot be inspected:</strong> these bytes are not text. An approval would cover
          content that no reviewer has seen.
        </p>
      ) : value === undefined || typeof value !== "object" ? (
        <TextView text={raw.text} label="Payload" />
      ) : (
        <JsonView value={value} label="Payload" />
      )}
    </Panel>
  );
}
