import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ReasonDialog } from "../pages/item/reason-dialog.tsx";
import { Button } from "../ui/button.tsx";
import { client, type Me } from "./client.ts";
import { tell } from "./notice.ts";
import { switchQuery } from "./queries.ts";
import { useSending } from "./sending.ts";

function mayStop({ roles }: Me): boolean {
  return roles.some((role) => role === "operator" || role === "admin");
}

/** Always there, one question away. */
export function KillSwitch({ me }: { me: Me }) {
  const { data } = useQuery(switchQuery);
  const [open, setOpen] = useState(false);
  const stopped = data?.stopped === true;
  return (
    <>
      <Button
        tone={stopped ? "primary" : "danger"}
        disabled={!mayStop(me) || data === undefined}
        title={mayStop(me) ? "" : "Only operators and admins can stop everything"}
        onClick={() => setOpen(true)}
      >
        {stopped ? "Resume" : "Stop everything"}
      </Button>
      {open && <SwitchDialog stopped={stopped} onClose={() => setOpen(false)} />}
    </>
  );
}

function SwitchDialog({ stopped, onClose }: { stopped: boolean; onClose: () => void }) {
  const { busy, error, run } = useSending(["switch"], onClose);
  // The dialog keeps its question even if the switch changes meanwhile.
  const [isResume] = useState(stopped);
  const turn = (reason: string) =>
    run(async () => {
      if (!isResume) return client.switch.stop({ reason });
      const answer = await client.switch.resume({ reason });
      // Takes the place of a notice that is no longer true.
      const text = "Work resumes. What was approved during the stop is checked again and executed.";
      tell({ text, tone: "ok", id: "" });
      return answer;
    });
  return (
    <ReasonDialog
      title={isResume ? "Resume work" : "Stop everything"}
      label="Reason (recorded in the audit log)"
      submit={isResume ? "Resume" : "Stop everything now"}
      tone={isResume ? "primary" : "danger"}
      required
      busy={busy}
      error={error}
      onSubmit={turn}
      onClose={onClose}
    >
      <p>
        {isResume
          ? "New effects may start again. What was approved during the stop is checked again and then runs."
          : "Once confirmed, no new effect starts. What is already running is not interrupted. People can still decide: what they approve waits until work resumes."}
      </p>
    </ReasonDialog>
  );
}

export function StoppedBanner({ me }: { me: Me | undefined }) {
  const { data } = useQuery({ ...switchQuery, enabled: me !== undefined });
  if (data?.stopped !== true) return null;
  return (
    <div
      role="alert"
      className="border-danger bg-danger-soft text-danger border-b px-3 py-2 font-semibold"
    >
      Everything is stopped: no new effect starts until work is resumed. Approvals are kept and run
      then.
    </div>
  );
}
