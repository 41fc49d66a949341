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
        title={mayStop(me) ? "" : "Only operators and admins stop everything"}
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
  // What was asked stays what is asked, also when somebody else turns the switch meanwhile.
  const [isResume] = useState(stopped);
  const turn = (reason: string) =>
    run(async () => {
      if (!isResume) return client.switch.stop({ reason });
      const answer = await client.switch.resume({ reason });
      // Takes the place of a notice that is no longer true.
      const text =
        "Work resumes. What was approved during the stop is checked again and carried out.";
      tell({ text, tone: "ok", id: "" });
      return answer;
    });
  return (
    <ReasonDialog
      title={isResume ? "Let everything go on" : "Stop everything"}
      label="Why? It goes into the trail."
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
          ? "New effects may start again. What was approved during the stop runs now, after it was checked once more."
          : "From the moment this is answered, no new effect starts. What already runs is not cut off. People can still decide: what they approve waits until work resumes."}
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
      Everything is stopped: no new effect starts until somebody resumes. Approvals are kept and run
      then.
    </div>
  );
}
