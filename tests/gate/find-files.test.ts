// Tools that find files by themselves: what they meet below a judged folder is judged like a path that a call names.

import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { toModelContent } from "../../src/gate/image-result.ts";
import type { AtPoint, GateOptions } from "../../src/gate/options.ts";
import type { Rule } from "../../src/policy/policy.ts";
import type { FileToolOptions } from "../../src/tools/builtin/file-place.ts";
import { fileTools } from "../../src/tools/builtin/files.ts";
import type { JsonObject } from "../../src/util/json.ts";
import { pointLink } from "../support/flip-link.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { AGENT, approve, decisionIdOf, openGate, request } from "../support/port-world.ts";
import { scaled } from "../support/scale.ts";

let base = "";
const at = (...names: string[]) => path.join(base, ...names);

beforeEach(async () => {
  base = await realpath(await mkdtemp(path.join(tmpdir(), "sallyport-find-")));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  for (const folder of ["open/src/deep", "open/.sallyport", "open/vault", "etc/deep"]) {
    await mkdir(at(folder), { recursive: true });
  }
  const files = {
    "open/src/a.ts": "one\nNEEDLE here\n",
    "open/src/deep/b.ts": "needle\r\n",
    "open/src/deep/c.js": "NEEDLE again",
    "open/.sallyport/token": "NEEDLE SECRET",
    "open/vault/key.txt": "NEEDLE SECRET",
    "open/.env": "NEEDLE SECRET",
    "etc/outside.ts": "NEEDLE SECRET",
    "etc/deep/outside.ts": "NEEDLE SECRET",
  };
  for (const [name, text] of Object.entries(files)) await writeFile(at(name), text);
});

interface Setting {
  readonly gate?: Partial<GateOptions>;
  readonly tool?: FileToolOptions;
  readonly place?: object;
}

function openFolder({ gate: over = {}, tool = {}, place = {} }: Setting = {}) {
  const fileRoots = [{ path: at("open"), access: "write" }] as const;
  const policy = { version: "1", rules: [DENY_VAULT] };
  const world = openGate({ tools: fileTools(tool), fileRoots, policy, ...over }, place);
  const session = world.gate.sessions.open({ agent: AGENT, workingDirectory: at("open") });
  let calls = 0;
  const call = (name: string, input: JsonObject = {}) => {
    calls += 1;
    return session.call(request(name, input, `c-${calls}`));
  };
  return { ...world, session, call };
}

const DENY_VAULT: Rule = {
  id: "vault",
  effect: "deny",
  tool: "*",
  path: "/**/vault/**",
  reason: "The vault is closed.",
};

function dataOf(answer: object): Record<string, unknown> {
  return "data" in answer ? (answer.data as Record<string, unknown>) : {};
}

forEachStore(
  "finding files",
  (open) => {
    test("list, glob and grep find what may be read and nothing else", async () => {
      const place = await open();
      const { call } = openFolder({ place: { engine: place.engine, clock: place.clock } });
      const listed = await call("files.list");
      expect(listed).toMatchObject({ answer: "done" });
      expect(dataOf(listed)).toEqual({
        path: at("open"),
        more: false,
        entries: [
          { name: ".env", kind: "file" },
          { name: "src", kind: "folder" },
        ],
      });
      const globbed = await call("files.glob", { pattern: "**/*.{ts,txt}" });
      expect(dataOf(globbed)).toMatchObject({ files: ["src/a.ts", "src/deep/b.ts"], more: false });
      expect(dataOf(await call("files.glob", { pattern: "*.ts" }))).toMatchObject({ files: [] });
      const inner = { pattern: "?.ts", path: "src/deep" };
      expect(dataOf(await call("files.glob", inner))).toMatchObject({ files: ["b.ts"] });

      const found = await call("files.grep", { pattern: "NEEDLE" });
      expect(JSON.stringify(found)).not.toContain("SECRET");
      expect(dataOf(found)).toMatchObject({
        matches: [
          { file: "src/a.ts", line: 2, text: "NEEDLE here" },
          { file: "src/deep/c.js", line: 1, text: "NEEDLE again" },
        ],
        more: false,
      });
      expect(found.text).toContain("1 files need a person's consent");
      const any = { pattern: "Needle", match: "text-any-case", files: "**/*.ts" };
      expect(dataOf(await call("files.grep", any))).toMatchObject({
        matches: [{ file: "src/a.ts" }, { file: "src/deep/b.ts", text: "needle" }],
      });
      const regex = { pattern: "^[a-z]+E{2}DLE|^o\\w+$", match: "regex", path: "src/a.ts" };
      expect(dataOf(await call("files.grep", regex))).toMatchObject({
        matches: [{ file: "a.ts", line: 1 }],
      });
    });
  },
  ["memory", "sqlite"],
);

