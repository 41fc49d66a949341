import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { manualClock } from "../util/clock.ts";
import { createIds } from "../util/ids.ts";
import { seededRandom } from "../util/random.ts";
import { sampleCall } from "./define-tool.ts";
import { openResultStore, type ResultStore } from "./result-store.ts";
import {
  createReadResult,
  createResultProcessor,
  forSharedUse,
  processResult,
} from "./tool-call.ts";

const owner = { tenant: "tenant-1", sessionId: "session-1", callId: "c-1", tool: "t.call" };
const long = `${"line of output, äöü 😀\n".repeat(200)}THE END`;
let directory: string;
let store: ResultStore;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "sallyport-processor-"));
  const ids = createIds({ clock: manualClock(1_700_000_000_000), random: seededRandom(1) });
  store = await openResultStore({ directory, ids });
});

afterEach(async () => {
  await store.close();
  await rm(directory, { recursive: true, force: true });
});

const processor = (change = {}) =>
  createResultProcessor({ store, maxCharacters: 1_000, headCharacters: 100, ...change });
const failing = {
  save: async () => {
    throw new Error("disk full");
  },
};

test("with no processor output is passed on unchanged [S2-89]", async () => {
  expect(await processResult(undefined, owner, long)).toEqual({
    text: long,
    truncated: false,
    storedPath: "",
  });
});

test("small outputs pass untouched, unmarked, and nothing is stored [I-48 S2-91]", async () => {
  for (const text of ["", "short", "x".repeat(1_000)]) {
    expect(await processResult(processor(), owner, text)).toEqual({
      text,
      truncated: false,
      storedPath: "",
    });
  }
  expect(await readdir(directory)).toEqual([]);
});

test("a long output is stored whole; its short text replaces it and its path is reported [I-48 S2-90 S2-91]", async () => {
  const result = await processResult(processor(), owner, long);
  expect(result.truncated).toBe(true);
  expect(await readFile(result.storedPath, "utf8")).toBe(long);
  expect(result.text.length).toBeLessThan(500);
  expect(result.text).toContain(long.slice(0, 100));
  expect(result.text).toMatch(
    /^\[The output has \d+ characters and is stored; its first 100 follow\. To read on, call "read_result" with \{"id":"[0-9a-f-]{36}","offset":\d+\}\.\]/,
  );
});

test("the summary contains the exact call that reads the rest [I-48]", async () => {
  const { text } = await processResult(processor(), owner, long);
  const tool = createReadResult(store);
  let rest = "";
  let next = JSON.parse(/with (\{.*?\})/.exec(text)![1]!);
  for (;;) {
    const part = await tool.execute(sampleCall({ ...next, length: 1_000 }));
    const [, body, note] = /^(.*)\n(\[.*\])$/s.exec(part.text)!;
    rest += body;
    if (note === "[End of the output.]") break;
    next = JSON.parse(/with (\{.*?\})/.exec(note!)![1]!);
  }
  expect(long.slice(0, 100) + rest).toBe(long);
});

test("the reading tool is read-only and knows its own session's results only [T20]", async () => {
  const { text } = await processResult(processor(), owner, long);
  const { id } = JSON.parse(/with (\{.*?\})/.exec(text)![1]!);
  const tool = createReadResult(store);
  expect(tool.metadata).toMatchObject({ readOnly: true, permissionClass: "readonly" });
  for (const other of [{ sessionId: "session-2" }, { tenant: "tenant-2" }]) {
    expect(await tool.execute(sampleCall({ id }, other))).toMatchObject({ isError: true });
  }
  expect(await tool.execute(sampleCall({ id: "../../etc/passwd" }))).toMatchObject({
    isError: true,
  });
});

test("when storing fails the output is cut visibly and not marked as stored [I-49 S2-91]", async () => {
  const result = await processResult(processor({ store: failing }), owner, long);
  expect(result).toMatchObject({ truncated: false, storedPath: "" });
  expect(result.text.startsWith(long.slice(0, 999))).toBe(true);
  expect(result.text).toMatch(
    /\[Cut here: \d+ more characters could not be stored \(disk full\) and are lost\./,
  );
  expect(result.text).not.toContain("THE END");
});

test("the path is in one field only, and is removed for shared destinations [S2-92]", async () => {
  const result = await processResult(processor(), owner, long);
  expect(result.text).not.toContain(directory);
  const shared = forSharedUse(result);
  expect(shared).toEqual({ text: result.text, truncated: true, storedPath: "" });
  expect(JSON.stringify(shared)).not.toContain(directory);
});

test("secrets are removed before anything is stored or shown [T22]", async () => {
  const redact = (text: string) => text.replaceAll("hunter2", "[redacted]");
  const result = await processResult(processor({ redact }), owner, `hunter2 ${long} hunter2`);
  expect(result.text).not.toContain("hunter2");
  expect(await readFile(result.storedPath, "utf8")).toBe(`[redacted] ${long} [redacted]`);
  expect((await processResult(processor({ redact }), owner, "hunter2")).text).toBe("[redacted]");
});

test("when redaction fails, nothing of the output is stored or shown [T22]", async () => {
  const redact = () => {
    throw new Error("no key");
  };
  const result = await processResult(processor({ redact }), owner, `hunter2 ${long}`);
  expect(result).toMatchObject({ truncated: false, storedPath: "" });
  expect(result.text).toMatch(/^\[The output is withheld/);
  expect(await readdir(directory)).toEqual([]);
});

test("no character is cut in two [I-48]", async () => {
  const smile = "😀".repeat(2_000);
  const { text } = await processResult(processor({ headCharacters: 101 }), owner, smile);
  expect(text.isWellFormed()).toBe(true);
  const cut = await processResult(
    processor({ store: failing, maxCharacters: 1_001 }),
    owner,
    smile,
  );
  expect(cut.text.isWellFormed()).toBe(true);
});
