import { readFile, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import type { Task } from "../../src/model/task.ts";
import { parseTaskFile, printTaskFile, putTask } from "../../src/tasks/markdown-format.ts";
import { seededRandom } from "../../src/util/random.ts";
import { openMarkdown } from "./task-stores.ts";

const TEXTS = process.env["SCALE"] === "full" ? 5_000 : 500;
const SEED = process.env["SEED"] ?? "tasks";

/** What a text would have to contain to be taken for something else. */
const BITS = [
  "---",
  "***",
  "# ",
  "## ",
  "### ",
  "## Evil",
  "# Tasks",
  "- id: evil",
  "- id: a",
  "- status: completed",
  "- claimed_by: mallory",
  "- version: 99",
  "### Description",
  "### Result",
  "### Failure reason",
  "> ",
  ">",
  "> quoted",
  "- [x] ",
  "- [ ] ",
  "* [x] done",
  "1. ",
  "```",
  "~~~",
  "```markdown",
  "<!--",
  "-->",
  "<!-- - id: b -->",
  "<script>",
  "</details>",
  "\n",
  "\n\n",
  "\r\n",
  "\r",
  "\u2028",
  "\u2029",
  "\u0085",
  "\v",
  "\f",
  "\t",
  " ",
  "   ",
  "\u00a0",
  "\ufeff",
  "\u0000",
  "\u001b[31m",
  "\u202e",
  "\u2066",
  "\u200d",
  "\\",
  "\\\\",
  "\\u",
  "\\u0041",
  "\\u005c",
  "\\u005cu0041",
  "\\u000a## Evil",
  "\\n",
  "\ud800",
  "\udc00",
  "👩‍👩‍👧",
  "日本語",
  "ß",
  "status: approved",
  '{"at":"x"}',
  "&#10;",
  "[a]: http://x",
  "\n- id: evil\n- status: completed\n",
  "\n## Evil\n\n- id: evil\n",
  "\n### Result\n\n> forged\n",
  "",
  "a",
  "text",
];

const random = seededRandom(SEED);
const pick = (most: number) => {
  const [a = 0, b = 0, c = 0] = random.bytes(3);
  return ((a << 16) | (b << 8) | c) % most;
};
const hostile = (most = 8) =>
  Array.from({ length: pick(most) }, () => BITS[pick(BITS.length)]).join(pick(3) === 0 ? "\n" : "");

const task = (id: string, over: Partial<Task> = {}): Task => ({
  id,
  subject: `Subject of ${id}`,
  description: "",
  status: "pending",
  createdAt: "2026-11-15T06:00:00.000Z",
  version: 1,
  ...over,
});

function hostileTask(id: string): Task {
  const maybe = <Key extends keyof Task>(key: Key, value: Task[Key]) =>
    value === "" ? {} : { [key]: value };
  const names = [hostile(3), hostile(3)].filter((name) => name !== "");
  return {
    ...task(id, { subject: hostile(4), description: hostile() }),
    status: (["pending", "claimed", "completed", "failed"] as const)[pick(4)] ?? "pending",
    ...maybe("claimer", hostile(4)),
    ...maybe("result", hostile()),
    ...maybe("failureReason", hostile()),
    ...maybe("role", hostile(3)),
    ...maybe("sessionId", hostile(3)),
    ...(names.length === 0 ? {} : { blockedBy: names, decisionIds: names }),
    history: [{ at: "2026-11-15T06:00:00.000Z", what: "failed", reason: `x${hostile()}`, by: "b" }],
  };
}

test(`${TEXTS} hostile texts in every field are stored and change nothing else (seed ${SEED}) [T30 S4-67]`, () => {
  let file = parseTaskFile("Intro\n\n## Notes\n\nmine\n");
  file = putTask(putTask(file, task("a")), task("b", { description: "plain\n\ntext" }));
  const before = printTaskFile(file);
  for (let n = 0; n < TEXTS; n += 1) {
    const evil = hostileTask(`evil${n % 7 === 0 ? hostile(3) : ""}`);
    const text = printTaskFile(putTask(file, evil));
    // Exactly the three tasks are there, each as it was given, and the rest of the file byte by byte.
    const expected = [...file.tasks.values(), evil];
    expect([...parseTaskFile(text).tasks.values()]).toEqual(expected);
    expect(text.startsWith(before)).toBe(true);
    // In the middle of the file: what comes after it stays too.
    const twice = putTask(putTask(file, { ...evil, id: "a" }), { ...evil, id: "a", version: 2 });
    const middle = parseTaskFile(printTaskFile(twice));
    expect([...middle.tasks.keys()]).toEqual(["a", "b"]);
    expect(middle.tasks.get("b")).toEqual(file.tasks.get("b"));
    expect(printTaskFile(twice).slice(0, 24)).toBe(before.slice(0, 24));
    // An editor that strips white space at line ends, or git that turns all line ends, changes nothing either.
    for (const mangled of [text.replaceAll(/[ \t]+$/gm, ""), text.replaceAll("\n", "\r\n")]) {
      expect([...parseTaskFile(mangled).tasks.values()]).toEqual(expected);
    }
  }
});

test("hostile texts are read back unchanged through the store [T30 S4-67]", async () => {
  const { store, file, again, remove } = await openMarkdown();
  const tasks = Array.from({ length: 40 }, (_, n) => ({ ...hostileTask(`evil-${n}`), version: 1 }));
  for (const one of tasks) expect(await store.compareAndSwap(one, 0)).toEqual(one);
  expect(await (await again?.())?.list()).toEqual(tasks);
  for (const one of tasks) await store.compareAndSwap({ ...one, status: "pending" }, 1);
  const after = tasks.map((one) => ({ ...one, status: "pending", version: 2 }));
  expect(await store.list()).toEqual(after);
  const text = await readFile(file, "utf8");
  await writeFile(file, text);
  expect(await store.list()).toEqual(after);
  await remove?.();
});

test("control characters and bidirectional marks are escaped in the file [T13 T30]", () => {
  const evil = { ...hostileTask("evil"), description: BITS.join("|"), subject: BITS.join("|") };
  const text = printTaskFile(putTask(parseTaskFile(""), evil));
  expect(text).not.toMatch(/(?![\n\t])\p{Cc}|\p{Cs}|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/u);
});
