import { constants } from "node:fs";
import { open, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { SallyportError } from "../model/errors.ts";
import type { Task } from "../model/task.ts";
import { sha256Hex } from "../util/hash.ts";
import { parseStrictJson } from "../util/strict-json.ts";
import { fromJsonTasks, type Lost, toJsonTasks } from "./json-tasks.ts";

const FILES_MAX = 10_000;
const FILE_BYTES_MAX = 1024 * 1024;

/**
 * Writes one file per task into the folder, which must exist and hold no task yet: the program that keeps it has a lock and
 * numbers of its own, and we do not guess at them. Answers with what that layout cannot say.
 */
export async function exportJsonTasks(
  folder: string,
  tasks: readonly Task[],
  options: { readonly failed?: "leave_out" | "as_pending" } = {},
): Promise<{ readonly written: number; readonly lost: readonly Lost[] }> {
  if ((await taskFiles(folder)).length > 0) {
    const hint = "The folder holds tasks already. Export into a new one.";
    throw new SallyportError("already_exists", { folder, hint });
  }
  const json = toJsonTasks(tasks, options);
  for (const task of json.tasks) {
    const file = path.join(folder, fileNameOf(task.id));
    await writeFile(file, `${JSON.stringify(task, undefined, 2)}\n`, { flag: "wx" });
  }
  return { written: json.tasks.length, lost: json.lost };
}

/** Reads every task file of the folder. Nothing is stored: hand the tasks to `compareAndSwap` with version 0. */
export async function importJsonTasks(
  folder: string,
  { now }: { readonly now: number },
): Promise<{ readonly tasks: readonly Task[]; readonly lost: readonly Lost[] }> {
  const names = await taskFiles(folder);
  if (names.length > FILES_MAX) {
    throw new SallyportError("payload_too_large", { folder, files: names.length, most: FILES_MAX });
  }
  const values: { name: string; value: unknown }[] = [];
  const lost: Lost[] = [];
  for (const name of names) {
    try {
      values.push({ name, value: await readJson(path.join(folder, name)) });
    } catch (error) {
      const what = error instanceof Error ? error.message : "cannot be read";
      lost.push({ id: name, field: "task", what });
    }
  }
  const read = fromJsonTasks(values, now);
  return { tasks: read.tasks, lost: [...lost, ...read.lost] };
}

/** Numbers in their own order: 9.json before 10.json. Lock and mark files begin with a dot and are none. */
async function taskFiles(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && /^[^.].*\.json$/.test(entry.name))
    .map(({ name }) => name)
    .toSorted((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

async function readJson(file: string): Promise<unknown> {
  // A link could lead out of the folder.
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size } = await handle.stat();
    if (size > FILE_BYTES_MAX) throw new RangeError(`larger than ${FILE_BYTES_MAX} bytes`);
    return parseStrictJson(await readFile(handle));
  } finally {
    await handle.close();
  }
}

/** An id may be any text; a file name may not. */
function fileNameOf(id: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/.test(id)) return `${id}.json`;
  return `task-${sha256Hex(id.toWellFormed()).slice(0, 32)}.json`;
}
