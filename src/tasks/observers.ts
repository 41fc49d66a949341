import type { Task } from "../model/task.ts";
import type { TaskStore } from "../store/tasks.ts";

/** Told of every completion after it is stored, once. What it throws is reported and stops nobody. Shape: push. */
export type CompletionObserver = (task: Task) => void | Promise<void>;

/**
 * Observers hang on the store and not on a task list, because a list holds nothing but its store: two lists over one
 * store are the same list, also for who listens. Other processes are not heard; for them there is the feed.
 */
const observers = new WeakMap<TaskStore, Set<CompletionObserver>>();

export function observe(store: TaskStore, observer: CompletionObserver): () => void {
  const known = observers.get(store) ?? new Set();
  observers.set(store, known);
  // The same function may be added twice and is then called twice; each time has its own way to stop.
  const own: CompletionObserver = (task) => observer(task);
  known.add(own);
  return () => {
    known.delete(own);
  };
}

/** Nobody waits for an observer, and none can undo what is stored by throwing. */
export function announce(
  store: TaskStore,
  task: Task,
  onObserverError: (error: unknown) => void,
): void {
  for (const observer of [...(observers.get(store) ?? [])]) {
    try {
      Promise.resolve(observer(structuredClone(task))).catch(onObserverError);
    } catch (error) {
      onObserverError(error);
    }
  }
}
