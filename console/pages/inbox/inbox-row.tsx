import { memo } from "react";
import type { Interaction, Tool } from "../../app/client.ts";
import { classIn, inputLine, lineOf, summaryOf, toolsIn } from "../../app/facts-of.ts";
import { plural } from "../../app/words.ts";
import { Badge, ClassBadge } from "../../ui/badge.tsx";
import { Ago, Due } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";

interface Props {
  readonly item: Interaction;
  readonly tools: readonly Tool[] | undefined;
  readonly isCurrent: boolean;
  readonly isChecked: boolean;
  readonly onCheck: (id: string) => void;
  readonly onSelect: (id: string) => void;
}

/** What would happen, in a sentence; then who asks, and only what is out of the ordinary. */
export const InboxRow = memo(function InboxRow(props: Props) {
  const { item, tools, isCurrent, isChecked, onCheck, onSelect } = props;
  const { id, chain, deadline, createdAt } = item;
  const { text, moreBytes } = lineOf(item);
  const name = nameOf(item);
  const sentence = item.type === "confirm" ? (summaryOf(item) ?? name) : name;
  const isQuestion = item.type === "ask_user";
  const safety = classIn(item, tools);
  // What an agent writes into its question is no fact of the gate.
  const facts = item.type === "confirm" ? item.metadata : {};
  return (
    <li
      id={`row-${id}`}
      data-id={id}
      data-class={safety}
      className={`lazy-row border-line flex gap-2 border-b py-1.5 pr-2 pl-2 ${isCurrent ? "bg-accent-soft shadow-[inset_3px_0_0_var(--color-accent)]" : "bg-panel"}`}
    >
      {item.type === "confirm" ? (
        <input
          type="checkbox"
          aria-label={`Select ${sentence}`}
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
        <span className="flex items-baseline gap-2">
          {isQuestion && <Badge tone="warn">agent says</Badge>}
          <span className="one-line min-w-0 flex-1 font-semibold">
            <Untrusted text={isQuestion ? text : sentence} inline />
          </span>
          <span className="text-muted shrink-0 text-xs">
            <Ago at={createdAt} />
          </span>
        </span>
        {item.type === "confirm" && sentence === name && (
          <span className="one-line text-muted text-xs">
            <Untrusted text={inputLine(item)} inline />
          </span>
        )}
        <span className="text-muted flex flex-wrap items-center gap-x-2 text-xs">
          <span className="one-line max-w-full">
            <Untrusted text={chain[0] ?? ""} inline />
          </span>
          {!isQuestion && sentence !== name && (
            <span className="one-line max-w-full font-mono">
              <Untrusted text={name} inline />
            </span>
          )}
          {safety === "irreversible" && <ClassBadge safetyClass={safety} />}
          {facts["editedFrom"] !== undefined && <Badge tone="accent">edited</Badge>}
          {facts["cameBackFrom"] !== undefined && <Badge tone="warn">changed</Badge>}
          {item.waitsFor === "agent" && <Badge tone="accent">agent asked</Badge>}
          {item.assignedTo !== "" && (
            <Badge>
              for <Untrusted text={item.assignedTo} inline />
            </Badge>
          )}
          {item.votes.length > 0 && <Badge tone="ok">{item.votes.length} approved</Badge>}
          {moreBytes > 0 && isQuestion && (
            <span className="text-warn">{plural(moreBytes, "more byte")}</span>
          )}
          <Due at={deadline} />
        </span>
      </button>
    </li>
  );
});

export function nameOf(item: Interaction): string {
  if (item.type === "ask_user") return "Question";
  if (item.type === "connection_lost") return `Outcome unknown: ${toolsIn(item).join(", ")}`;
  const names = toolsIn(item);
  if (names.length <= 1) return names[0] ?? "decision";
  const each = [...Map.groupBy(names, (name) => name)].map(([name, { length }]) =>
    length === 1 ? name : `${length} × ${name}`,
  );
  return `${names.length} calls: ${each.join(", ")}`;
}