test("the gate's own files and denied places are refused as the folder itself too", async () => {
  const { call } = openFolder({ gate: { protectedPaths: [at("open/src/deep")] } });
  for (const folder of [".sallyport", "src/deep", "vault/x"]) {
    for (const tool of ["files.list", "files.grep", "files.glob"]) {
      const pattern = tool === "files.list" ? {} : { pattern: "*" };
      expect(await call(tool, { path: folder, ...pattern }), folder).toMatchObject({
        answer: "denied",
      });
    }
  }
  const found = await call("files.grep", { pattern: "e", match: "text-any-case" });
  expect(dataOf(found)).toMatchObject({ matches: [{ file: "src/a.ts" }, { file: "src/a.ts" }] });
  expect((await call("files.list", { path: "src" })).text).not.toContain("deep");
});

test("a person who approved a folder did not approve the secrets in it", async () => {
  const { call, gate } = openFolder({ gate: { fileRoots: [] } });
  const pending = await call("files.grep", { pattern: "NEEDLE", path: at("open") });
  const [found] = await approve(gate, decisionIdOf(pending));
  expect(found?.answer).toBe("done");
  expect(found?.text).toContain("NEEDLE here");
  expect(found?.text).not.toContain("SECRET");
});

test("links are named and not entered, and a link out of the folder needs consent", async () => {
  await symlink(at("etc"), at("open/out"));
  await symlink(at("etc/outside.ts"), at("open/file.ts"));
  const { call } = openFolder();
  expect((await call("files.list")).text).toContain("link out");
  for (const tool of ["files.grep", "files.glob"]) {
    const found = await call(tool, { pattern: tool === "files.grep" ? "NEEDLE" : "**" });
    expect(JSON.stringify(dataOf(found))).not.toMatch(/outside|file\.ts|SECRET/);
    expect(await call(tool, { pattern: "N", path: "out" })).toMatchObject({ answer: "pending" });
  }
});

const TOOLS = [
  ["files.list", { path: "dir" }],
  ["files.glob", { path: "dir", pattern: "**" }],
  ["files.grep", { path: "dir", pattern: "NEEDLE" }],
  ["files.read_image", { path: "dir/outside.ts" }],
] as const;

test.each(TOOLS)(
  "%s: a link turned after the gate looked is not followed [H4]",
  async (tool, input) => {
    pointLink(at("open/dir"), at("open/src"));
    await writeFile(at("open/src/outside.ts"), "");
    const flip: AtPoint = (point) => {
      if (point === "S5.after") pointLink(at("open/dir"), at("etc"));
    };
    const { call } = openFolder({ gate: { at: flip } });
    const answer = await call(tool, input);
    expect(answer).toMatchObject({ answer: "failed", data: { refused: "conflict" } });
    expect(JSON.stringify(answer)).not.toContain("SECRET");
  },
);

const ROUNDS = scaled({ test: 40, proof: 200, full: 1_000 });

test(`a folder that keeps turning into a link is never searched behind it, in ${ROUNDS} searches [T29]`, async () => {
  await symlink(at("etc"), at("open/.link"));
  const [real, link, away] = [at("open/src"), at("open/.link"), at("away")];
  let isOver = false;
  const flipping = (async () => {
    for (; !isOver; ) {
      await rename(real, away);
      await rename(link, real);
      await rename(real, link);
      await rename(away, real);
    }
  })();
  const { call } = openFolder();
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      const found = await call("files.grep", { pattern: "NEEDLE" });
      expect(JSON.stringify(found)).not.toMatch(/SECRET|outside/);
      const named = await call("files.glob", { pattern: "**" });
      expect(JSON.stringify(named)).not.toContain("outside");
    }
  } finally {
    isOver = true;
    await flipping;
  }
});

test("names with line breaks and hidden characters cannot pass for other entries", async () => {
  await writeFile(at("open/src/x\nfile fake.ts"), "NEEDLE");
  await writeFile(at("open/src/r\u202etxt.ts"), "NEEDLE\u0007\u2028bell");
  const { call } = openFolder();
  const listed = (await call("files.list", { path: "src" })).text;
  expect(listed).toContain('file "x\\nfile fake.ts"');
  expect(listed.split("\n")).not.toContain("file fake.ts");
  const found = await call("files.grep", { pattern: "NEEDLE", path: "src" });
  expect(found.text).toContain('"r\\u202etxt.ts":1: NEEDLE bell');
  expect(found.text.split("\n")).not.toContain("file fake.ts:1: NEEDLE");
  expect(dataOf(await call("files.glob", { pattern: "src/x*" }))).toMatchObject({
    files: ["src/x\nfile fake.ts"],
  });
});

