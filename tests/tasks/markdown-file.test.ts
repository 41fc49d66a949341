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
import { FULL_TASK } from "../../src/tasks/conformance/case.ts";
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
  test("S4-56 making the store touches no file", async () => {
    open();
    markdownTaskStore({ path: "/no/such/folder/tasks.md" });
    expect(await readdir(folder)).toEqual([]);
  });

  test("S4-58 before the first write get is not_found and list is empty, and no file appears", async () => {
    const error = await open()
      .get("x")
      .catch((caught) => caught);
    expect(isSallyportError(error, "not_found")).toBe(true);
    expect(await open().list()).toEqual([]);
    expect(await readdir(folder)).toEqual([]);
  });

  test("S4-57 the first swap makes the file, and a refused one does not", async () => {
    await expect(open().compareAndSwap(PLAIN, 1)).rejects.toThrow(/not_found/);
    expect(await readdir(folder)).not.toContain("tasks.md");
    await open().compareAndSwap(PLAIN, 0);
    expect(await text()).toMatch(/^# Tasks\n/);
  });

  test("S4-59 a missing folder is an I/O error of the first write, and is not made", async () => {
    const store = markdownTaskStore({ path: path.join(folder, "no", "tasks.md") });
    expect(await store.list()).toEqual([]);
    const error = await store.compareAndSwap(PLAIN, 0).catch((caught) => caught);
    expect(error).toBeInstanceOf(SallyportError);
    expect(error.code).toBe("store_unavailable");
    expect(error.cause).toMatchObject({ code: "ENOENT" });
    expect(await readdir(folder)).toEqual([]);
  });

  test("S4-60 the path given can be read back", () => {
    expect(markdownTaskStore({ path: "./odd/../tasks.md" }).path).toBe("./odd/../tasks.md");
  });

  // skip: only Linux shows a process its open files
  test.skipIf(process.platform !== "linux")(
    "S4-61 no handle stays open between calls, and close does nothing",
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

  test("S4-61 S4-63 a swap waits for the lock and reads only then: what changed meanwhile decides", async () => {
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

  test("S4-63 what others added while a swap waited is not written over", async () => {
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

  test("a lock that is never given back is store_busy, and nothing is written", async () => {
    const store = markdownTaskStore({ path: file, waitMs: 50 });
    await lock(async () => {
      const error = await store.compareAndSwap(PLAIN, 0).catch((caught) => caught);
      expect(isSallyportError(error, "store_busy")).toBe(true);
    });
    expect(await store.list()).toEqual([]);
  });

  test("a lock file that cannot be one is store_unavailable, and nothing is written", async () => {
    await mkdir(`${file}.lock`);
    const error = await open()
      .compareAndSwap(PLAIN, 0)
      .catch((caught) => caught);
    expect(isSallyportError(error, "store_unavailable")).toBe(true);
    expect(await open().list()).toEqual([]);
  });

  test("S4-65 a new store on the same path sees every field and version", async () => {
    await open().compareAndSwap(FULL_TASK, 0);
    await open().compareAndSwap({ ...FULL_TASK, subject: "again" }, 1);
    expect(await open().list()).toEqual([{ ...FULL_TASK, subject: "again", version: 2 }]);
  });

  test("links are followed, so that all names of a file share one lock and one content", async () => {
    await open().compareAndSwap(PLAIN, 0);
    const link = path.join(folder, "link.md");
    await symlink(file, link);
    await markdownTaskStore({ path: link }).compareAndSwap({ ...PLAIN, subject: "B" }, 1);
    expect((await open().get(PLAIN.id)).subject).toBe("B");
    expect(await readlink(link)).toBe(file);
    expect((await readdir(folder)).toSorted()).toEqual(["link.md", "tasks.md", "tasks.md.lock"]);
  });

  test("the permissions of the file stay as they were", async () => {
    await open().compareAndSwap(PLAIN, 0);
    // More than a process's mask lets it give away when it makes a file.
    await chmod(file, 0o662);
    await open().compareAndSwap(PLAIN, 1);
    expect((await stat(file)).mode & 0o777).toBe(0o662);
  });

  test("what is not a file, or not UTF-8, is refused and left alone", async () => {
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
