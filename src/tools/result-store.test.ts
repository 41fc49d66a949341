import { execFileSync } from "node:child_process";
import {
  chmod,
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { manualClock } from "../util/clock.ts";
import { createIds } from "../util/ids.ts";
import { seededRandom } from "../util/random.ts";
import { openResultStore, type ResultStore } from "./result-store.ts";

const owner = { tenant: "t1", sessionId: "s1" };
const SECRET = "what lies outside";
let root: string;
let directory: string;
let store: ResultStore;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "sallyport-results-"));
  directory = join(root, "results");
  await writeFile(join(root, "outside.txt"), SECRET);
  store = await openResultStore({ directory, ids: newIds(), maxBytes: 1_000_000 });
});

afterEach(async () => {
  await store.close();
  await rm(root, { recursive: true, force: true });
});

function newIds() {
  return createIds({ clock: manualClock(1_700_000_000_000), random: seededRandom("results") });
}

test("a stored result can be read whole and in parts without splitting a character [S2-90 I-48]", async () => {
  const text = "aä€😀".repeat(500);
  const { id, path } = await store.save(owner, text);
  expect(await readFile(path, "utf8")).toBe(text);
  expect((await store.read(owner, id))?.text).toBe(text);
  let joined = "";
  for (let offset = 0, end = false; !end; ) {
    const part = await store.read(owner, id, { offset, length: 7 });
    expect(part!.nextOffset).toBeGreaterThan(offset);
    joined += part!.text;
    offset = part!.nextOffset;
    end = offset === part!.totalBytes;
  }
  expect(joined).toBe(text);
  expect(await store.read(owner, id, { offset: 1e9 })).toMatchObject({
    text: "",
    totalBytes: 5_000,
  });
});

test("a result is there for its own tenant and session only [T20 S2-92]", async () => {
  const { id } = await store.save(owner, "mine");
  expect(await store.read({ ...owner, tenant: "t2" }, id)).toBeUndefined();
  expect(await store.read({ ...owner, sessionId: "s2" }, id)).toBeUndefined();
  expect(await store.read({ tenant: "t1s1", sessionId: "" }, id)).toBeUndefined();
  expect((await store.read(owner, id))?.text).toBe("mine");
});

test("files have generated names and are readable by their owner only [T29]", async () => {
  const hostile = { tenant: "../../etc", sessionId: "/abs\0/..\\x" };
  const { path } = await store.save(hostile, "x");
  expect(dirname(path)).toBe(directory);
  expect(basename(path)).toMatch(/^[0-9a-f-]{36}-[0-9a-f]{32}\.txt$/);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect((await stat(directory)).mode & 0o777).toBe(0o700);
});

const SEEDS = [
  "..",
  ".",
  "",
  "/",
  "\0",
  "../outside.txt",
  "..\\outside.txt",
  "/etc/passwd",
  "C:\\Windows",
  "\\\\server\\share",
  "CON",
  "NUL",
  "aux.txt",
  "%2e%2e%2foutside.txt",
  "..%00",
  "~",
  "~root",
  "$HOME",
  "`id`",
  "outside.txt",
  "./outside.txt",
  "....//outside.txt",
  "/proc/self/environ",
  "/dev/zero",
  "file:///etc/passwd",
  "．．／outside.txt",
  "..\u2215outside.txt",
  "\u202etxt.edistuo",
  "a".repeat(5_000),
  "-rf",
  "*",
  "?",
  "..\n",
  "\ud800",
];

test(`hostile names lead nowhere (${scale()} of them) [T29]`, async () => {
  const { id } = await store.save(owner, "inside");
  const random = seededRandom("names");
  const int = (below: number) => new DataView(random.bytes(4).buffer).getUint32(0) % below;
  const pick = () => SEEDS[int(SEEDS.length)]!;
  const before = await readdir(root);
  for (let round = 0; round < scale(); round += 1) {
    const shapes = [
      pick(),
      `${pick()}${id}`,
      `${id}${pick()}`,
      `${pick()}/${id}`,
      id.replace("-", pick() || "x"),
      `${id.toUpperCase()}`,
      `${pick()}${pick()}`,
    ];
    const name = shapes[int(shapes.length)]!;
    if (name === id) continue;
    expect(await store.read(owner, name), JSON.stringify(name)).toBeUndefined();
  }
  expect(await store.read(owner, undefined as never)).toBeUndefined();
  expect(await store.read(owner, { toString: () => id } as never)).toBeUndefined();
  expect([await readdir(root), await readdir(directory)]).toEqual([
    before,
    [expect.stringContaining(id)],
  ]);
});

test("links, pipes and directories in the place of a file are not read [T29]", async () => {
  const replaced = async (put: (path: string) => Promise<unknown> | unknown) => {
    const { id, path } = await store.save(owner, "mine");
    await rm(path);
    await put(path);
    return store.read(owner, id);
  };
  expect(await replaced((path) => symlink(join(root, "outside.txt"), path))).toBeUndefined();
  expect(await replaced((path) => link(join(root, "outside.txt"), path))).toBeUndefined();
  expect(await replaced((path) => mkdir(path))).toBeUndefined();
  expect(await replaced((path) => execFileSync("mkfifo", [path]))).toBeUndefined();
  expect(await replaced(() => {})).toBeUndefined();
});

test("a file is never written over or through a link [T29]", async () => {
  const next = newIds().next();
  const probe = await store.save(owner, "first");
  expect(probe.id).toBe(next);
  await store.close();
  const name = basename(probe.path);
  await rm(probe.path);
  await symlink(join(root, "outside.txt"), join(directory, name));
  store = await openResultStore({ directory, ids: newIds() });
  await expect(store.save(owner, "overwritten")).rejects.toThrow("EEXIST");
  expect(await readFile(join(root, "outside.txt"), "utf8")).toBe(SECRET);
});

test("a directory that is swapped while the store is open is not followed [T29]", async () => {
  const { id } = await store.save(owner, "mine");
  const elsewhere = join(root, "elsewhere");
  await mkdir(elsewhere);
  await rename(directory, join(root, "moved"));
  await symlink(elsewhere, directory);
  if (process.platform === "linux") expect((await store.read(owner, id))?.text).toBe("mine");
  const saved = await store.save(owner, "second").catch(() => undefined);
  expect(await readdir(elsewhere)).toEqual([]);
  if (saved !== undefined) expect(await readdir(join(root, "moved"))).toHaveLength(2);
});

test("a directory that is a link or world-writable is refused [T29]", async () => {
  const loose = join(root, "loose");
  await mkdir(loose);
  await chmod(loose, 0o777);
  await expect(openResultStore({ directory: loose, ids: newIds() })).rejects.toThrow(
    "It is world-writable",
  );
  await symlink(directory, join(root, "linked"));
  await expect(openResultStore({ directory: join(root, "linked"), ids: newIds() })).rejects.toThrow(
    "It is a link",
  );
});

test("an output over the limit is refused and leaves nothing behind [T25]", async () => {
  await expect(store.save(owner, "x".repeat(1_000_001))).rejects.toThrow("payload_too_large");
  expect(await readdir(directory)).toEqual([]);
});

function scale(): number {
  return process.env["SCALE"] === "full" ? 2_000 : 200;
}