test("binary, large and missing files, pipes of patterns that explode, and bad patterns [T27]", async () => {
  await writeFile(at("open/src/bin"), Buffer.from("NEEDLE\0NEEDLE"));
  await writeFile(at("open/src/latin"), Buffer.from([0xff, 0x4e]));
  await writeFile(at("open/src/large"), `NEEDLE${"x".repeat(1024 * 1024)}`);
  await writeFile(at("open/src/aaa"), `${"a".repeat(16_000)}!\n`.repeat(3));
  const { call } = openFolder();
  const found = await call("files.grep", { pattern: "NEEDLE", path: "src" });
  expect(JSON.stringify(dataOf(found))).not.toMatch(/bin|large|latin/);
  expect(found.text).toContain("1 files could not be read");
  const hard = { match: "regex", path: "src/aaa" };
  const before = performance.now();
  expect(await call("files.grep", { pattern: "^(a+)+$", ...hard })).toMatchObject({
    answer: "done",
    data: { matches: [] },
  });
  expect(await call("files.grep", { pattern: "(?=(a+)+b)a", ...hard })).toMatchObject({
    answer: "failed",
    data: { refused: "too_large" },
  });
  expect(performance.now() - before).toBeLessThan(5_000);
  for (const pattern of ["(", "(a)\\1", "(?<=a)b"]) {
    expect(await call("files.grep", { pattern, match: "regex" }), pattern).toMatchObject({
      data: { refused: "unusable" },
    });
  }
  for (const [tool, input] of [
    ["files.grep", { pattern: "a", path: "none" }],
    ["files.glob", { pattern: "a", path: "none" }],
    ["files.list", { path: "none" }],
    ["files.list", { path: "src/a.ts" }],
    ["files.read_image", { path: "none" }],
  ] as const) {
    expect(await call(tool, input)).toMatchObject({ data: { refused: "not_found" } });
  }
  expect(await call("files.glob", { pattern: "{a" })).toMatchObject({
    data: { refused: "unusable" },
  });
});

test("a huge tree ends at its limits and says so", async () => {
  await mkdir(at("open/many"));
  const names = Array.from({ length: 1_200 }, (_, n) => at(`open/many/f${n}.txt`));
  await Promise.all(names.map((name) => writeFile(name, "NEEDLE")));
  const { call } = openFolder();
  for (const [tool, input] of [
    ["files.list", { path: "many" }],
    ["files.glob", { pattern: "many/*" }],
    ["files.grep", { pattern: "NEEDLE", path: "many" }],
  ] as const) {
    const answer = await call(tool, input);
    expect(dataOf(answer)["more"], tool).toBe(true);
    expect(answer.text).toMatch(/more/);
    const [list] = Object.values(dataOf(answer)).filter((value) => Array.isArray(value));
    expect(list, tool).toHaveLength(1_000);
  }
  let deep = at("open/many/d");
  for (let depth = 0; depth < 70; depth += 1) deep = path.join(deep, "d");
  await mkdir(deep, { recursive: true });
  await writeFile(path.join(deep, "bottom.txt"), "");
  const bottom = await call("files.glob", { pattern: "**/bottom.txt" });
  expect(dataOf(bottom)).toMatchObject({ files: [], more: true });
  expect(bottom.text).toContain("64 folders deep");
  const late = openFolder({ tool: { deadlineMs: -1 } });
  expect(await late.call("files.grep", { pattern: "NEEDLE" })).toMatchObject({
    data: { more: true },
    text: expect.stringContaining("it took too long"),
  });
});

test("files.read_image gives a model the picture, by its bytes and not by its name [S2-94]", async () => {
  const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
  await writeFile(at("open/a.jpg"), png);
  await writeFile(at("open/b.png"), "<svg/>");
  await writeFile(at("open/c.png"), Buffer.concat([png, Buffer.alloc(4 * 1024 * 1024)]));
  const { call } = openFolder();
  const answer = await call("files.read_image", { path: "a.jpg" });
  expect(toModelContent(answer)).toMatchObject([
    { type: "text" },
    { type: "image", mediaType: "image/png", base64: png.toString("base64") },
  ]);
  expect(await call("files.read_image", { path: "b.png" })).toMatchObject({
    data: { refused: "unusable" },
  });
  expect(await call("files.read_image", { path: "c.png" })).toMatchObject({
    data: { refused: "too_large" },
  });
  expect(await call("files.read_image", { path: ".sallyport/token" })).toMatchObject({
    answer: "denied",
  });
});
