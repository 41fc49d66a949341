import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isSallyportError } from "../../src/model/errors.ts";
import { createTaskList, memoryTaskStore } from "../../src/tasks/create-task-list.ts";
import { exportJsonTasks, importJsonTasks, toJsonTasks } from "../../src/tasks/json-tasks.ts";

import { freshFolder } from "./task-stores.ts";

const NOW = Date.parse("2026-11-15T06:00:00.000Z");
let folder: string;
let remove: () => Promise<void>;
beforeEach(async () => {
  ({ folder, remove } = await freshFolder());
});
afterEach(() => remove());

/** Four tasks, one in each status, the second blocked by the first. */
async function fourTasks() {
  const tasks = createTaskList({ store: memoryTaskStore() });
  const [a, b, c, d] = await tasks.addAll([
    { subject: "Pending", description: "Two\nlines", key: "a" },
    { subject: "Claimed", priority: 3 },
    { subject: "Completed" },
    { subject: "Failed", blockedBy: ["a"] },
  ]);
  await tasks.claim({ id: b!.id, claimer: "alice" });
  await tasks.complete({ id: c!.id, result: "done" });
  await tasks.fail({ id: d!.id, reason: "no" });
  await tasks.block({ id: a!.id, blockedBy: [c!.id] });
  return { tasks: await tasks.list(), ids: { a: a!.id, b: b!.id, c: c!.id, d: d!.id } };
}

const write = (name: string, value: unknown) =>
  writeFile(path.join(folder, name), typeof value === "string" ? value : JSON.stringify(value));

test("export: one JSON file per task with the fields of that layout, claimed as in_progress, claimer as owner [I-65 I-67]", async () => {
  const { tasks, ids } = await fourTasks();
  const { written } = await exportJsonTasks(folder, tasks);
  expect(written).toBe(3);
  const names = await readdir(folder);
  expect(names.toSorted()).toEqual([ids.a, ids.b, ids.c].map((id) => `${id}.json`).toSorted());
  const read = async (id: string) =>
    JSON.parse(await readFile(path.join(folder, `${id}.json`), "utf8"));
  expect(await read(ids.a)).toEqual({
    id: ids.a,
    subject: "Pending",
    description: "Two\nlines",
    status: "pending",
    blocks: [],
    blockedBy: [ids.c],
  });
  expect(await read(ids.b)).toMatchObject({ status: "in_progress", owner: "alice" });
  expect(await read(ids.c)).toMatchObject({ status: "completed", blocks: [ids.a], blockedBy: [] });
});

test("export lists what is lost: failed tasks, results, reasons, times, versions [I-67]", async () => {
  const { tasks, ids } = await fourTasks();
  const { lost } = toJsonTasks(tasks);
  expect(lost).toContainEqual({ id: ids.d, field: "status", what: "left out" });
  expect(lost).toContainEqual({ id: ids.c, field: "result", what: "no counterpart" });
  const ofB = lost.filter(({ id }) => id === ids.b).map(({ field }) => field);
  expect(ofB.toSorted()).toEqual(["claimedAt", "createdAt", "fence", "priority", "version"]);
});

test("a failed task can be exported as pending on request [I-67]", async () => {
  const { tasks, ids } = await fourTasks();
  const json = toJsonTasks(tasks, { failed: "as_pending" });
  expect(json.tasks.find(({ id }) => id === ids.d)?.status).toBe("pending");
  expect(json.lost).toContainEqual({ id: ids.d, field: "status", what: "failed" });
  expect(json.lost).toContainEqual({ id: ids.d, field: "failureReason", what: "no counterpart" });
});

