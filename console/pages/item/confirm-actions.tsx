import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { forPeople } from "sallyport/client";
import { useAct } from "../../app/act.ts";
import { client, type Decision, type Interaction, type Preview } from "../../app/client.ts";
import { useKeys } from "../../app/keys.ts";
import { tell } from "../../app/notice.ts";
import { CHANGED, plural } from "../../app/words.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogActions } from "../../ui/dialog.tsx";
import { useOpenings } from "../../ui/openings.tsx";
import { Problem } from "../../ui/panel.tsx";
import type { Bound } from "./binding.tsx";
import { EditDialog } from "./edit-dialog.tsx";
import { PassOn } from "./pass-on.tsx";
import { ReasonDialog } from "./reason-dialog.tsx";
import { useIsSeen } from "./use-is-seen.ts";

interface Props {
  readonly question: Interaction;
  readonly decision: Decision;
  readonly preview: Preview;
  readonly bound: Bound;
  /** Why this person cannot decide. */
  readonly whyNot: string | undefined;
}

/** What a person can do with a confirmation: approve, reject, edit, ask back, reassign. */
export function ConfirmActions({ question, decision, preview, bound, whyNot }: Props) {
  const { id, hash } = question;
  const [open, setOpen] = useState<"" | "sure" | "reject" | "edit">("");
  const act = useAct(id);
  const { folded, bytes, open: openAll } = useOpenings();
  const navigate = useNavigate();
  const isFinal = preview.safetyClass === "irreversible";
  const isSeen = useIsSeen();
  const mayApprove = isSeen && whyNot === undefined && folded === 0 && bound === "yes" && !act.busy;

  async function approve() {
    setOpen("");
    await act.run(async () => {
      const { answers, missing } = await client.interactions.approve({ id, hash });
      tell(noticeOf(id, answers, missing.length));
    });
  }
  async function reject(reason: string) {
    const done = await act.run(async () => {
      await client.interactions.reject({ id, hash, reason });
      tell({ text: "Rejected. Nothing was executed.", tone: "warn", id });
    });
    if (done) setOpen("");
  }
  const ask = () => (isFinal ? setOpen("sure") : approve());
  useKeys({
    a: mayApprove ? ask : folded > 0 ? openAll : undefined,
    r: whyNot === undefined ? () => setOpen("reject") : undefined,
    e: whyNot === undefined && decision.calls !== null ? () => setOpen("edit") : undefined,
  });
  return (
    <div>
      <Problem error={act.error} />
      {folded > 0 && (
        <p className="text-warn mb-2 flex flex-wrap items-center gap-2">
          {plural(bytes, "more byte")} not opened yet: open everything before approving.
          <Button onClick={openAll}>Show everything</Button>
        </p>
      )}
      {(bound === "unknown" || bound === "no") && (
        <p className="text-danger mb-2 font-medium">
          {bound === "no"
            ? "This page does not show what an approval would be bound to, so it cannot be approved here."
            : "The browser could not verify that this page shows what would run, so it cannot be approved here."}
        </p>
      )}
      <div className="flex flex-wrap items-center gap-2">
        <Button tone="primary" hotkey="a" disabled={!mayApprove} onClick={ask}>
          {act.busy ? "Sending…" : "Approve"}
        </Button>
        <Button
          tone="danger"
          hotkey="r"
          disabled={whyNot !== undefined || act.busy}
          onClick={() => setOpen("reject")}
        >
          Reject
        </Button>
        {decision.calls !== null && (
          <Button
            hotkey="e"
            disabled={whyNot !== undefined || act.busy}
            onClick={() => setOpen("edit")}
          >
            Edit
          </Button>
        )}
        <PassOn question={question} />
      </div>
      {open === "sure" && (
        <Dialog title="This cannot be undone" onClose={() => setOpen("")}>
          <p className="mb-4">
            {plural(decision.calls?.length ?? 1, "call")} would run as soon as you say yes, and
            there is no way to undo it.
          </p>
          <DialogActions onCancel={() => setOpen("")}>
            <Button tone="primary" autoFocus disabled={!mayApprove} onClick={approve}>
              Approve (final)
            </Button>
          </DialogActions>
        </Dialog>
      )}
      {open === "reject" && (
        <ReasonDialog
          title="Reject"
          label="Reason (shown to the agent)"
          submit="Reject"
          tone="danger"
          busy={act.busy}
          error={act.error}
          onSubmit={reject}
          onClose={() => setOpen("")}
        />
      )}
      {open === "edit" && (
        <EditDialog
          question={question}
          decision={decision}
          onClose={() => setOpen("")}
          onEdited={(next) => {
            setOpen("");
            navigate({ to: "/inbox/$id", params: { id: next } }).catch(() => {});
          }}
        />
      )}
    </div>
  );
}

type Answers = Awaited<ReturnType<typeof client.interactions.approve>>["answers"];

function noticeOf(id: string, answers: Answers, missing: number) {
  if (missing > 0) {
    return { text: "Your approval is recorded; others must approve too.", tone: "ok", id } as const;
  }
  const bad = answers.find(({ answer }) => answer !== "done");
  if (bad === undefined) return { text: "Approved and executed.", tone: "ok", id } as const;
  if (bad.answer === "pending") {
    // Kept during a stop, under the same decision, or asked again under a new one: nothing ran, and nothing failed.
    const isKept = bad.decisionId === id;
    const text = isKept ? forPeople(bad.text) : `Not run. ${CHANGED}; it needs a new approval.`;
    return { text, tone: "warn", id } as const;
  }
  return { text: `Approved, but: ${forPeople(bad.text)}`, tone: "danger", id } as const;
}
