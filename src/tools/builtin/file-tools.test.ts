import { createHash } from "node:crypto";
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { JsonValue } from "../../util/json.ts";
import { sampleCall } from "../define-tool.ts";
import type { Tool, ToolResult } from "../tool.ts";
import { makeUndo, type UndoRecord } from "../tool-call.ts";

import { fileTools } from "./files.ts";

let folder = "";
let outside = "";

beforeEach(async () => {
  const base = await realpath(await mkdtemp(path.join(tmpdir(), "sallyport-files-")));
  folder = path.join(base, "work");
  outside = path.join(base, "outside");
  await mkdir(folder);
  await mkdir(outside);
});

afterEach(() => rm(path.dirname(folder), { recursive: true, force: true }));

const tools = new Map(fileTools().map((tool) => [tool.name, tool]));

function toolNamed(name: string): Tool {
  return tools.get(name) as Tool;
}

function run(name: string, input: JsonValue): Promise<ToolResult> {
  return toolNamed(name).execute(sampleCall(input, { workingDirectory: folder }));
}

async function runWithUndo(name: string, input: JsonValue) {
  const call = sampleCall(input, { workingDirectory: folder });
  const result = await toolNamed(name).execute(call);
  const { undo, lost } = await makeUndo(toolNamed(name), call, result);
  expect(lost).toBeUndefined();
  return { result, undo: undo as UndoRecord };
}

/** Through JSON and without a working directory, as after a restart. */
function undoAgain(undo: UndoRecord): Promise<ToolResult> {
  return toolNamed(undo.tool).execute(sampleCall(JSON.parse(JSON.stringify(undo.input))));
}

const at = (name: string) => path.join(folder, name);
const sha = (data: string | Uint8Array) => createHash("sha256").update(data).digest("hex");
const refusal = (code: string) => ({ isError: true, data: { refused: code } });

test("a relative path begins at the context's directory, else at the tool's own [S2-80]", async () => {
  await writeFile(at("a.txt"), "inside");
  await writeFile(path.join(outside, "a.txt"), "own");
  const read = fileTools({ directory: outside })[0] as Tool;
  const ofContext = await read.execute(sampleCall({ path: "a.txt" }, { workingDirectory: folder }));
  const ofTool = await read.execute(sampleCall({ path: "a.txt" }));
  expect(ofContext.data).toMatchObject({ content: "inside", path: at("a.txt") });
  expect(ofTool.data).toMatchObject({ content: "own" });
  const resources = (workingDirectory: string) =>
    read.resources?.({ path: "a.txt" }, { workingDirectory });
  expect(resources(folder)).toEqual([{ kind: "file", path: at("a.txt"), access: "read" }]);
  expect(resources("")).toMatchObject([{ path: path.join(outside, "a.txt") }]);
  expect(await run("files.read", { path: "none.txt" })).toMatchObject(refusal("not_found"));
});

test("files.read gives text, base64 for other bytes, parts, and the hash of the whole", async () => {
  const bytes = Buffer.from([0xff, 0, 1, 2]);
  await writeFile(at("b"), bytes);
  expect((await run("files.read", { path: "b" })).data).toMatchObject({
    encoding: "base64",
    content: bytes.toString("base64"),
    sha256: sha(bytes),
  });
  await writeFile(at("t"), "\uFEFFhello");
  const part = await run("files.read", { path: "t", offset: 3, length: 4 });
  expect(part.data).toMatchObject({ encoding: "utf8", content: "hell", totalBytes: 8 });
  expect((await run("files.read", { path: "t" })).data).toMatchObject({ content: "\uFEFFhello" });
});

test("files.read cuts no character of a text in two", async () => {
  const whole = "aä€😀".repeat(50);
  await writeFile(at("t"), whole);
  const total = Buffer.byteLength(whole);
  let text = "";
  for (let offset = 0; offset < total; ) {
    const { data } = await run("files.read", { path: "t", offset, length: 7 });
    const { content, encoding } = data as { content: string; encoding: string };
    expect(encoding).toBe("utf8");
    text += content;
    offset += Buffer.byteLength(content);
  }
  expect(text).toBe(whole);
});

test("a result that lost its undo record is reported and stays a success [S2-99]", async () => {
  const call = sampleCall({ path: "a.txt", content: "x" }, { workingDirectory: folder });
  const made = await makeUndo(toolNamed("files.write"), call, { text: "done" });
  expect(made).toEqual({ lost: expect.stringContaining("without its undo record") });
});

