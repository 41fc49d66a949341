import { useSyncExternalStore } from "react";

// The last action, announced once to screen readers and shown until the next.

export interface Notice {
  readonly text: string;
  readonly tone: "ok" | "warn" | "danger";
  /** The record to look at. */
  readonly id: string;
}

let current: Notice | undefined;
const listeners = new Set<() => void>();

export function tell(notice: Notice | undefined): void {
  current = notice;
  for (const listener of listeners) listener();
}

export function useNotice(): Notice | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}
