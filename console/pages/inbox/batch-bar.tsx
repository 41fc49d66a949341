import { useState } from "react";
import { batchNotice } from "../../app/batch-notice.ts";
import { client, type Interaction, type Me, type Tool } from "../../app/client.ts";
import { classIn, lineOf, parsed, summaryOf, toolsIn, whyNotMine } from "../../app/facts-of.ts";
import { readBack } from "../../app/live.ts";
import { tell } from "../../app/notice.ts";
import { plural } from "../../app/words.ts";
import { Badge, ClassBadge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogActions } from "../../ui/dialog.tsx";
import { JsonView } from "../../ui/json-view.tsx";
import { Folded, OpeningsOf, useOpenings } from "../../ui/openings.tsx";
import { Problem } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { nameOf } from "./inbox-row.tsx";

interface Props {
  readonly items: readonly Interaction[];
  readonly tools: readonly Tool[] | undefined;
  readonly me: Me | undefined;
  readonly onDone: () => void;
}

export function BatchBar({ items, tools, me, onDone }: Props) {
  const [open, setOpen] = useState(false);
  const why = whyNotTogether(items, tools);
  return (
    <div className="border-line bg-accent-soft flex flex-wrap items-center justify-between gap-2 border-b px-3 py-2">
      <span className="font-medium">{plural(items.length, "question")} selected</span>
      {why !== undefined && <span className="text-warn">{why}</span>}
      <span className="flex gap-2">
        <Button onClick={onDone}>Clear</Button>
        <Button tone="primary" disabled={why !== undefined} onClick={() => setOpen(true)}>
          Decide together
        </Button>
      </span>
      {open && (
        <OpeningsOf>
          <BatchDialog {...{ items, tools, me, onDone }} onClose={() => setOpen(false)} />
        </OpeningsOf>
      )}
    </div>
  );
}

/** As the server does: only calls of one tool that can be taken back are approved together. */
function whyNotTogether(
  items: readonly Interaction[],
  tools: readonly Tool[] | undefined,
): string | undefined {
  if (items.some((item) => classIn(item, tools) === "irreversible")) {
    return "What cannot be undone is decided one by one.";
  }
  const names = new Set(items.flatMap(toolsIn));
  return names.size > 1 ? "Only calls of one tool are decided together." : undefined;
}

/** Exactly this list, each with the hash that is shown, and a veto for each. */
function BatchDialog({ items, tools, me, onDone, onClose }: Props & { onClose: () => void }) {
  // What the reviewer reads must not change under their eyes: the list is as it was when it was opened.
  const [list] = useState(items);
  const [veto, setVeto] = useState<ReadonlySet<string>>(new Set());
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { folded, open: openAll } = useOpenings();
  const mine = list.filter((item) => whyNotMine(item, me) === undefined);
  const finals = mine.filter(
    (item) => !veto.has(item.id) && classIn(item, tools) === "irreversible",
  );
  const yes = mine.length - veto.size;
  async function decide() {
    setBusy(true);
    setError(null);
    try {
      const answer = await client.interactions.approveBatch({
        items: mine.map(({ id, hash }) => ({ id, hash })),
        veto: [...veto],
      });
      await Promise.all(mine.map(({ id }) => readBack(id)));
      tell(batchNotice(answer));
      onDone();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  }
  return (
    <Dialog title={`Decide ${plural(mine.length, "question")} together`} wide onClose={onClose}>
      <p className="text-muted mb-2">
        Everything in this list and nothing else. Take the tick away from what you do not want: that
        is a no.
      </p>
      <ul className="border-line max-h-[55vh] overflow-y-auto rounded-md border">
        {mine.map((item) => (
          <BatchRow
            key={item.id}
            item={item}
            tools={tools}
            isYes={!veto.has(item.id)}
            onToggle={() => {
              const next = new Set(veto);
              if (!next.delete(item.id)) next.add(item.id);
              setVeto(next);
            }}
          />
        ))}
      </ul>
      <Problem error={error} />
      {finals.length > 0 && (
        <p className="text-danger mt-2 font-medium">{finals.length} of them cannot be undone.</p>
      )}
      <DialogActions onCancel={onClose}>
        {folded > 0 && <Button onClick={openAll}>Show everything first</Button>}
        <Button tone="primary" disabled={busy || folded > 0 || mine.length === 0} onClick={decide}>
          {busy ? "Sending…" : `Approve ${yes}${veto.size > 0 ? `, reject ${veto.size}` : ""}`}
        </Button>
      </DialogActions>
    </Dialog>
  );
}

interface RowProps {
  readonly item: Interaction;
  readonly tools: readonly Tool[] | undefined;
  readonly isYes: boolean;
  readonly onToggle: () => void;
}

function BatchRow({ item, tools, isYes, onToggle }: RowProps) {
  const summary = summaryOf(item);
  const { text, moreBytes } = lineOf(item);
  const value = moreBytes > 0 ? parsed(item.pendingTool?.args_json ?? "") : undefined;
  const name = nameOf(item);
  return (
    <li className="border-line border-b px-2 py-2 last:border-b-0">
      <label className="flex items-start gap-2">
        <input
          type="checkbox"
          checked={isYes}
          onChange={onToggle}
          aria-label={`Approve ${name}`}
          className="mt-1 size-4"
        />
        <span className="min-w-0">
          <Untrusted text={name} mono inline className="font-semibold" />{" "}
          <ClassBadge safetyClass={classIn(item, tools)} />{" "}
          {!isYes && <Badge tone="danger">will be rejected</Badge>}
          <span className="block">
            {summary === undefined ? (
              <span className="text-warn">Cannot be inspected: no dry run.</span>
            ) : (
              <Untrusted text={summary} />
            )}
          </span>
          {value === undefined && (
            <span className="text-muted block font-mono text-xs">
              <Untrusted text={text} />
            </span>
          )}
        </span>
      </label>
      {value !== undefined && (
        <Folded bytes={moreBytes}>
          <JsonView value={value} label={`Input of ${name}`} />
        </Folded>
      )}
    </li>
  );
}
