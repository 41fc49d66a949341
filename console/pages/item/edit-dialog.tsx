import { type FormEvent, useId, useState } from "react";
import { forPeople } from "sallyport/client";
import { useAct } from "../../app/act.ts";
import { client, type Decision, type Interaction } from "../../app/client.ts";
import { readBack } from "../../app/live.ts";
import { tell } from "../../app/notice.ts";
import { canonical, type Json } from "../../text/canonical.ts";
import { Button } from "../../ui/button.tsx";
import { FieldDiff } from "../../ui/changed.tsx";
import { Dialog, DialogActions } from "../../ui/dialog.tsx";
import { OpeningsOf } from "../../ui/openings.tsx";
import { Problem } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";

interface Props {
  readonly question: Interaction;
  readonly decision: Decision;
  readonly onClose: () => void;
  /** The question that takes the place of this one. */
  readonly onEdited: (id: string) => void;
}

/** Another input. It is checked, reviewed and shown again before it can be approved. */
export function EditDialog({ question, decision, onClose, onEdited }: Props) {
  const calls = decision.calls ?? [];
  const [texts, setTexts] = useState(() => calls.map(({ input }) => pretty(input)));
  const [refusal, setRefusal] = useState("");
  const act = useAct(question.id);
  const read = texts.map(readJson);
  const changed = calls.flatMap(({ input }, index) => {
    const now = read[index];
    if (now === undefined || !now.ok || canonical(now.value) === canonical(input)) return [];
    return [[String(index), now.value] as const];
  });
  const ready = changed.length > 0 && read.every(({ ok }) => ok) && !act.busy;

  async function send(event: FormEvent) {
    event.preventDefault();
    if (!ready) return;
    setRefusal("");
    const { id, hash } = question;
    let next = "";
    await act.run(async () => {
      const inputs = Object.fromEntries(changed) as Record<string, never>;
      const edited = await client.interactions.edit({ id, hash, inputs });
      if (edited.edited) next = edited.interaction.id;
      else setRefusal(forPeople(edited.text));
    });
    if (next === "") return;
    await readBack(next);
    tell({
      text: "Edited. Check it once more: someone else approves it, unless the review rules allow editors to.",
      tone: "ok",
      id: next,
    });
    onEdited(next);
  }

  return (
    <Dialog title="Edit the input" wide onClose={onClose}>
      <form onSubmit={send} className="space-y-3">
        {calls.map(({ tool, input, callId }, index) => (
          <OpeningsOf key={`${callId}-${tool}`}>
            <CallEditor
              name={calls.length === 1 ? tool : `${index + 1}. ${tool}`}
              original={input}
              text={texts[index] ?? ""}
              onText={(text) => setTexts(texts.with(index, text))}
            />
          </OpeningsOf>
        ))}
        {refusal !== "" && (
          <p role="alert" className="text-danger">
            <Untrusted text={refusal} />
          </p>
        )}
        <Problem error={act.error} />
        <DialogActions onCancel={onClose}>
          <Button type="submit" tone="primary" disabled={!ready}>
            {act.busy ? "Checking…" : "Check and preview"}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}

interface EditorProps {
  readonly name: string;
  readonly original: Json;
  readonly text: string;
  readonly onText: (text: string) => void;
}

function CallEditor({ name, original, text, onText }: EditorProps) {
  const id = useId();
  const read = readJson(text);
  return (
    <div className="space-y-2">
      <label htmlFor={id} className="block font-medium">
        Input of {name}
      </label>
      <textarea
        id={id}
        spellCheck={false}
        rows={Math.min(24, text.split("\n").length + 1)}
        value={text}
        onChange={(event) => onText(event.target.value)}
        aria-invalid={!read.ok}
        aria-describedby={`${id}-problem`}
        className="border-strong bg-page w-full rounded-md border p-2 font-mono text-xs"
      />
      <p id={`${id}-problem`} className="text-danger text-xs">
        {read.ok ? "" : `Not JSON: ${read.problem}`}
      </p>
      {read.ok && canonical(read.value) !== canonical(original) && (
        <FieldDiff
          before={original}
          after={read.value}
          label="What you change"
          heads={["Asked for", "Yours"]}
        />
      )}
    </div>
  );
}

type Read =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly problem: string };

function readJson(text: string): Read {
  try {
    return { ok: true, value: JSON.parse(text) as Json };
  } catch (error) {
    return { ok: false, problem: error instanceof Error ? error.message : String(error) };
  }
}

/** Everything but ASCII as numbers where it would be invisible in an input field. */
function pretty(value: Json): string {
  return JSON.stringify(value, null, 2).replace(
    /[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu,
    (sign) =>
      sign === "\n"
        ? sign
        : Array.from({ length: sign.length }, (_, at) => sign.charCodeAt(at))
            .map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`)
            .join(""),
  );
}
