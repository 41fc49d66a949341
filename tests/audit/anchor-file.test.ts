import { spawn } from "node:child_process";
import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { anchorLine, fileAnchorSink, generateSigningKey } from "../../src/audit/anchor.ts";
import { createAnchorer } from "../../src/audit/anchorer.ts";
import { verifyStore, verifyTrail } from "../../src/audit/verify.ts";
import { headAfter } from "../../src/model/audit-entry.ts";
import {
  anchorsFor,
  codesOf,
  collect,
  fakeStore,
  makeTrail,
  PUBLIC_KEYS,
  SIGNER,
} from "./fixtures.ts";

const folder = mkdtempSync(path.join(tmpdir(), "sallyport-anchors-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
function newFile(): string {
  files += 1;
  return path.join(folder, `anchors-${files}.jsonl`);
}

const trail = makeTrail("acme", 8);
const anchors = await anchorsFor(trail.map(headAfter));

test("anchors are lines of a file with access for its owner alone, read in order", async () => {
  const file = newFile();
  const sink = fileAnchorSink({ file });
  expect(await collect(sink.read())).toEqual([]);
  for (const anchor of anchors) await sink.append(anchor);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, "utf8")).toBe(
    anchors.map((anchor) => `${anchorLine(anchor)}\n`).join(""),
  );
  expect(await collect(sink.read())).toEqual(anchors);
  expect(await collect(fileAnchorSink({ file }).read())).toEqual(anchors);
});

test("a partial line left by a crash, cut at any byte, is skipped", async () => {
  const [one, two, three] = anchors.map((anchor) => `${anchorLine(anchor)}\n`) as [
    string,
    string,
    string,
  ];
  const file = newFile();
  for (let cut = 0; cut < two.length; cut += 7) {
    writeFileSync(file, one + two.slice(0, cut));
    const sink = fileAnchorSink({ file });
    expect(await collect(sink.read())).toEqual(anchors.slice(0, 1));
    await sink.append(anchors[1]!);
    await sink.append(anchors[2]!);
    expect(await collect(fileAnchorSink({ file }).read())).toEqual(anchors.slice(0, 3));
    expect(readFileSync(file, "utf8").endsWith(`\n${two}${three}`)).toBe(true);
  }
});

test("a line without its line feed is read, and gets one", async () => {
  const file = newFile();
  writeFileSync(file, anchorLine(anchors[0]!));
  const sink = fileAnchorSink({ file });
  await sink.append(anchors[1]!);
  expect(await collect(sink.read())).toEqual(anchors.slice(0, 2));
});

test("news returns the complete lines added since, by any writer", async () => {
  const file = newFile();
  const [mine, others] = [fileAnchorSink({ file }), fileAnchorSink({ file })];
  const news = () => collect(mine.news!());
  expect(await news()).toEqual([]);
  await mine.append(anchors[0]!);
  await others.append(anchors[1]!);
  expect(await news()).toEqual(anchors.slice(0, 2));
  expect(await news()).toEqual([]);
  const line = anchorLine(anchors[2]!);
  appendFileSync(file, line.slice(0, 50));
  expect(await news()).toEqual([]);
  appendFileSync(file, `${line.slice(50)}\n`);
  expect(await news()).toEqual([anchors[2]]);
  truncateSync(file, anchorLine(anchors[0]!).length + 1);
  expect(await news(), "old lines are not news, or the next anchor would hide the cut").toEqual([]);
  await others.append(anchors[3]!);
  expect(await news()).toEqual([anchors[3]]);
  const many = Array.from({ length: 500 }, () => anchors[4]!);
  appendFileSync(file, many.map((anchor) => `${anchorLine(anchor)}\n`).join(""));
  expect(await news()).toEqual(many);
});

test("a failed write is an error of this anchor, and the next one succeeds", async () => {
  const sink = fileAnchorSink({ file: path.join(folder, "missing", "anchors.jsonl") });
  await expect(sink.append(anchors[0]!)).rejects.toThrow(/ENOENT/);
  const full = fileAnchorSink({ file: "/dev/full" });
  await expect(full.append(anchors[0]!)).rejects.toThrow(/ENOSPC/);
});

test("lines removed from the file leave a hole", async () => {
  const file = newFile();
  const store = fakeStore();
  const anchorer = createAnchorer({ store, sink: fileAnchorSink({ file }), signer: SIGNER });
  for (let n = 0; n < 6; n += 1) {
    store.add("a");
    await anchorer.flush();
    if (n === 3) writeFileSync(file, readFileSync(file, "utf8").split("\n").slice(0, 2).join("\n"));
  }
  await anchorer.close();
  const report = await verifyStore(store, {
    anchors: fileAnchorSink({ file }).read(),
    publicKeys: PUBLIC_KEYS,
  });
  expect(codesOf(report)).toEqual(["anchor_hole"]);
});

test("anchorers that share a file link to each other, so that a lost end is detected", async () => {
  const file = newFile();
  const store = fakeStore();
  const open = () => createAnchorer({ store, sink: fileAnchorSink({ file }), signer: SIGNER });
  const [one, two] = [open(), open()];
  for (let n = 0; n < 6; n += 1) {
    store.add("a");
    await (n % 2 === 0 ? one : two).flush();
  }
  await Promise.all([one.close(), two.close()]);
  const all = await collect(fileAnchorSink({ file }).read());
  const check = (list: typeof all) =>
    verifyStore(store, { anchors: list, publicKeys: PUBLIC_KEYS });
  expect(await check(all)).toMatchObject({ ok: true, blindWindow: { entries: 0 } });
  const last = all.findLast((anchor) => anchor.writer !== all.at(-1)?.writer);
  expect(codesOf(await check(all.filter((anchor) => anchor !== last)))).toEqual(["anchor_hole"]);
});

test("several processes share one file without a lock, and the chain of anchors is intact", {
  timeout: 120_000,
}, async () => {
  const file = newFile();
  const { privateKey, publicKey } = generateSigningKey();
  const child = fileURLToPath(new URL("./anchor-child.ts", import.meta.url));
  const count = 25;
  const tenants = ["p1", "p2", "p3", "p4"];
  const commits = newFile();
  writeFileSync(commits, "");
  const codes = await Promise.all(
    tenants.map(
      (tenant) =>
        new Promise((resolve, reject) => {
          const args = [child, file, privateKey, commits, tenant, String(count)];
          spawn(process.execPath, args, { stdio: "inherit" })
            .on("exit", resolve)
            .on("error", reject);
        }),
    ),
  );
  expect(codes).toEqual([0, 0, 0, 0]);
  const all = await collect(fileAnchorSink({ file }).read());
  expect(new Set(all.map((anchor) => anchor.writer)).size).toBe(4);
  // Who looks while another process is writing may see half a line and end it: that leaves an empty line, and nothing else.
  const lines = readFileSync(file, "utf8").split("\n");
  expect(lines.filter((line) => line !== "")).toHaveLength(all.length);
  // The trails of the children are all alike, so they can be made again here.
  const store = fakeStore();
  for (const tenant of tenants) store.add(tenant, count);
  store.add("shared", tenants.length * count);
  const entries = [...store.trails.values()].flat();
  const report = await verifyTrail(entries, { anchors: all, publicKeys: [publicKey] });
  expect(report.problems).toEqual([]);
  expect(report.anchors).toBeGreaterThan(2 * count);
  const one = all.find((anchor) => anchor.n === 5);
  const withoutOne = all.filter((anchor) => anchor !== one);
  expect((await verifyTrail(entries, { anchors: withoutOne, publicKeys: [publicKey] })).ok).toBe(
    false,
  );
});
