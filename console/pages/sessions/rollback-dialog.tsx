import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { client, type RollbackReport } from "../../app/client.ts";
import { plural } from "../../app/words.ts";
import { Badge, type Tone } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogActions } from "../../ui/dialog.tsx";
import { Problem } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { UndoChange } from "../item/undo-change.tsx";
import { isDelegation, undoPlanQuery } from "../item/undo-dialog.tsx";

interface Props {
  readonly sessionId: string;
  /** Only this one; all of the session when left out. */
  readonly operationId?: string;
  readonly onClose: () => void;
}

/** The plan as things are now, newest first, with a choice for each row; then the report. */
export function RollbackDialog({ sessionId, operationId, onClose }: Props) {
  const [reports, setReports] = useState<readonly RollbackReport[]>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const queries = useQueryClient();
  const plan = useQuery(undoPlanQuery(sessionId, operationId));
  const rows = (plan.data ?? []).filter(({ state }) => state !== "settled");
  const chosen = rows.filter((row) => row.state === "ready" && !left.has(row.operationId));
  async function rollBack() {
    setBusy(true);
    setError(null);
    try {
      const only = rows.filter((row) => !left.has(row.operationId)).map((row) => row.operationId);
      setReports(await rolledBack(sessionId, only));
    } catch (problem) {
      setError(problem);
    }
    // The page shows what the store says afterwards, also when something broke on the way.
    await queries.invalidateQueries({ queryKey: ["operations"] }).catch(setError);
    await queries.invalidateQueries({ queryKey: ["calls"] }).catch(setError);
    setBusy(false);
  }
  if (reports !== undefined) return <Report reports={reports} onClose={onClose} />;
  const toggle = (id: string) => {
    const next = new Set(left);
    if (!next.delete(id)) next.add(id);
    setLeft(next);
  };
  return (
    <Dialog title={titleOf(sessionId, operationId)} wide onClose={onClose}>
      <p className="mb-2">
        This is what would change now, newest first. Each undo is verified by reading back. What
        others changed since is left alone. Unchecked calls stay as they are.
      </p>
      <Problem error={plan.error} />
      {plan.data === undefined && plan.error === null && <p className="text-muted">Loading…</p>}
      <ul
        aria-label="Plan"
        className="border-line divide-line divide-y rounded-md border empty:hidden"
      >
        {rows.map((row) => (
          <li key={row.operationId} className="flex gap-2 px-2 py-1.5">
            <input
              type="checkbox"
              aria-label={`Undo ${row.title || row.tool}`}
              className="mt-1 size-4 shrink-0"
              disabled={row.state !== "ready"}
              checked={row.state === "ready" && !left.has(row.operationId)}
              onChange={() => toggle(row.operationId)}
            />
            <UndoChange step={row} />
          </li>
        ))}
      </ul>
      {plan.data !== undefined && rows.length === 0 && (
        <p className="text-muted">There is nothing to undo.</p>
      )}
      <Problem error={error} />
      <DialogActions onCancel={onClose}>
        <Button tone="danger" disabled={busy || chosen.length === 0} onClick={rollBack}>
          {busy ? "Undoing…" : `Undo ${plural(chosen.length, "call")}`}
        </Button>
      </DialogActions>
    </Dialog>
  );
}

function titleOf(sessionId: string, operationId: string | undefined): string {
  if (operationId !== undefined) return "Undo one call";
  return isDelegation(sessionId)
    ? "Undo the work of this sub-agent and those below it"
    : "Undo run";
}

/** Of a sub-agent together with those below it, each with a report of its own. */
async function rolledBack(id: string, only: string[]): Promise<readonly RollbackReport[]> {
  if (!isDelegation(id)) return [await client.sessions.rollback({ id, only })];
  const { items } = await client.delegations.rollback({ id, only });
  return items.map(({ report }) => report);
}

const PARTS: readonly (readonly [keyof RollbackReport, Tone, string])[] = [
  ["failed", "danger", "failed"],
  ["conflicted", "danger", "changed since, not touched"],
  ["unfinished", "warn", "not finished"],
  ["pending", "warn", "waits for approval"],
  ["irreversible", "danger", "irreversible"],
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