test("undo of a write restores the old bytes and permissions, or removes the file and its new folders [S2-96 S2-100]", async () => {
  await writeFile(at("old.bin"), Buffer.from([0, 255, 7]));
  await chmod(at("old.bin"), 0o750);
  const changed = await runWithUndo("files.write", { path: "old.bin", content: "new" });
  expect(await readFile(at("old.bin"), "utf8")).toBe("new");
  expect((await stat(at("old.bin"))).mode & 0o777).toBe(0o750);
  expect(changed.undo).toMatchObject({ tool: "files.restore", irreversible: false });
  expect((await undoAgain(changed.undo)).isError).toBeUndefined();
  expect([...(await readFile(at("old.bin")))]).toEqual([0, 255, 7]);
  expect((await stat(at("old.bin"))).mode & 0o777).toBe(0o750);

  const created = await runWithUndo("files.write", { path: "x/y/new.txt", content: "hi" });
  expect(await readFile(at("x/y/new.txt"), "utf8")).toBe("hi");
  await undoAgain(created.undo);
  expect(await readdir(folder)).toEqual(["old.bin"]);
});

test("edit, delete and move can be undone [S2-96]", async () => {
  await writeFile(at("a.txt"), "one two three");
  const edit = await runWithUndo("files.edit", { path: "a.txt", oldText: "two", newText: "$& 2" });
  expect(await readFile(at("a.txt"), "utf8")).toBe("one $& 2 three");
  const move = await runWithUndo("files.move", { from: "a.txt", to: "b.txt" });
  expect(await readdir(folder)).toEqual(["b.txt"]);
  await chmod(at("b.txt"), 0o600);
  const gone = await runWithUndo("files.delete", { path: "b.txt" });
  expect(await readdir(folder)).toEqual([]);
  for (const { undo } of [gone, move, edit]) {
    expect(await undoAgain(undo)).not.toHaveProperty("isError");
  }
  expect(await readdir(folder)).toEqual(["a.txt"]);
  expect(await readFile(at("a.txt"), "utf8")).toBe("one two three");
  expect((await stat(at("a.txt"))).mode & 0o777).toBe(0o600);
});

test("a refused call has no undo record [S2-98]", async () => {
  const call = sampleCall({ path: "none" }, { workingDirectory: folder });
  const result = await toolNamed("files.delete").execute(call);
  expect(result).toMatchObject(refusal("not_found"));
  expect(await makeUndo(toolNamed("files.delete"), call, result)).toEqual({});
});

test("undo refuses when the file changed since, and does nothing a second time [T9]", async () => {
  await writeFile(at("a.txt"), "old");
  const { undo } = await runWithUndo("files.write", { path: "a.txt", content: "new" });
  await writeFile(at("a.txt"), "a person's work");
  expect(await undoAgain(undo)).toMatchObject(refusal("conflict"));
  expect(await readFile(at("a.txt"), "utf8")).toBe("a person's work");
  await writeFile(at("a.txt"), "new");
  expect((await undoAgain(undo)).isError).toBeUndefined();
  await writeFile(at("a.txt"), "later");
  expect(await undoAgain(undo)).toMatchObject(refusal("conflict"));

  const created = await runWithUndo("files.write", { path: "made.txt", content: "1" });
  await writeFile(at("made.txt"), "2");
  expect(await undoAgain(created.undo)).toMatchObject(refusal("conflict"));
  const moved = await runWithUndo("files.move", { from: "made.txt", to: "moved.txt" });
  await writeFile(at("moved.txt"), "3");
  expect(await undoAgain(moved.undo)).toMatchObject(refusal("conflict"));
  expect((await readdir(folder)).sort()).toEqual(["a.txt", "moved.txt"]);
});

test("the probe of files.restore reports after a lost answer whether it happened [T9]", async () => {
  await writeFile(at("a.txt"), "old");
  const { undo } = await runWithUndo("files.write", { path: "a.txt", content: "new" });
  const probe = () => toolNamed("files.restore").probe?.(sampleCall(undo.input));
  expect(await probe()).toEqual({ happened: false });
  await undoAgain(undo);
  expect(await probe()).toMatchObject({ happened: true });
  await writeFile(at("a.txt"), "other");
  expect(await probe()).toMatchObject({ happened: "unknown" });
});

test("a file that is not the expected one is left alone, by every tool [T4]", async () => {
  await writeFile(at("a.txt"), "theirs");
  const expectedSha256 = sha("what I read");
  const calls: [string, Record<string, JsonValue>][] = [
    ["files.write", { path: "a.txt", content: "mine" }],
    ["files.edit", { path: "a.txt", oldText: "theirs", newText: "mine" }],
    ["files.delete", { path: "a.txt" }],
    ["files.move", { from: "a.txt", to: "b.txt" }],
  ];
  for (const [name, input] of calls) {
    const result = await run(name, { ...input, expectedSha256 });
    expect(result, name).toMatchObject(refusal("conflict"));
    expect(result.text).toContain("files.read");
  }
  const absent = { path: "a.txt", content: "x", expectedSha256: "absent" };
  expect(await run("files.write", absent)).toMatchObject(refusal("conflict"));
  expect(await readFile(at("a.txt"), "utf8")).toBe("theirs");
  const right = { path: "a.txt", content: "mine", expectedSha256: sha("theirs") };
  expect(await run("files.write", right)).toMatchObject({ data: { sha256: sha("mine") } });
  expect(await readdir(folder)).toEqual(["a.txt"]);
});

