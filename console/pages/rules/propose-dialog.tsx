import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import type { AnswerOf } from "sallyport/client";
import { client, type Tool } from "../../app/client.ts";
import { decisionsOfToolQuery, toolsQuery } from "../../app/queries.ts";
import { useSending } from "../../app/sending.ts";
import type { Json } from "../../text/canonical.ts";
import { patternOf } from "../../text/pattern-words.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogActions } from "../../ui/dialog.tsx";
import { FIELD, Field } from "../../ui/field.tsx";
import { Empty, Problem } from "../../ui/panel.tsx";
import { ReplayView } from "./replay-view.tsx";

type Replay = AnswerOf<"standingRules.replay">;

const HOURS = [
  [1, "one hour"],
  [8, "eight hours"],
  [24, "one day"],
  [7 * 24, "one week"],
  [30 * 24, "thirty days"],
] as const;

/** Choose a tool and inputs, replay the rule over past decisions, then propose it. */
export function ProposeDialog({ onClose }: { onClose: () => void }) {
  const { data: tools, error } = useQuery(toolsQuery);
  const [chosen, setChosen] = useState("");
  const possible = (tools ?? []).filter(mayBeRuled);
  const tool = possible.find(({ name }) => name === chosen) ?? possible[0];
  const id = useId();
  return (
    <Dialog title="Propose a rule" wide onClose={onClose}>
      <Problem error={error} />
      {tool === undefined ? (
        <>
          <Empty>No tool here can be covered by a rule: people decide every time.</Empty>
          <DialogActions onCancel={onClose} />
        </>
      ) : (
        <div className="space-y-3">
          <Field id={id} label="Tool">
            <select
              id={id}
              value={tool.name}
              onChange={(event) => setChosen(event.target.value)}
              className={FIELD}
            >
              {possible.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </Field>
          <Terms key={tool.name} tool={tool} onClose={onClose} />
        </div>
      )}
    </Dialog>
  );
}

/** A person decides every irreversible or destructive call: no rule covers these. */
function mayBeRuled({ safetyClass, metadata }: Tool): boolean {
  return safetyClass === "reversible" && !metadata.destructive;
}

function Terms({ tool, onClose }: { tool: Tool; onClose: () => void }) {
  const { data: last } = useQuery(decisionsOfToolQuery(tool.name));
  if (last === undefined) return <p className="text-muted">Loading past requests…</p>;
  return <TermsForm tool={tool} last={last} onClose={onClose} />;
}

interface FormProps {
  readonly tool: Tool;
  /** The newest input that was asked for; null when there was none. */
  readonly last: Json;
  readonly onClose: () => void;
}

function TermsForm({ tool, last, onClose }: FormProps) {
  const [text, setText] = useState(() => JSON.stringify(patternOf(last), null, 2));
  const [folder, setFolder] = useState("");
  const [reason, setReason] = useState("");
  const [hours, setHours] = useState<number>(24);
  const [seen, setSeen] = useState<{ readonly terms: string; readonly replay: Replay }>();
  const looking = useSending(["nothing"], () => {});
  const sending = useSending(["rules"], onClose);
  const id = useId();
  const pattern = read(text);
  const terms = JSON.stringify([tool.name, text, folder]);
  const isSeen = seen?.terms === terms;
  const coverage = () => ({
    tool: tool.name,
    pattern: (pattern ?? {}) as never,
    ...(folder === "" ? {} : { workingDirectory: folder }),
  });
  const look = () =>
    looking.run(async () => {
      setSeen({ terms, replay: await client.standingRules.replay(coverage()) });
    });
  const propose = (event: FormEvent) => {
    event.preventDefault();
    if (!isSeen || reason.trim() === "") return undefined;
    const more = { reason: reason.trim(), forMs: hours * 3_600_000 };
    return sending.run(() => client.standingRules.propose({ ...coverage(), ...more }));
  };
  return (
    <form onSubmit={propose} className="space-y-3">
      <Field
        id={`${id}-p`}
        label="Input: a condition for each property"
        hint={<code>{TESTS}</code>}
      >
        <textarea
          id={`${id}-p`}
          rows={Math.min(14, text.split("\n").length + 1)}
          spellCheck={false}
          value={text}
          aria-invalid={pattern === undefined}
          onChange={(event) => setText(event.target.value)}
          className={`${FIELD} font-mono text-xs`}
        />
      </Field>
      {pattern === undefined && <p className="text-danger text-xs">This is not JSON yet.</p>}
      <div className="grid gap-3 sm:grid-cols-2">
        <Field id={`${id}-h`} label="Valid for">
          <select
            id={`${id}-h`}
            value={hours}
            onChange={(event) => setHours(Number(event.target.value))}
            className={FIELD}
          >
            {HOURS.map(([count, words]) => (
              <option key={count} value={count}>
                {words}
              </option>
            ))}
          </select>
        </Field>
        <Field id={`${id}-d`} label="Only in this folder (for paths and commands)">
          <input
            id={`${id}-d`}
            value={folder}
            onChange={(event) => setFolder(event.target.value)}
            className={FIELD}
          />
        </Field>
      </div>
      <Field id={`${id}-r`} label="Why is no approval needed?">
        <input
          id={`${id}-r`}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
          className={FIELD}
        />
      </Field>
      <Problem error={looking.error ?? sending.error} />
      {isSeen && seen !== undefined && <ReplayView replay={seen.replay} />}
      <DialogActions onCancel={onClose}>
        <Button
          tone={isSeen ? "plain" : "primary"}
          disabled={pattern === undefined || looking.busy}
          onClick={look}
        >
          {looking.busy ? "Replaying…" : "Replay"}
        </Button>
        <Button
          type="submit"
          tone="primary"
          disabled={!isSeen || reason.trim() === "" || sending.busy}
          title={isSeen ? "" : "Replay it on past decisions first"}
        >
          {sending.busy ? "Sending…" : "Propose"}
        </Button>
      </DialogActions>
    </form>
  );
}

const TESTS =
  '{"equals": …}, {"oneOf": […]}, {"atLeast": 1, "atMost": 9}, {"like": "INV-*"}, {"any": true}; "optional": true may be added. What has no test must not be there.';

function read(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
