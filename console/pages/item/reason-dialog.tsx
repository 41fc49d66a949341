import { type FormEvent, type ReactNode, useId, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogActions } from "../../ui/dialog.tsx";
import { Problem } from "../../ui/panel.tsx";

interface Props {
  readonly title: string;
  readonly label: string;
  readonly submit: string;
  readonly tone?: "primary" | "danger";
  readonly required?: boolean;
  readonly busy: boolean;
  readonly error: unknown;
  readonly children?: ReactNode;
  readonly onSubmit: (text: string) => void;
  readonly onClose: () => void;
}

/** One question with one text for an answer. Enter sends, Shift+Enter makes a line. */
export function ReasonDialog(props: Props) {
  const { title, label, submit, tone = "primary", required = false, busy, error, children } = props;
  const [text, setText] = useState("");
  const id = useId();
  const ready = !busy && (!required || text.trim() !== "");
  const send = (event: FormEvent) => {
    event.preventDefault();
    if (ready) props.onSubmit(text.trim());
  };
  return (
    <Dialog title={title} onClose={props.onClose}>
      <form onSubmit={send} className="space-y-3">
        {children}
        <div>
          <label htmlFor={id} className="mb-1 block font-medium">
            {label}
          </label>
          <textarea
            id={id}
            autoFocus
            rows={3}
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && !event.shiftKey) send(event);
            }}
            className="border-strong bg-page w-full rounded-md border p-2"
          />
        </div>
        <Problem error={error} />
        <DialogActions onCancel={props.onClose}>
          <Button type="submit" tone={tone} disabled={!ready}>
            {busy ? "Sending…" : submit}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
