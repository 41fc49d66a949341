import { useSyncExternalStore } from "react";
import { momentText } from "../app/locale.ts";
import { spanOf } from "../app/words.ts";

// All ages and deadlines on the screen use one clock.

let now = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  // The clock does not advance while nothing on the screen uses it.
  if (timer === undefined) now = Date.now();
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** Changes only when the words do: a thousand ages would otherwise be drawn anew each second. */
function useWords(wordsAt: (now: number) => string): string {
  return useSyncExternalStore(subscribe, () => wordsAt(now));
}

export function Ago({ at }: { at: string }) {
  const words = useWords((time) => {
    const ms = time - Date.parse(at);
    return ms < 5_000 ? "just now" : `${spanOf(ms)} ago`;
  });
  return (
    <time dateTime={at} title={at} className="whitespace-nowrap">
      {words}
    </time>
  );
}

/** Whether a moment has passed; turns by itself. */
export function useIsOver(at: string): boolean {
  return useSyncExternalStore(subscribe, () => at !== "" && Date.parse(at) <= now);
}

/** Red near its end, unless that does not matter here. */
export function Until({ at, calm = false }: { at: string; calm?: boolean }) {
  const words = useWords((time) => {
    const ms = Date.parse(at) - time;
    return ms <= 0 ? "time is over" : `${spanOf(ms)} left`;
  });
  const soon = !calm && Date.parse(at) - now < 10 * 60_000;
  return (
    <time
      dateTime={at}
      title={`until ${at}`}
      className={`whitespace-nowrap ${soon ? "text-danger font-medium" : ""}`}
    >
      {words}
    </time>
  );
}

/** The time left, once it is short. */
export function Due({ at }: { at: string }) {
  const isNear = useSyncExternalStore(subscribe, () => Date.parse(at) - now < NEAR_MS);
  return isNear ? <Until at={at} /> : null;
}

const NEAR_MS = 2 * 3_600_000;

/** Local date and time, to the second, as the browser's language writes them. */
export function Moment({ at }: { at: string }) {
  return (
    <time dateTime={at} title={at} className="tabular-nums whitespace-nowrap">
      {momentText(new Date(at))}
    </time>
  );
}
