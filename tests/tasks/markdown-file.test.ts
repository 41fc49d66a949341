import { appendFileSync } from "node:fs";
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
import type { Task } from "../../src/model/task.ts";
import { withFileLock } from "../../src/store/file-lock.ts";
import { FULL_TASK } from "../../src/tasks/conformance/case.ts";
import { createTaskList } from "../../src/tasks/create-task-list.ts";
import { markdownTaskStore } from "../../src/tasks/markdown-task-store.ts";
import { systemRandom } from "../../src/util/random.ts";
import { systemTimers } from "../../src/util/timers.ts";
import { freshFolder } from "./task-stores.ts";

let folder: string;
let file: string;
let remove: () => Promise<void>;
beforeEach(async () => {
  ({ folder, remove } = await freshFolder());
  file = path.join(folder, "tasks.md");
});
afterEach(() => remove());

const open = () => markdownTaskStore({ path: file });
const listOf = (store = open()) => createTaskList({ store });
const text = () => readFile(file, "utf8");
const lock = <Result>(work: () => Promise<Result>) =>
  withFileLock(`${file}.lock`, { timers: systemTimers, random: systemRandom, waitMs: 5_000 }, work);
const PLAIN: Task = {
  id: "plain",
  subject: "A task",
  description: "",
  status: "pending",
  createdAt: "2026-11-15T06:00:00.000Z",
  version: 1,
};

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

