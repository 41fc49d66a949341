import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import type { Interaction, Tool } from "../../app/client.ts";
import { classIn } from "../../app/facts-of.ts";
import { decisionQuery, shownQuery } from "../../app/queries.ts";
import { Badge, ClassBadge } from "../../ui/badge.tsx";
import { useIsOver } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { type Bound, useBinding } from "../item/binding.tsx";
import { Calls } from "../item/calls.tsx";
import { nameOf } from "./inbox-row.tsx";

interface Props {
  readonly item: Interaction;
  readonly tools: readonly Tool[] | undefined;
  readonly isYes: boolean;
  readonly onToggle: () => void;
  /** Whether this row shows exactly what an approval would be bound to. */
  readonly onChecked: (id: string, bound: Bound) => void;
}

/** One question of a batch, with all that the single view shows of its calls: input, folder, targets and dry run. */
export function BatchRow({ item, tools, isYes, onToggle, onChecked }: Props) {
  const decision = useQuery(decisionQuery(item.decisionId));
  const shown = useQuery(shownQuery(item.id));
  const isOver = useIsOver(item.deadline);
  const isRead = decision.isFetched && shown.isFetched;
  const binding = useBinding(item, decision.data ?? null, shown.data ?? null);
  const isMissing = decision.data == null || shown.data == null || isOver;
  const bound = !isRead ? "reading" : isMissing ? "unknown" : binding;
  useEffect(() => onChecked(item.id, bound), [item.id, bound, onChecked]);
  const name = nameOf(item);
  return (
    <li className="border-line border-b px-2 py-2 last:border-b-0" data-batch={item.id}>
      <label className="mb-1 flex flex-wrap items-center gap-2">
        <input
          type="checkbox"
          // While its hash is being checked a row keeps its tick: an unticked row is one that will be rejected.
          checked={isYes && (bound === "yes" || bound === "reading")}
          disabled={bound !== "yes"}
          onChange={onToggle}
          aria-label={`Approve ${name}`}
          className="size-4"
        />
        <Untrusted text={name} mono inline className="font-semibold" />
        <ClassBadge safetyClass={classIn(item, tools)} />
        {bound === "yes" && !isYes && <Badge tone="danger">will be rejected</Badge>}
        {bound === "yes" && <Badge tone="ok">hash checked</Badge>}
        {bound === "reading" && <span className="text-muted">Checking…</span>}
        {(bound === "no" || bound === "unknown") && (
          <span className="text-danger font-medium">
            {isOver
              ? "Expired: not changed."
              : "What would run could not be verified: it stays open. Open it separately."}
          </span>
        )}
      </label>
      {decision.data != null && (
        <Calls decision={decision.data} preview={shown.data ?? null} tools={tools} />
      )}
    </li>
  );
}
