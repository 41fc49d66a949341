import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, test } from "vitest";
import type { Task } from "../../src/model/task.ts";
import {
  type OpenTaskStore,
  runCase,
  taskCases,
  taskHarness,
} from "../../src/tasks/conformance.ts";
import { markdownTaskStore } from "../../src/tasks/markdown-task-store.ts";

/** The whole contract on one store, a fresh one per case. */
export function runTaskCases(name: string, open: () => Promise<OpenTaskStore>): void {
  describe(name, () => {
    for (const one of taskCases) {
      test(one.name, async () => {
        const { outcome, error } = await runCase(() => taskHarness(open), one);
        if (outcome === "failed") throw error;
      });
    }
  });
}

/** A folder for one test, removed with it. */
export async function freshFolder(): Promise<{ folder: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(path.join(tmpdir(), "sallyport-tasks-"));
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

export async function openMarkdown(): Promise<OpenTaskStore & { readonly file: string }> {
  const { folder, remove } = await freshFolder();
  const file = path.join(folder, "tasks.md");
  const again = async () => markdownTaskStore({ path: file });
  return { store: await again(), again, remove, file };
}

export const PLAIN: Task = {
  id: "plain",
  subject: "A task",
  description: "",
  status: "pending",
  createdAt: "2026-11-15T06:00:00.000Z",
  version: 1,
};
