import { type FormEvent, useId, useState } from "react";
import { useAct } from "../../app/act.ts";
import { client, type Interaction } from "../../app/client.ts";
import { useKeys } from "../../app/keys.ts";
import { onceOf, useIsMeant } from "../../app/moved-on.ts";
import { tell } from "../../app/notice.ts";
import { Button } from "../../ui/button.tsx";
import { Problem } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { PassOn } from "./pass-on.tsx";

/** An agent's question: one of its choices, or free text. */
export function QuestionForm({
  question,
  whyNot,
}: {
  question: Interaction;
  whyNot: string | undefined;
}) {
  const { id, hash, choices } = question;
  const [text, setText] = useState("");
  const act = useAct(id);
  const field = useId();
  const blocked = whyNot !== undefined || act.busy;
  async function answer(given: string) {
    await act.run(async () => {
      await client.interactions.answer({ id, hash, answer: given });
      tell({ text: "Answered. Your answer was sent to the agent.", tone: "ok", id });
    });
  }
  const isMeant = useIsMeant(id);
  const choose = (choice: string | undefined) => () =>
    choice !== undefined && isMeant() && !blocked ? answer(choice) : undefined;
  const click = (choice: string) => onceOf(() => answer(choice));
  // All digits, also those without a choice: while an answer is asked for, none of them leaves the page.
  const digits = Array.from(
    { length: 10 },
    (_, at) => [String((at + 1) % 10), at < 9 ? choose(choices[at]) : choose(undefined)] as const,
  );
  useKeys(choices.length === 0 ? {} : Object.fromEntries(digits));
  const send = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim() !== "" && !blocked) return answer(text.trim());
    return undefined;
  };
  return (
    <div className="space-y-2">
      <Problem error={act.error} />
      {choices.length > 0 ? (
        <fieldset className="flex flex-wrap gap-2">
          <legend className="mb-1 font-medium">Your answer</legend>
          {choices.map((choice, at) => (
            <Button
              key={choice}
              tone="primary"
              {...(at < 9 ? { hotkey: String(at + 1) } : {})}
              disabled={blocked}
              onClick={click(choice)}
            >
              <Untrusted text={choice} inline />
            </Button>
          ))}
        </fieldset>
      ) : (
        <form onSubmit={send} className="flex flex-wrap items-end gap-2">
          <div className="min-w-48 flex-1">
            <label htmlFor={field} className="mb-1 block font-medium">
              Your answer
            </label>
            <input
              id={field}
              value={text}
              disabled={blocked}
              onChange={(event) => setText(event.target.value)}
              className="border-strong bg-page w-full rounded-md border px-2 py-1"
            />
          </div>
          <Button type="submit" tone="primary" disabled={blocked || text.trim() === ""}>
            {act.busy ? "Sending…" : "Answer"}
          </Button>
        </form>
      )}
      <div className="flex flex-wrap gap-2">
        <PassOn question={question} />
      </div>
    </div>
  );
}
