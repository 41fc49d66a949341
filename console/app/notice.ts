import { useSyncExternalStore } from "react";

// The last action, announced once to screen readers and shown for a while.

export interface Notice {
  readonly text: string;
  readonly tone: "ok" | "warn" | "danger";
  /** The record to look at. */
  readonly id: string;
  /** The call that ran and can be undone. */
  readonly undo?: Undoable;
}

export interface Undoable {
  readonly sessionId: string;
  readonly operationId: string;
}

let current: Notice | undefined;
/** The record that the person acted on last; stays known when the notice is gone. */
let lastId = "";
const listeners = new Set<() => void>();

export function tell(notice: Notice | undefined): void {
  current = notice;
  if (notice !== undefined) lastId = notice.id;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useNotice(): Notice | undefined {
  return useSyncExternalStore(subscribe, () => current);
}

export function useLastId(): string {
  return useSyncExternalStore(subscribe, () => lastId);
}
