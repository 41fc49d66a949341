import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { client, type Operation, type RollbackReport } from "../../app/client.ts";
import { plural } from "../../app/words.ts";
import { Badge, type Tone } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogActions } from "../../ui/dialog.tsx";
import { Problem } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { canUndo } from "./session-page.tsx";

interface Props {
  readonly sessionId: string;
  readonly operations: readonly Operation[];
  /** Only this one; all of the session when left out. */
  readonly operationId?: string;
  readonly onClose: () => void;
}

/** Shows what would be undone, undoes it on request, and shows the report. */
export function RollbackDialog({ sessionId, operations, operationId, onClose }: Props) {
  const [report, setReport] = useState<RollbackReport>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const queries = useQueryClient();
  const chosen = operations
    .filter((one) => (operationId === undefined ? true : one.id === operationId))
    .filter((one) => one.status === "success" && one.effect !== "read" && one.undoOf === "")
    .toReversed();
  async function rollBack() {
    setBusy(true);
    setError(null);
    try {
      const only = operationId === undefined ? {} : { operationId };
      setReport(await client.sessions.rollback({ id: sessionId, ...only }));
    } catch (problem) {
      setError(problem);
    }
    // The page shows what the store says afterwards, also when something broke on the way.
    await queries.refetchQueries({ queryKey: ["operations", sessionId] }).catch(setError);
    setBusy(false);
  }
  if (report !== undefined) return <Report reports={[report]} onClose={onClose} />;
  return (
    <Dialog
      title={operationId === undefined ? "Roll back the session" : "Undo one call"}
      wide
      onClose={onClose}
    >
      <p className="mb-2">
        Newest first. Each undo is verified by reading back. A record that was changed since is left
        alone.
      </p>
      <ul className="border-line divide-line divide-y rounded-md border empty:hidden">
        {chosen.map((one) => (
          <li key={one.id} className="px-2 py-1.5">
            <Untrusted text={one.tool} mono inline className="font-semibold" />{" "}
            {canUndo(one) ? (
              <span>
                <Untrusted text={one.undo?.description || `by ${one.undo?.tool}`} inline />
              </span>
            ) : (
              <Badge tone="danger">cannot be undone, stays</Badge>
            )}
          </li>
        ))}
      </ul>
      {chosen.length === 0 && <p className="text-muted">There is nothing to undo.</p>}
      <Problem error={error} />
      <DialogActions onCancel={onClose}>
        <Button tone="danger" disabled={busy || chosen.length === 0} onClick={rollBack}>
          {busy ? "Undoing…" : `Undo ${plural(chosen.filter(canUndo).length, "call")}`}
        </Button>
      </DialogActions>
    </Dialog>
  );
}

const PARTS: readonly (readonly [keyof RollbackReport, Tone, string])[] = [
  ["failed", "danger", "failed"],
  ["conflicted", "danger", "changed since, not touched"],
  ["unfinished", "warn", "not finished"],
  ["pending", "warn", "waits for approval"],
  ["irreversible", "danger", "cannot be undone"],
  ["undone", "ok", "undone"],
  ["skipped", "plain", "nothing to do"],
];

/** What came of it: of one session, or of several below each other. */
export function Report({
  reports,
  onClose,
}: {
  reports: readonly RollbackReport[];
  onClose: () => void;
}) {
  return (
    <Dialog title="Rollback report" wide onClose={onClose}>
      <ul className="divide-line divide-y" aria-label="Report">
        {PARTS.flatMap(([part, tone, words]) =>
          reports
            .flatMap((report) => report[part])
            .map((entry) => (
              <li key={`${part}-${entry.operationId}`} className="py-1.5">
                <Badge tone={tone}>{words}</Badge>{" "}
                <Untrusted text={entry.tool} mono inline className="font-semibold" />{" "}
                <Untrusted text={entry.description} inline />
                {entry.reason !== "" && (
                  <div className="text-muted">
                    <Untrusted text={entry.reason} />
                  </div>
                )}
                {entry.guide !== "" && (
                  <div>
                    By hand: <Untrusted text={entry.guide} />
                  </div>
                )}
              </li>
            )),
        )}
      </ul>
      <DialogActions cancel="Close" onCancel={onClose} />
    </Dialog>
  );
}
