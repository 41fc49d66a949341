import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { forPeople } from "sallyport/client";
import { useAct } from "../../app/act.ts";
import { client, type Decision, type Interaction, type Preview } from "../../app/client.ts";
import { useKeys } from "../../app/keys.ts";
import { readBack } from "../../app/live.ts";
import { movingOnTo, onceOf, useIsMeant } from "../../app/moved-on.ts";
import { type Notice, tell } from "../../app/notice.ts";
import { CHANGED, plural } from "../../app/words.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogActions } from "../../ui/dialog.tsx";
import { useOpenings } from "../../ui/openings.tsx";
import { Problem } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import type { Bound } from "./binding.tsx";
import { EditDialog } from "./edit-dialog.tsx";
import { PassOn } from "./pass-on.tsx";
import { ReasonDialog } from "./reason-dialog.tsx";

interface Props {
  readonly question: Interaction;
  readonly decision: Decision;
  readonly preview: Preview;
  readonly bound: Bound;
  /** Why this person cannot decide. */
  readonly whyNot: string | undefined;
  /** What would run, in a sentence. */
  readonly sentence: string;
}

/** What a person can do with a confirmation: approve, reject, edit, ask back, reassign. */
export function ConfirmActions(props: Props) {
  const { question, decision, preview, bound, whyNot, sentence } = props;
  const { id, hash, sessionId } = question;
  const [open, setOpen] = useState<"" | "sure" | "reject" | "edit">("");
  const act = useAct(id);
  const { folded, bytes, open: openAll } = useOpenings();
  const navigate = useNavigate();
  const isFinal = preview.safetyClass === "irreversible";
  const isMeant = useIsMeant(id);
  const mayApprove = whyNot === undefined && folded === 0 && bound === "yes" && !act.busy;

  async function approve() {
    setOpen("");
    await act.run(async () => {
      const { answers, missing } = await client.interactions.approve({ id, hash });
      tell(noticeOf({ id, sessionId, sentence }, answers, missing.length));
      const [again] = answers;
      // It changed: the page turns into the new question, at the old one's place.
      if (again?.answer === "pending" && again.decisionId !== id) {
        await readBack(again.interactionId);
        movingOnTo(again.interactionId);
        await navigate({
          to: "/inbox/$id",
          params: { id: again.interactionId },
          replace: true,
        });
      }
    });
  }
  async function reject(reason: string) {
    const done = await act.run(async () => {
      await client.interactions.reject({ id, hash, reason });
      const agent = question.chain[0] ?? "The agent";
      const told = reason === "" ? "" : ` ${agent} was told “${reason}”.`;
      tell({ text: `Rejected. Nothing ran.${told}`, tone: "ok", id });
    });
    if (done) setOpen("");
  }
  const ask = () => (isFinal ? setOpen("sure") : approve());
  const askByKey = () => (isMeant() ? ask() : undefined);
  useKeys({
    a: mayApprove ? askByKey : folded > 0 ? openAll : undefined,
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
        <Button tone="primary" hotkey="a" disabled={!mayApprove} onClick={onceOf(ask)}>
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
        <Dialog title="Irreversible" onClose={() => setOpen("")}>
          <p className="mb-2 text-base font-semibold">
            <Untrusted text={sentence} />
          </p>
          <p className="mb-4">
            {plural(decision.calls?.length ?? 1, "call")} will run as soon as you approve, and
            nothing can undo it.
          </p>
          <DialogActions onCancel={() => setOpen("")}>
            <Button tone="primary" data-focus="" disabled={!mayApprove} onClick={approve}>
              Approve for good
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

interface Approved {
  readonly id: string;
  readonly sessionId: string;
  readonly sentence: string;
}

function noticeOf(
  { id, sessionId, sentence }: Approved,
  answers: Answers,
  missing: number,
): Notice {
  if (missing > 0) {
    return { text: "Your approval is recorded; others must approve too.", tone: "ok", id };
  }
  const bad = answers.find(({ answer }) => answer !== "done");
  if (bad === undefined) {
    const [first] = answers;
    const text = `Approved. ${sentence}`;
    if (answers.length !== 1 || first?.answer !== "done") return { text, tone: "ok", id };
    const { operationId, undo } = first;
    const mayUndo = undo !== undefined && !undo.irreversible;
    return { text, tone: "ok", id, ...(mayUndo ? { undo: { sessionId, operationId } } : {}) };
  }
  if (bad.answer === "pending") {
    // Kept during a pause, under the same decision, or asked again under a new one: nothing ran, and nothing failed.
    const isKept = bad.decisionId === id;
    const text = isKept
      ? "Approved. Work is paused: it runs after Resume, once it has been checked again."
      : `Not run. ${CHANGED}; it needs a new approval.`;
    return { text, tone: "warn", id: isKept ? id : bad.interactionId };
  }
  const what = bad.answer === "unknown" ? "the outcome is unknown" : "it did not work";
  return { text: `Approved, but ${what}. ${forPeople(bad.text)}`, tone: "danger", id };
}
