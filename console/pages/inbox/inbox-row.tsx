import { memo } from "react";
import type { Interaction, Tool } from "../../app/client.ts";
import { classIn, lineOf, summaryOf, toolsIn } from "../../app/facts-of.ts";
import { plural } from "../../app/words.ts";
import { Badge, ClassBadge } from "../../ui/badge.tsx";
import { Ago, Until } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";

interface Props {
  readonly item: Interaction;
  readonly tools: readonly Tool[] | undefined;
  readonly isCurrent: boolean;
  readonly isChecked: boolean;
  readonly onCheck: (id: string) => void;
  readonly onSelect: (id: string) => void;
}

/** Facts first: which tool, on what, what would happen; then who asks and how long there is. */
export const InboxRow = memo(function InboxRow(props: Props) {
  const { item, tools, isCurrent, isChecked, onCheck, onSelect } = props;
  const { id, chain, deadline, createdAt } = item;
  const { text, moreBytes } = lineOf(item);
  const summary = item.type === "confirm" ? summaryOf(item) : undefined;
  const name = nameOf(item);
  return (
    <li
      id={`row-${id}`}
      data-id={id}
      className={`lazy-row border-line flex gap-2 border-b py-2 pr-2 pl-2 ${isCurrent ? "bg-accent-soft shadow-[inset_3px_0_0_var(--color-accent)]" : "bg-panel"}`}
    >
      {item.type === "confirm" ? (
        <input
          type="checkbox"
          aria-label={`Select ${name}`}
          checked={isChecked}
          onChange={() => onCheck(id)}
          className="mt-1 size-4 shrink-0"
        />
      ) : (
        <span className="w-4 shrink-0" />
      )}
      <button
        type="button"
        aria-current={isCurrent}
        onClick={() => onSelect(id)}
        className="min-w-0 flex-1 text-left"
      >
        <span className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
          <span className="one-line max-w-full font-semibold">
            <Untrusted text={name} mono inline />
          </span>
          <ClassBadge safetyClass={classIn(item, tools)} />
          {item.waitsFor === "agent" && <Badge tone="accent">asked back</Badge>}
          {item.assignedTo !== "" && (
            <Badge>
              for <Untrusted text={item.assignedTo} inline />
            </Badge>
          )}
          {item.votes.length > 0 && <Badge tone="ok">{item.votes.length} yes</Badge>}
          <span className="text-muted ml-auto text-xs">
            <Ago at={createdAt} />
          </span>
        </span>
        {summary !== undefined && (
          <span className="one-line">
            <Untrusted text={summary} inline />
          </span>
        )}
        <span className="flex items-baseline gap-1.5">
          {item.type === "ask_user" && <Badge tone="warn">agent says</Badge>}
          <span
            className={`one-line ${item.type === "ask_user" ? "" : "text-muted font-mono text-xs"}`}
          >
            <Untrusted text={text} inline />
          </span>
          {moreBytes > 0 && (
            <span className="text-warn shrink-0 text-xs">{plural(moreBytes, "more byte")}</span>
          )}
        </span>
        <span className="text-muted flex gap-x-3 text-xs">
          <span className="one-line">
            <Untrusted text={chain[0] ?? ""} inline />
          </span>
          <Until at={deadline} />
        </span>
      </button>
    </li>
  );
});

export function nameOf(item: Interaction): string {
  if (item.type === "ask_user") return "Question";
  if (item.type === "connection_lost") return `Did it happen? ${toolsIn(item).join(", ")}`;
  const names = toolsIn(item);
  if (names.length <= 1) return names[0] ?? "decision";
  const each = [...Map.groupBy(names, (name) => name)].map(([name, { length }]) =>
    length === 1 ? name : `${length} × ${name}`,
  );
  return `${names.length} calls: ${each.join(", ")}`;
}
