import { useCallback, useState } from "react";
import { batchNotice } from "../../app/batch-notice.ts";
import { client, type Interaction, type Me, type Tool } from "../../app/client.ts";
import { classIn, toolsIn, whyNotMine } from "../../app/facts-of.ts";
import { readBack } from "../../app/live.ts";
import { tell } from "../../app/notice.ts";
import { plural } from "../../app/words.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogActions } from "../../ui/dialog.tsx";
import { OpeningsOf, useOpenings } from "../../ui/openings.tsx";
import { Problem } from "../../ui/panel.tsx";
import type { Bound } from "../item/binding.tsx";
import { BatchRow } from "./batch-row.tsx";

interface Props {
  readonly items: readonly Interaction[];
  readonly tools: readonly Tool[] | undefined;
  readonly me: Me | undefined;
  readonly onDone: () => void;
}

export function BatchBar({ items, tools, me, onDone }: Props) {
  const [open, setOpen] = useState<readonly Interaction[]>([]);
  /** Lists truncate long fields; a reviewer who decides sees them in full. */
  async function openWhole() {
    try {
      const whole = ({ id }: Interaction) => client.interactions.get({ id });
      setOpen(await Promise.all(items.map((item) => (item.cut ? whole(item) : item))));
    } catch (error) {
      tell({
        text: error instanceof Error ? error.message : String(error),
        tone: "danger",
        id: "",
      });
    }
  }
  const why = whyNotTogether(items, tools);
  return (
    <div className="border-line bg-accent-soft flex flex-wrap items-center justify-between gap-2 border-b px-3 py-2">
      <span className="font-medium">{items.length} selected</span>
      {why !== undefined && <span className="text-warn">{why}</span>}
      <span className="flex gap-2">
        <Button onClick={onDone}>Clear</Button>
        <Button tone="primary" disabled={why !== undefined} onClick={openWhole}>
          Review {items.length}
        </Button>
      </span>
      {open.length > 0 && (
        <OpeningsOf>
          <BatchDialog {...{ items: open, tools, me, onDone }} onClose={() => setOpen([])} />
        </OpeningsOf>
      )}
    </div>
  );
}

/** As on the server: only reversible calls of one tool are approved together. */
function whyNotTogether(
  items: readonly Interaction[],
  tools: readonly Tool[] | undefined,
): string | undefined {
  if (items.some((item) => classIn(item, tools) === "irreversible")) {
    return "Irreversible calls are decided one by one.";
  }
  const names = new Set(items.flatMap(toolsIn));
  return names.size > 1 ? "Only calls of the same tool can be decided together." : undefined;
}

/** Exactly this list, each with the hash that is shown, and a veto for each. */
function BatchDialog({ items, tools, me, onDone, onClose }: Props & { onClose: () => void }) {
  // What the reviewer reads must not change meanwhile: the list stays as it was when it was opened.
  const [list] = useState(items);
  const [veto, setVeto] = useState<ReadonlySet<string>>(new Set());
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { folded, open: openAll } = useOpenings();
  const [checks, setChecks] = useState<ReadonlyMap<string, Bound>>(new Map());
  const onChecked = useCallback((id: string, bound: Bound) => {
    setChecks((known) => (known.get(id) === bound ? known : new Map(known).set(id, bound)));
  }, []);
  const asked = list.filter((item) => whyNotMine(item, me) === undefined);
  // No decision about what this page could not show and check itself.
  const mine = asked.filter(({ id }) => checks.get(id) === "yes");
  const isReading = asked.some(({ id }) => (checks.get(id) ?? "reading") === "reading");
  const leftOut = isReading ? 0 : asked.length - mine.length;
  const finals = mine.filter(
    (item) => !veto.has(item.id) && classIn(item, tools) === "irreversible",
  );
  const noes = mine.filter(({ id }) => veto.has(id));
  const yes = mine.length - noes.length;
  async function decide() {
    setBusy(true);
    setError(null);
    try {
      const answer = await client.interactions.approveBatch({
        items: mine.map(({ id, hash }) => ({ id, hash })),
        veto: noes.map(({ id }) => id),
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
    <Dialog title={`Review ${asked.length}`} wide onClose={onClose}>
      <p className="text-muted mb-2">Exactly these are decided. Unchecked items are rejected.</p>
      <ul className="border-line max-h-[55vh] overflow-y-auto rounded-md border">
        {asked.map((item) => (
          <BatchRow
            key={item.id}
            item={item}
            tools={tools}
            isYes={!veto.has(item.id)}
            onChecked={onChecked}
            onToggle={() => {
              const next = new Set(veto);
              if (!next.delete(item.id)) next.add(item.id);
              setVeto(next);
            }}
          />
        ))}
      </ul>
      <Problem error={error} />
      {leftOut > 0 && (
        <p className="text-danger mt-2 font-medium">
          {plural(leftOut, "question")} left out: neither approved nor rejected here.
        </p>
      )}
      {finals.length > 0 && (
        <p className="text-danger mt-2 font-medium">{finals.length} of them are irreversible.</p>
      )}
      <DialogActions onCancel={onClose}>
        {folded > 0 && <Button onClick={openAll}>Show everything first</Button>}
        <Button
          tone="primary"
          disabled={busy || isReading || folded > 0 || mine.length === 0}
          onClick={decide}
        >
          {busy ? "Sending…" : `Approve ${yes}${noes.length > 0 ? `, reject ${noes.length}` : ""}`}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
