import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { Interaction } from "../../app/client.ts";
import { classIn, isForMe } from "../../app/facts-of.ts";
import { useKeys } from "../../app/keys.ts";
import { numberText } from "../../app/locale.ts";
import { movingOnTo } from "../../app/moved-on.ts";
import { useLastId } from "../../app/notice.ts";
import { inboxQuery, meQuery, toolsQuery } from "../../app/queries.ts";
import { plural } from "../../app/words.ts";
import { Button } from "../../ui/button.tsx";
import { Empty, Problem } from "../../ui/panel.tsx";
import { ItemPage } from "../item/item-page.tsx";
import { ItemView } from "../item/item-view.tsx";
import { BatchBar } from "./batch-bar.tsx";
import { Filters, type InboxFilter, isShown, NO_FILTER } from "./filters.tsx";
import { InboxRow } from "./inbox-row.tsx";
import { useIsWide } from "./use-is-wide.ts";

/** What waits for a person: the list, and beside it the selected item. */
export function InboxPage() {
  const { id: named = "" } = useParams({ strict: false });
  const { data: inbox, error } = useQuery(inboxQuery);
  const { data: me } = useQuery(meQuery);
  const { data: tools } = useQuery(toolsQuery);
  const [filter, setFilter] = useState<InboxFilter>(NO_FILTER);
  const [checked, setChecked] = useState<ReadonlySet<string>>(new Set());
  const isWide = useIsWide();
  const navigate = useNavigate();
  const items = useMemo(
    () => (inbox?.items ?? []).filter((item) => isShown(item, filter, me, tools)),
    [inbox, filter, me, tools],
  );
  const open = useCallback(
    (id: string, replace = false) => {
      navigate({ to: "/inbox/$id", params: { id }, replace }).catch(() => {});
    },
    [navigate],
  );
  const current = named;
  useMovingOn(items, named, isWide, open);
  const move = (by: number) => {
    const at = items.findIndex(({ id }) => id === current);
    const next = items[Math.max(0, Math.min(items.length - 1, at + by))];
    if (next === undefined) return;
    open(next.id, true);
    document.getElementById(`row-${next.id}`)?.scrollIntoView({ block: "nearest" });
  };
  const check = useCallback((id: string) => {
    setChecked((before) => {
      const next = new Set(before);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  }, []);
  // Only reversible calls are decided together; irreversible ones one by one.
  const alike = items
    .filter((item) => item.type === "confirm" && isForMe(item, me))
    .filter((item) => classIn(item, tools) === "reversible");
  const areChecked = alike.length > 0 && alike.every(({ id }) => checked.has(id));
  const checkAlike = () => setChecked(new Set(areChecked ? [] : alike.map(({ id }) => id)));
  useKeys({
    X: alike.length > 1 ? checkAlike : undefined,
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: current === "" ? undefined : () => open(current),
    x: current === "" ? undefined : () => check(current),
  });
  // On a narrow screen there is space for one of the two.
  if (!isWide && named !== "") return <ItemPage />;
  const chosen = items.filter(({ id }) => checked.has(id));
  return (
    <div className="flex h-full min-h-0">
      <section
        aria-label="Inbox"
        className="border-line flex min-h-0 w-full flex-col lg:w-[26rem] lg:shrink-0 lg:border-r xl:w-[30rem]"
      >
        <div className="border-line border-b px-3 py-2">
          <div className="mb-2 flex items-baseline justify-between gap-2">
            <h1>Inbox</h1>
            <span className="text-muted" role="status">
              {inbox === undefined
                ? "Loading…"
                : countOf(items.length, inbox.items.length, inbox.complete)}
            </span>
          </div>
          <Filters filter={filter} onChange={setFilter} items={inbox?.items ?? []} />
          {alike.length > 1 && (
            <Button tone="quiet" hotkey="X" className="mt-1 -ml-2" onClick={checkAlike}>
              {areChecked ? "Select none" : `Select all ${alike.length} that are reversible`}
            </Button>
          )}
        </div>
        <Problem error={error} />
        {chosen.length > 0 && (
          <BatchBar items={chosen} tools={tools} me={me} onDone={() => setChecked(new Set())} />
        )}
        <ul className="min-h-0 flex-1 overflow-y-auto" aria-label="Questions">
          {items.map((item) => (
            <InboxRow
              key={item.id}
              item={item}
              tools={tools}
              isCurrent={isWide && item.id === current}
              isChecked={checked.has(item.id)}
              onCheck={check}
              onSelect={open}
            />
          ))}
          {inbox?.complete && items.length === 0 && <NothingHere total={inbox.items.length} />}
        </ul>
      </section>
      {isWide && (
        <section aria-label="Selected question" className="min-h-0 min-w-0 flex-1 overflow-y-auto">
          {current === "" ? (
            <Empty>Choose a question.</Empty>
          ) : (
            <ItemView key={current} id={current} />
          )}
        </section>
      )}
    </div>
  );
}

/**
 * Keeps the reviewer's place in the list. What they decided themselves gives way to its neighbour; what
 * others decided stays visible, closed: a key pressed at that moment must not hit another question.
 */
function useMovingOn(
  items: readonly Interaction[],
  named: string,
  isWide: boolean,
  open: (id: string, replace: boolean) => void,
): void {
  const place = useRef({ id: "", at: 0 });
  const navigate = useNavigate();
  const own = useLastId();
  const at = items.findIndex(({ id }) => id === named);
  useEffect(() => {
    if (at >= 0) place.current = { id: named, at };
    const isDone = named !== "" && at < 0 && own === named && place.current.id === named;
    if (named !== "" && !isDone) return;
    const next = items[isDone ? Math.min(place.current.at, items.length - 1) : 0];
    if (isWide && next !== undefined) {
      // Before their first answer there is no key that could be meant for another one.
      if (own !== "") movingOnTo(next.id);
      open(next.id, true);
    }
    if ((!isWide || next === undefined) && isDone)
      navigate({ to: "/inbox", replace: true }).catch(() => {});
  }, [at, named, own, isWide, items, open, navigate]);
}

function NothingHere({ total }: { total: number }) {
  return (
    <li>
      <Empty>
        {total === 0
          ? "All clear. What agents ask for appears here by itself."
          : `${plural(total, "question")} hidden by the filter.`}
      </Empty>
    </li>
  );
}

function countOf(shown: number, total: number, complete: boolean): string {
  const all = `${numberText(total)}${complete ? "" : "+"}`;
  return shown === total ? `${all} waiting` : `${numberText(shown)} of ${all}`;
}
