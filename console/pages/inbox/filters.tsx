import { useId, useRef, useState } from "react";
import type { Interaction, Me, Tool } from "../../app/client.ts";
import { classIn, isForMe, toolsIn } from "../../app/facts-of.ts";
import { useKeys } from "../../app/keys.ts";

export interface InboxFilter {
  readonly whose: "me" | "all";
  readonly type: "" | Interaction["type"];
  readonly stake: "" | Tool["safetyClass"];
  readonly agent: string;
  readonly text: string;
}

export const NO_FILTER: InboxFilter = { whose: "me", type: "", stake: "", agent: "", text: "" };

export function isShown(
  item: Interaction,
  { whose, type, stake, agent, text }: InboxFilter,
  me: Me | undefined,
  tools: readonly Tool[] | undefined,
): boolean {
  if (whose === "me" && !isForMe(item, me)) return false;
  if (type !== "" && item.type !== type) return false;
  if (stake !== "" && classIn(item, tools) !== stake) return false;
  if (agent !== "" && item.chain[0] !== agent) return false;
  if (text === "") return true;
  const wanted = text.toLowerCase();
  const facts = [
    ...toolsIn(item),
    item.pendingTool?.args_json,
    item.displayText,
    ...item.chain,
    item.id,
  ];
  return facts.some((fact) => fact?.toLowerCase().includes(wanted));
}

interface Props {
  readonly filter: InboxFilter;
  readonly onChange: (filter: InboxFilter) => void;
  readonly items: readonly Interaction[];
}

const FIELD = "border-strong bg-panel min-h-8 min-w-0 rounded-md border px-1.5 text-xs";

export function Filters({ filter, onChange, items }: Props) {
  const search = useRef<HTMLInputElement>(null);
  // On a phone the list matters more than its filters.
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const agents = [...new Set(items.map(({ chain }) => chain[0] ?? ""))].sort();
  const set = (change: Partial<InboxFilter>) => onChange({ ...filter, ...change });
  useKeys({ "/": () => search.current?.focus() });
  return (
    <search className="grid grid-cols-[1fr_auto] gap-1.5 sm:grid-cols-4">
      <input
        ref={search}
        id={id}
        type="search"
        aria-label="Search the inbox"
        placeholder="Search ( / )"
        value={filter.text}
        onChange={(event) => set({ text: event.target.value })}
        onKeyDown={(event) => {
          if (event.key === "Enter") event.currentTarget.blur();
        }}
        className={`${FIELD} sm:col-span-4`}
      />
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className={`${FIELD} sm:hidden`}
      >
        Filters
      </button>
      <select
        aria-label="Assignee"
        value={filter.whose}
        onChange={(event) => set({ whose: event.target.value === "all" ? "all" : "me" })}
        className={`${FIELD} ${isOpen ? "" : "hidden sm:block"}`}
      >
        <option value="me">For me</option>
        <option value="all">All open</option>
      </select>
      <select
        aria-label="Kind"
        value={filter.type}
        onChange={(event) => set({ type: event.target.value as InboxFilter["type"] })}
        className={`${FIELD} ${isOpen ? "" : "hidden sm:block"}`}
      >
        <option value="">Any kind</option>
        <option value="confirm">Needs approval</option>
        <option value="ask_user">Questions</option>
        <option value="connection_lost">Unknown outcomes</option>
      </select>
      <select
        aria-label="Risk"
        value={filter.stake}
        onChange={(event) => set({ stake: event.target.value as InboxFilter["stake"] })}
        className={`${FIELD} ${isOpen ? "" : "hidden sm:block"}`}
      >
        <option value="">Any risk</option>
        <option value="irreversible">Irreversible</option>
        <option value="reversible">Reversible</option>
        <option value="read">Reads only</option>
      </select>
      <select
        aria-label="Agent"
        value={filter.agent}
        onChange={(event) => set({ agent: event.target.value })}
        className={`${FIELD} ${isOpen ? "" : "hidden sm:block"}`}
      >
        <option value="">Any agent</option>
        {agents.map((agent) => (
          <option key={agent} value={agent}>
            {agent}
          </option>
        ))}
      </select>
    </search>
  );
}