test("import: statuses, owner and dependencies from either side; lock files are skipped [I-65 I-67]", async () => {
  await write("1.json", {
    id: "1",
    subject: "First",
    description: "what",
    activeForm: "Doing the first",
    status: "completed",
    blocks: ["10"],
    blockedBy: [],
  });
  await write("10.json", { id: "10", subject: "Tenth", status: "pending", blockedBy: ["2"] });
  await write("2.json", { id: "2", subject: "Second", status: "in_progress", owner: "alice" });
  await write(".lock", "");
  await write(".highwatermark", "10");
  await mkdir(path.join(folder, "sub.json"));
  const { tasks, lost } = await importJsonTasks(folder, { now: NOW });
  expect(tasks.map(({ id }) => id)).toEqual(["1", "2", "10"]);
  expect(tasks[1]).toEqual({
    id: "2",
    subject: "Second",
    description: "",
    status: "claimed",
    claimer: "alice",
    createdAt: "2026-11-15T06:00:00.000Z",
    claimedAt: "2026-11-15T06:00:00.000Z",
    fence: 1,
    version: 1,
  });
  expect(tasks[2]?.blockedBy).toEqual(["1", "2"]);
  expect(lost).toEqual([{ id: "1", field: "activeForm", what: "no counterpart" }]);
});

test("import and export keep everything that both layouts can express [I-67]", async () => {
  await write("1.json", { id: "1", subject: "A", status: "pending", blocks: ["2"], blockedBy: [] });
  await write("2.json", {
    id: "2",
    subject: "B",
    status: "in_progress",
    owner: "bob",
    blocks: [],
    blockedBy: ["1"],
  });
  const { tasks } = await importJsonTasks(folder, { now: NOW });
  const other = path.join(folder, "other");
  await mkdir(other);
  await exportJsonTasks(other, tasks);
  const again = await importJsonTasks(other, { now: NOW });
  expect(again.tasks).toEqual(tasks);
  expect(again.lost).toEqual([]);
});

test("import omits invalid tasks, missing blockers and cycles, and lists them [I-67]", async () => {
  await write("1.json", "{ not json");
  await write("2.json", { id: "2", subject: "Two", status: "deleted" });
  await write("3.json", { subject: "no id", status: "pending" });
  await write("4.json", { id: "4", subject: "Four", status: "pending", blockedBy: ["5", "99"] });
  await write("5.json", { id: "5", subject: "Five", status: "pending", blockedBy: ["4"] });
  await write("6.json", { id: "5", subject: "Again", status: "pending" });
  await write("7.json", '{"id":"7","id":"8","subject":"Twice","status":"pending"}');
  await symlink("/etc/hostname", path.join(folder, "8.json"));
  const { tasks, lost } = await importJsonTasks(folder, { now: NOW });
  expect(tasks.map(({ id }) => id)).toEqual(["4", "5"]);
  expect(tasks.flatMap(({ blockedBy = [] }) => blockedBy)).toHaveLength(1);
  expect(lost.filter(({ field }) => field === "task").map(({ id }) => id)).toEqual([
    "1.json",
    "7.json",
    "2.json",
    "3.json",
    "6.json",
  ]);
  expect(lost.filter(({ field }) => field === "blockedBy")).toHaveLength(2);
});

test("import shortens an invalid subject and keeps the whole text in the description", async () => {
  const subject = `${"long ".repeat(30)}\nand two lines`;
  await write("1.json", { id: "1", subject, description: "what", status: "pending" });
  const { tasks, lost } = await importJsonTasks(folder, { now: NOW });
  expect([...(tasks[0]?.subject ?? "")].length).toBe(80);
  expect(tasks[0]?.description).toBe(`${subject}\n\nwhat`);
  expect(lost.map(({ field }) => field)).toEqual(["subject"]);
});

test("no id leads to a file outside the folder or of another kind [T29]", async () => {
  const [base] = (await fourTasks()).tasks;
  const ids = ["../up", "/etc/x", "a/b", "a\0b", "..", ".lock", "x".repeat(300), "ü", "con "];
  await exportJsonTasks(
    folder,
    ids.map((id) => ({ ...base!, id })),
  );
  const names = await readdir(folder);
  expect(names).toHaveLength(ids.length);
  for (const name of names) expect(name).toMatch(/^task-[0-9a-f]{32}\.json$/);
  const { tasks } = await importJsonTasks(folder, { now: NOW });
  expect(tasks.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
});

test("export rejects a folder that contains tasks", async () => {
  const { tasks } = await fourTasks();
  await write("1.json", { id: "1", subject: "A", status: "pending" });
  const error = await exportJsonTasks(folder, tasks).catch((caught) => caught);
  expect(isSallyportError(error, "already_exists")).toBe(true);
});