describe("people", () => {
  test("S4-66 a save by hand in the middle of a swap is neither lost nor stops the swap", async () => {
    const store = open();
    await store.compareAndSwap(PLAIN, 0);
    let edits = 0;
    const [stored] = await store.transact((tasks) => {
      // An editor knows no lock: it saves after we have read and before we write.
      if (edits === 0) appendFileSync(file, "\n## By hand\n\n- id: hand\n");
      edits += 1;
      return [{ task: { ...PLAIN, subject: `of ${tasks.size}` }, expectedVersion: 1 }];
    });
    expect([edits, stored?.subject]).toEqual([2, "of 2"]);
    expect((await store.list()).map(({ subject }) => subject)).toEqual(["of 2", "By hand"]);
  });

  test("S4-66 a task written by hand, or by another tool, is read and can be worked on", async () => {
    await writeFile(file, "## Water the plants\n\n- id: plants\n");
    const tasks = listOf();
    expect(await tasks.list()).toEqual([
      {
        id: "plants",
        subject: "Water the plants",
        description: "",
        status: "pending",
        createdAt: "0001-01-01T00:00:00.000Z",
        version: 1,
      },
    ]);
    const claimed = await tasks.claim({ id: "plants", claimer: "bob" });
    expect(await open().get("plants")).toEqual(claimed);
    expect(await text()).toMatch(/^## Water the plants\n\n- id: plants\n- status: claimed\n/);
  });

  test("S4-66 S4-49 S4-51 edits by hand are read back: a new subject, a re-opened task", async () => {
    const tasks = listOf();
    const { id } = await tasks.add({ subject: "Old", description: "old" });
    await tasks.claim({ id, claimer: "alice" });
    await tasks.fail({ id, reason: "no luck" });
    const edited = (await text())
      .replace("## Old", "## New")
      .replace("> old", "> new\n> and longer")
      .replace("- status: failed", "- status: pending");
    await writeFile(file, edited);
    expect(await tasks.get(id)).toMatchObject({ subject: "New", description: "new\nand longer" });
    const claimed = await tasks.claim({ id, claimer: "bob" });
    expect(claimed.claimer).toBe("bob");
    expect(claimed.history).toMatchObject([{ what: "failed", by: "alice", reason: "no luck" }]);
  });

  test("S4-66 any order of fields, other offsets, blank lines and Windows line ends are read", async () => {
    const byHand = [
      "# List",
      "##   Plants  ",
      "(ask Bob first)",
      "",
      "- version: 7",
      "- created_at: 2026-11-15T08:00:00.123456+02:00",
      "- id:   plants ",
      "- claimed_at: 0001-01-01T00:00:00Z",
      "",
      "",
      "### Description",
      "> water",
      ">  them",
      "",
    ].join("\r\n");
    await writeFile(file, byHand);
    const [task] = await open().list();
    expect(task).toEqual({
      id: "plants",
      subject: "Plants",
      description: "water\n them",
      status: "pending",
      createdAt: "2026-11-15T06:00:00.123Z",
      version: 7,
    });
    await listOf().claim({ id: "plants", claimer: "bob" });
    const after = await text();
    expect(after.replaceAll("\r\n", "")).not.toMatch(/[\r\n]/);
    expect(after).toContain("(ask Bob first)");
    expect((await open().get("plants")).description).toBe("water\n them");
  });

  test("S4-68 what the store does not understand stays: text around, between and inside, and other fields", async () => {
    const before = [
      "\ufeffIntro without a heading  ",
      "",
      "- [ ] not a task of ours",
      "",
      "## A section of mine",
      "",
      "- name: value",
      "",
      "## One",
      "",
      "- id: one",
      "- due: tomorrow",
      "- status: pending",
      "",
      "A note about one.",
      "",
      "> a quotation that is nobody's",
      "",
      "### Description",
      "",
      "> what",
      "",
      "### Comments",
      "",
      "```",
      "- id: in a fence",
      "```",
      "",
      "",
      "## Two",
      "",
      "- id: two",
      "",
      "# The end",
      "",
      "## A heading\u2028with a separator",
      "last line without an end",
    ].join("\n");
    await writeFile(file, before);
    const tasks = listOf();
    await tasks.claim({ id: "one", claimer: "bob" });
    const after = await text();
    const lines = (all: string) => all.split("\n").filter((line) => line !== "");
    const added = lines(after).filter((line) => !lines(before).includes(line));
    expect(added.map((line) => line.split(":")[0])).toEqual([
      "- status",
      "- claimer",
      "- claimed_at",
      "- version",
      "- fence",
    ]);
    const gone = lines(before).filter((line) => !lines(after).includes(line));
    expect(gone).toEqual(["- status: pending"]);
    const from = (all: string) => all.slice(all.indexOf("## Two"));
    const upTo = (all: string) => all.slice(0, all.indexOf("## One"));
    expect([upTo(after), from(after)]).toEqual([upTo(before), from(before)]);

    await tasks.complete({ id: "one", result: "done" });
    await tasks.add({ subject: "Three" });
    const last = await text();
    for (const line of lines(before).filter((one) => !one.startsWith("- status"))) {
      expect(lines(last)).toContain(line);
    }
    expect((await tasks.list()).map(({ subject }) => subject)).toEqual(["One", "Two", "Three"]);
    expect((await tasks.get("one")).result).toBe("done");
  });

  test("S4-68 a swap changes no byte outside its own section", async () => {
    const tasks = listOf();
    for (const subject of ["One", "Two", "Three"]) await tasks.add({ subject, description: "d" });
    await writeFile(file, (await text()).replace("## Three", "\n  odd   spaces\t\n\n\n## Three"));
    const before = await text();
    const [, two] = await tasks.list();
    await tasks.claim({ id: two?.id ?? "", claimer: "bob" });
    const after = await text();
    const outside = (all: string) => [
      all.slice(0, all.indexOf("## Two")),
      all.slice(all.indexOf("\n\n\n## Three")),
    ];
    expect(outside(after)).toEqual(outside(before));
    expect(after).toContain("\n  odd   spaces\t\n");
  });

  test("text of others that followed a part survives when that part goes", async () => {
    const tasks = listOf();
    const { id } = await tasks.add({ subject: "One" });
    await tasks.fail({ id, reason: "no" });
    await appendFile(file, "\n> stray\n\nnote\n");
    await tasks.reopen({ id });
    expect(await text()).toContain("\n\n> stray\n\nnote\n");
    const open = await tasks.get(id);
    expect([open.description, open.failureReason]).toEqual(["", undefined]);
    await tasks.complete({ id, result: "r" });
    expect(await text()).toContain("\n\n> stray\n\nnote\n");
    expect((await tasks.get(id)).result).toBe("r");
  });

  test.each([
    ["an unknown status", "## A\n\n- id: a\n- status: done\n", 1],
    ["a version that is none", "\n## A\n\n- id: a\n- version: two\n", 5],
    ["a field twice", "## A\n\n- id: a\n- status: pending\n- status: completed\n", 5],
    ["an id twice", "## A\n\n- id: a\n\n## B\n\n- id: a\n", 5],
    ["a text twice", "## A\n\n- id: a\n\n### Result\n> x\n### Result\n> y\n", 7],
    ["a date that does not exist", "## A\n\n- id: a\n- created_at: 2026-02-30T00:00:00Z\n", 1],
    ["an empty id", "## A\n\n- id:\n", 1],
    ["history that is no JSON", "## A\n\n- id: a\n- history: it failed\n", 4],
  ])(
    "an edit that makes no sense (%s) is damaged_record with its line, and nothing is written",
    async (_, content, line) => {
      await writeFile(file, content);
      for (const call of [() => open().list(), () => open().compareAndSwap(PLAIN, 0)]) {
        const error = await call().catch((caught) => caught);
        expect(isSallyportError(error, "damaged_record")).toBe(true);
        expect(error.details.line).toBe(line);
      }
      expect(await text()).toBe(content);
    },
  );

  test("S4-69 I-66 the layout is our own, and its page shows it as it is read and written", async () => {
    const page = await readFile("docs/reference/tasks-markdown.md", "utf8");
    const example = /```markdown\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
    await writeFile(file, example);
    const [login, plants] = await open().list();
    expect(login).toMatchObject({ status: "failed", failureReason: "No access to staging." });
    expect(plants).toMatchObject({ id: "plants", subject: "Water the plants" });
    await open().compareAndSwap({ ...login!, version: 4 }, 3);
    expect(await text()).toBe(example.replace("- version: 3", "- version: 4"));
  });
});
