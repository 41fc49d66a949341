import { queryOptions, useQuery } from "@tanstack/react-query";
import { useEffect, useId, useState } from "react";
import {
  client,
  type Interaction,
  type Me,
  type Operation,
  queryClient,
  type RollbackReport,
} from "../../app/client.ts";
import { tell } from "../../app/notice.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogActions } from "../../ui/dialog.tsx";
import { Problem } from "../../ui/panel.tsx";
import { type PlannedUndo, UndoChange } from "./undo-change.tsx";

interface Props {
  readonly sessionId: string;
  readonly operationId: string;
  readonly onClose: () => void;
}

/** The session of a sub-agent: what it did is undone together with what was done below it. */
export function isDelegation(sessionId: string): boolean {
  return sessionId.startsWith("dlg-");
}

/** What a rollback would do, read anew each time: the world may have moved. */
export const undoPlanQuery = (sessionId: string, operationId?: string) =>
  queryOptions({
    queryKey: ["undo-plan", sessionId, operationId ?? ""],
    queryFn: async ({ signal }): Promise<readonly PlannedUndo[]> => {
      if (isDelegation(sessionId)) {
        const { items } = await client.delegations.rollbackPlan({ id: sessionId }, { signal });
        return operationId === undefined
          ? items
          : items.filter((one) => one.operationId === operationId);
      }
      const part = operationId === undefined ? {} : { operationId };
      return (await client.sessions.rollbackPlan({ id: sessionId, ...part }, { signal })).items;
    },
    staleTime: 0,
    gcTime: 0,
  });

/** One call: shows what undoing it changes, then does it. */
export function UndoDialog({ sessionId, operationId, onClose }: Props) {
  const plan = useQuery(undoPlanQuery(sessionId, operationId));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const step = plan.data?.[0];
  const ready = step?.state === "ready" && !busy;
  const button = useId();
  // Once the plan is there, Enter undoes.
  useEffect(() => {
    if (ready) document.getElementById(button)?.focus();
  }, [ready, button]);
  async function undo() {
    if (!ready) return;
    setBusy(true);
    setError(null);
    try {
      tell(noticeOf(await client.operations.undo({ id: operationId })));
      onClose();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
    await queryClient.invalidateQueries({ queryKey: ["operations", sessionId] });
  }
  return (
    <Dialog title="Undo this call?" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          undo().catch(setError);
        }}
      >
        <Problem error={plan.error} />
        {step === undefined && plan.error === null && <p className="text-muted">Loading…</p>}
        {step !== undefined && <UndoChange step={step} />}
        <Problem error={error} />
        <DialogActions onCancel={onClose}>
          <Button id={button} type="submit" tone="danger" disabled={!ready}>
            {busy ? "Undoing…" : "Undo"}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}

const OWN_UNDO_MS = 3_600_000;

/** Operators any call; a reviewer what they approved themselves in the last hour. The server checks again. */
export function mayUndo(
  { updatedAt }: Operation,
  question: Interaction | null,
  me: Me | undefined,
): boolean {
  if (me === undefined) return false;
  if (me.roles.includes("operator")) return true;
  const isRecent = Date.now() - Date.parse(updatedAt) < OWN_UNDO_MS;
  const isOwn = question?.votes.some(({ by }) => by === me.subject) === true;
  return me.roles.includes("reviewer") && isOwn && isRecent;
}

export function canUndo({ status, effect, undo, undoOf }: Operation): boolean {
  return (
    status === "success" &&
    effect !== "read" &&
    undo !== undefined &&
    !undo.irreversible &&
    undoOf === ""
  );
}

function noticeOf(report: RollbackReport) {
  const [undone] = report.undone;
  if (undone !== undefined) {
    return { text: `Undone. ${undone.description}`.trim(), tone: "ok", id: "" } as const;
  }
  const [pending] = report.pending;
  if (pending !== undefined) {
    const text = "Not undone yet: the undo itself needs an approval.";
    return { text, tone: "warn", id: pending.decisionId } as const;
  }
  const [first] = Object.values(report).flat();
  return { text: `Not undone. ${first?.reason ?? ""}`.trim(), tone: "danger", id: "" } as const;
}