test("the state version is the content hash or absent, and changes when a link leads elsewhere [T4]", async () => {
  const write = toolNamed("files.write");
  const version = (name: string) =>
    write.stateVersion?.(sampleCall({ path: name, content: "" }, { workingDirectory: folder }));
  expect(await version("a.txt")).toBe("absent");
  expect(await version("no/such/folder.txt")).toBe("absent");
  await writeFile(at("a.txt"), "same");
  expect(await version("a.txt")).toBe(sha("same"));
  await writeFile(path.join(outside, "b.txt"), "same");
  await symlink(at("a.txt"), at("link"));
  const before = await version("link");
  await rm(at("link"));
  await symlink(path.join(outside, "b.txt"), at("link"));
  expect(await version("link")).not.toBe(before);
});

test("a dry run shows a unified diff, changes nothing, and is the same each time", async () => {
  await writeFile(at("a.txt"), "one\ntwo\n");
  const preview = async (name: string, input: JsonValue) => {
    const call = sampleCall(input, { workingDirectory: folder });
    const [first, second] = [
      await toolNamed(name).dryRun?.(call),
      await toolNamed(name).dryRun?.(call),
    ];
    expect(second).toEqual(first);
    return first?.preview;
  };
  const edit = { path: "a.txt", oldText: "two", newText: "2" };
  expect(await preview("files.edit", edit)).toContain("-two\n+2\n");
  expect(await preview("files.write", { path: "n", content: "x\n" })).toMatch(
    /\/dev\/null[\s\S]*\+x/,
  );
  expect(await preview("files.delete", { path: "a.txt" })).toMatch(/-one\n-two/);
  expect(await preview("files.move", { from: "a.txt", to: "c" })).toContain("rename to");
  expect(
    await preview("files.write", { path: "a.txt", content: "AAA=", encoding: "base64" }),
  ).toContain("Binary content");
  const many = (word: string) => Array.from({ length: 5000 }, (_, n) => `${word} ${n}`).join("\n");
  await writeFile(at("long"), many("a"));
  expect(await preview("files.write", { path: "long", content: many("b") })).toMatch(
    /Too much differs[\s\S]*\+b 0\n[\s\S]*\+b 4999\n/,
  );
  expect(await readFile(at("a.txt"), "utf8")).toBe("one\ntwo\n");
  expect((await readdir(folder)).sort()).toEqual(["a.txt", "long"]);
});

test("files.edit wants its text exactly once", async () => {
  await writeFile(at("a.txt"), "aaa b");
  const edit = (oldText: string) => run("files.edit", { path: "a.txt", oldText, newText: "x" });
  expect(await edit("aa")).toMatchObject(refusal("conflict"));
  expect(await edit("c")).toMatchObject(refusal("not_found"));
  await writeFile(at("bin"), Buffer.from([255, 254]));
  expect(await run("files.edit", { path: "bin", oldText: "a", newText: "b" })).toMatchObject(
    refusal("unusable"),
  );
  expect(await readFile(at("a.txt"), "utf8")).toBe("aaa b");
});

test("files.move overwrites nothing, and large files are refused", async () => {
  await writeFile(at("a"), "a");
  await writeFile(at("b"), "b");
  expect(await run("files.move", { from: "a", to: "b" })).toMatchObject(refusal("conflict"));
  expect(await readFile(at("b"), "utf8")).toBe("b");
  await writeFile(at("big"), Buffer.alloc(600 * 1024));
  expect(await run("files.delete", { path: "big" })).toMatchObject(refusal("too_large"));
  const content = "x".repeat(600 * 1024);
  expect(await run("files.write", { path: "n/new", content })).toMatchObject(refusal("too_large"));
  expect((await readdir(folder)).sort()).toEqual(["a", "b", "big"]);
});

test("a failed write leaves no temporary file and no folder behind [T29]", async () => {
  await writeFile(at("file"), "");
  expect(await run("files.write", { path: "file/below", content: "" })).toMatchObject(
    refusal("unusable"),
  );
  await mkdir(at("dir"));
  expect(await run("files.write", { path: "dir", content: "" })).toMatchObject(refusal("unusable"));
  expect((await readdir(folder)).sort()).toEqual(["dir", "file"]);
});

test("names that are no files are refused and nothing is written outside [T29]", async () => {
  const names = [
    "",
    "\0",
    "a\0b",
    "/",
    ".",
    "..",
    "/dev/null",
    "/dev/zero",
    "/proc/self/mem",
    "x".repeat(5000),
    `${"y".repeat(300)}`,
  ];
  for (const name of names) {
    const result = await run("files.write", { path: name, content: "x" });
    expect(result.isError, JSON.stringify(name.slice(0, 20))).toBe(true);
  }
  expect(await readdir(folder)).toEqual([]);
  expect(await readdir(outside)).toEqual([]);
});
