import { appendFileSync } from "node:fs";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isSallyportError } from "../../src/model/errors.ts";
import { createTaskList } from "../../src/tasks/create-task-list.ts";
import { markdownTaskStore } from "../../src/tasks/markdown-task-store.ts";
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
const listOf = (store = open()) => createTaskList({ store });
const text = () => readFile(file, "utf8");

describe("people", () => {
  test("an edit during a swap is kept, and the swap succeeds [S4-66]", async () => {
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

  test("a task written by hand or by another tool is read and can be claimed [S4-66]", async () => {
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

  test("manual edits are read: a new subject, a reopened task [S4-66 S4-49 S4-51]", async () => {
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

  test("any order of fields, other offsets, blank lines and CRLF are read [S4-66]", async () => {
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

  test("other text and unknown fields are kept [S4-68]", async () => {
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
      "- claimed_by",
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

  test("a swap changes no byte outside its own section [S4-68]", async () => {
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

  test("other text that followed a part is kept when the part is removed", async () => {
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

  test("the documented layout is the one that is read and written [S4-69 I-66]", async () => {
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
