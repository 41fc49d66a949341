import { useState } from "react";
import { useAct } from "../../app/act.ts";
import { client, type Interaction } from "../../app/client.ts";
import { useKeys } from "../../app/keys.ts";
import { tell } from "../../app/notice.ts";
import { Button } from "../../ui/button.tsx";
import { ReasonDialog } from "./reason-dialog.tsx";

/** Ask the agent for more, or reassign the question. It stays open. */
export function PassOn({ question }: { question: Interaction }) {
  const { id, chain } = question;
  const [open, setOpen] = useState<"" | "back" | "over">("");
  const act = useAct(id);
  const close = () => setOpen("");
  useKeys({ b: () => setOpen("back"), h: () => setOpen("over") });
  async function askBack(text: string) {
    const done = await act.run(async () => {
      await client.interactions.askBack({ id, text });
      tell({ text: "Asked. It stays open until you decide.", tone: "ok", id });
    });
    if (done) close();
  }
  async function handOver(to: string) {
    const done = await act.run(async () => {
      await client.interactions.handOver({ id, to });
      tell({ text: `Reassigned to ${to}.`, tone: "ok", id });
    });
    if (done) close();
  }
  return (
    <>
      <Button hotkey="b" onClick={() => setOpen("back")}>
        Ask agent
      </Button>
      <Button hotkey="h" onClick={() => setOpen("over")}>
        Reassign
      </Button>
      {open === "back" && (
        <ReasonDialog
          title={`Ask ${chain[0] ?? "the agent"}`}
          label="What do you want to know?"
          submit="Ask"
          required
          busy={act.busy}
          error={act.error}
          onSubmit={askBack}
          onClose={close}
        />
      )}
      {open === "over" && (
        <ReasonDialog
          title="Reassign"
          label="Assign to a person or group"
          submit="Reassign"
          required
          busy={act.busy}
          error={act.error}
          onSubmit={handOver}
          onClose={close}
        />
      )}
    </>
  );
}
