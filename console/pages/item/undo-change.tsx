import type { AnswerOf } from "sallyport/client";
import type { Json } from "../../text/canonical.ts";
import { isObject } from "../../text/json-diff.ts";
import { Badge, type Tone } from "../../ui/badge.tsx";
import { ChangeView, sentenceOf } from "../../ui/change-view.tsx";
import { JsonView } from "../../ui/json-view.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";

export type PlannedUndo = AnswerOf<"sessions.rollbackPlan">["items"][number];

export const UNDO_STATES: Readonly<Record<PlannedUndo["state"], readonly [Tone, string]>> = {
  ready: ["ok", "Will be undone"],
  changed: ["danger", "Changed since"],
  unfinished: ["warn", "Outcome unknown"],
  irreversible: ["danger", "Irreversible"],
  settled: ["plain", "Nothing to do"],
};

/** One line of a rollback: what was done, and what the undo changes as things are now. */
export function UndoChange({ step }: { step: PlannedUndo }) {
  const { title, tool, input, state, reason, guide, undoTitle, undoTool, undoInput, dryRun } = step;
  const [tone, words] = UNDO_STATES[state];
  return (
    <div className="min-w-0 space-y-1">
      <p className="flex flex-wrap items-center gap-2">
        <Untrusted text={title || tool} inline className="font-semibold" />
        <Badge tone={tone}>{words}</Badge>
      </p>
      {title === "" && <JsonView value={input as Json} label={`Input of ${tool}`} />}
      {undoTool !== "" && (
        <div className="space-y-1">
          <p className="text-muted">
            Undo: <Untrusted text={undoTitle || sentenceOf(dryRun as Json) || undoTool} inline />
          </p>
          {isObject(dryRun as Json) ? (
            <ChangeView dryRun={dryRun as Json} />
          ) : (
            <JsonView value={undoInput as Json} label={`Input of ${undoTool}`} />
          )}
        </div>
      )}
      {reason !== "" && (
        <p className={state === "settled" ? "text-muted" : "text-danger"}>
          <Untrusted text={reason} />
        </p>
      )}
      {guide !== "" && state !== "settled" && (
        <p>
          By hand: <Untrusted text={guide} />
        </p>
      )}
    </div>
  );
}
