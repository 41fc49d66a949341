import {
  appendFile,
  chmod,
  mkdir,
  readdir,
  readFile,
  readlink,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isSallyportError, SallyportError } from "../../src/model/errors.ts";
import { FULL_TASK } from "../../src/tasks/conformance/store-cases.ts";
import { markdownTaskStore, withFileLock } from "../../src/tasks/markdown-task-store.ts";

import { systemRandom } from "../../src/util/random.ts";
import { systemTimers } from "../../src/util/timers.ts";
import { freshFolder, PLAIN } from "./task-stores.ts";

let folder: string;
let file: string;
let remove: () => Promise<void>;
beforeEach(async () => {
  ({ folder, remove } = await freshFolder());
  file = path.join(folder, "tasks.md");
});
afterEach(() => remove());

const open = () => markdownTaskStore({ path: file });
const text = () => readFile(file, "utf8");
const lock = <Result>(work: () => Promise<Result>) =>
  withFileLock(`${file}.lock`, { timers: systemTimers, random: systemRandom, waitMs: 5_000 }, work);

describe("the file", () => {
  test("creating the store accesses no file [S4-56]", async () => {
    open();
    markdownTaskStore({ path: "/no/such/folder/tasks.md" });
    expect(await readdir(folder)).toEqual([]);
  });

  test("before the first write get is not_found, list is empty and there is no file [S4-58]", async () => {
    const error = await open()
      .get("x")
      .catch((caught) => caught);
    expect(isSallyportError(error, "not_found")).toBe(true);
    expect(await open().list()).toEqual([]);
    expect(await readdir(folder)).toEqual([]);
  });

  test("the first swap creates the file, and a rejected one does not [S4-57]", async () => {
    await expect(open().compareAndSwap(PLAIN, 1)).rejects.toThrow(/not_found/);
    expect(await readdir(folder)).not.toContain("tasks.md");
    await open().compareAndSwap(PLAIN, 0);
    expect(await text()).toMatch(/^# Tasks\n/);
  });

  test("a missing folder is an I/O error of the first write, and is not created [S4-59]", async () => {
    const store = markdownTaskStore({ path: path.join(folder, "no", "tasks.md") });
    expect(await store.list()).toEqual([]);
    const error = await store.compareAndSwap(PLAIN, 0).catch((caught) => caught);
    expect(error).toBeInstanceOf(SallyportError);
    expect(error.code).toBe("store_unavailable");
    expect(error.cause).toMatchObject({ code: "ENOENT" });
    expect(await readdir(folder)).toEqual([]);
  });

  test("the store exposes its path [S4-60]", () => {
    expect(markdownTaskStore({ path: "./odd/../tasks.md" }).path).toBe("./odd/../tasks.md");
  });

  // skip: only Linux shows a process its open files
  test.skipIf(process.platform !== "linux")(
    "no handle stays open between calls, and close does nothing [S4-61]",
    async () => {
      const store = open();
      await store.compareAndSwap(PLAIN, 0);
      await store.get(PLAIN.id);
      await store.compareAndSwap(PLAIN, 99).catch(() => {});
      const handles = await readdir("/proc/self/fd");
      const targets = await Promise.all(
        handles.map((handle) => readlink(`/proc/self/fd/${handle}`).catch(() => "")),
      );
      expect(targets.filter((target) => target.startsWith(folder))).toEqual([]);
      await store.close();
      await store.close();
      expect((await store.get(PLAIN.id)).id).toBe(PLAIN.id);
    },
  );

  test("a swap reads after it has the lock, so a change in between decides [S4-61 S4-63]", async () => {
    const store = open();
    await store.compareAndSwap(PLAIN, 0);
    const changed = (await text()).replace("- version: 1", "- version: 2");
    let swap: Promise<unknown> = Promise.resolve();
    await lock(async () => {
      swap = store.compareAndSwap({ ...PLAIN, subject: "mine" }, 1).catch((error) => error);
      await systemTimers.sleep(50);
      await writeFile(file, changed);
    });
    expect(isSallyportError(await swap, "concurrent_modification")).toBe(true);
    expect(await text()).toBe(changed);
  });

  test("tasks that others added while a swap waited are kept [S4-63]", async () => {
    const store = open();
    await store.compareAndSwap(PLAIN, 0);
    let swap: Promise<unknown> = Promise.resolve();
    await lock(async () => {
      swap = store.compareAndSwap({ ...PLAIN, subject: "mine" }, 1);
      await systemTimers.sleep(50);
      await appendFile(file, "\n## Added\n\n- id: added\n");
    });
    await swap;
    const subjects = (await store.list()).map(({ subject }) => subject);
    expect(subjects).toEqual(["mine", "Added"]);
  });

  test("a lock that is never released is store_busy, and nothing is written", async () => {
    const store = markdownTaskStore({ path: file, waitMs: 50 });
    await lock(async () => {
      const error = await store.compareAndSwap(PLAIN, 0).catch((caught) => caught);
      expect(isSallyportError(error, "store_busy")).toBe(true);
    });
    expect(await store.list()).toEqual([]);
  });

  test("an unusable lock file is store_unavailable, and nothing is written", async () => {
    await mkdir(`${file}.lock`);
    const error = await open()
      .compareAndSwap(PLAIN, 0)
      .catch((caught) => caught);
    expect(isSallyportError(error, "store_unavailable")).toBe(true);
    expect(await open().list()).toEqual([]);
  });

  test("a new store on the same path sees every field and version [S4-65]", async () => {
    await open().compareAndSwap(FULL_TASK, 0);
    await open().compareAndSwap({ ...FULL_TASK, subject: "again" }, 1);
    expect(await open().list()).toEqual([{ ...FULL_TASK, subject: "again", version: 2 }]);
  });

  test("symbolic links are followed, so that all names of a file share one lock and content", async () => {
    await open().compareAndSwap(PLAIN, 0);
    const link = path.join(folder, "link.md");
    await symlink(file, link);
    await markdownTaskStore({ path: link }).compareAndSwap({ ...PLAIN, subject: "B" }, 1);
    expect((await open().get(PLAIN.id)).subject).toBe("B");
    expect(await readlink(link)).toBe(file);
    expect((await readdir(folder)).toSorted()).toEqual(["link.md", "tasks.md", "tasks.md.lock"]);
  });

  test("the permissions of the file are kept", async () => {
    await open().compareAndSwap(PLAIN, 0);
    // More than a process's mask lets it give away when it makes a file.
    await chmod(file, 0o662);
    await open().compareAndSwap(PLAIN, 1);
    expect((await stat(file)).mode & 0o777).toBe(0o662);
  });

  test("what is not a file, or not UTF-8, is rejected and unchanged", async () => {
    await mkdir(file);
    const error = await open()
      .list()
      .catch((caught) => caught);
    expect(isSallyportError(error, "store_unavailable")).toBe(true);
    file = path.join(folder, "latin.md");
    const bytes = Buffer.from("## Grün\n\n- id: x\n", "latin1");
    await writeFile(file, bytes);
    await expect(open().compareAndSwap(PLAIN, 0)).rejects.toThrow(/damaged_record/);
    expect(await readFile(file)).toEqual(bytes);
  });
});
