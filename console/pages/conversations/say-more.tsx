import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useId, useState } from "react";
import { client, queryClient } from "../../app/client.ts";
import { useSending } from "../../app/sending.ts";
import { Button } from "../../ui/button.tsx";
import { FIELD } from "../../ui/field.tsx";
import { Problem } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";

/** A message to the agent: begins a conversation, or says more in one of one's own. */
export function SayMore({ id: talk, label }: { readonly id?: string; readonly label: string }) {
  const field = useId();
  const [text, setText] = useState("");
  const [reply, setReply] = useState("");
  const navigate = useNavigate();
  const { busy, error, run } = useSending(["conversations"], () => setText(""));
  const send = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim() === "") return undefined;
    return run(async () => {
      const about = talk === undefined ? {} : { id: talk };
      const answer = await client.conversations.send({ ...about, message: text.trim() });
      setReply(answer.text ?? answer.summary ?? "");
      await queryClient.invalidateQueries({ queryKey: ["conversation", answer.id] });
      if (talk === undefined && answer.outcome === "waiting") {
        await navigate({ to: "/conversations/$id", params: { id: answer.id } });
      }
    });
  };
  return (
    <form onSubmit={send} className="space-y-2">
      {reply !== "" && (
        <p role="status" className="border-line bg-panel rounded-md border px-3 py-2">
          <Untrusted text={reply} />
        </p>
      )}
      <Problem error={error} />
      <label htmlFor={field} className="block font-medium">
        {label}
      </label>
      <div className="flex flex-wrap gap-2">
        <input
          id={field}
          value={text}
          onChange={({ target }) => setText(target.value)}
          className={`${FIELD} max-w-xl flex-1`}
        />
        <Button type="submit" tone="primary" disabled={busy || text.trim() === ""}>
          {busy ? "Sending…" : "Send"}
        </Button>
      </div>
    </form>
  );
}
