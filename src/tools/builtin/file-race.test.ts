import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { sha256Hex } from "../../util/hash.ts";
import { sampleCall } from "../define-tool.ts";
import { replaceFile } from "./file-change.ts";
import { readState, withFolder } from "./file-place.ts";
import { filesWrite } from "./files.ts";

let base = "";

beforeEach(async () => {
  base = await realpath(await mkdtemp(path.join(tmpdir(), "sallyport-race-")));
  await mkdir(path.join(base, "in/sub"), { recursive: true });
  await mkdir(path.join(base, "out/sub"), { recursive: true });
  await writeFile(path.join(base, "out/sub/secret"), "secret");
});

afterEach(() => rm(base, { recursive: true, force: true }));

const replacement = {
  bytes: Buffer.from("x"),
  mode: undefined,
  expected: "absent",
  maxBytes: 1024,
};

test("a link put in place of the resolved file or of any folder above it is not followed [T29]", async () => {
  await symlink(path.join(base, "out/sub/secret"), path.join(base, "in/sub/file"));
  const file = path.join(base, "in/sub/file");
  await expect(readState(file, 1024)).rejects.toThrow("not a plain file");
  await expect(replaceFile(file, replacement)).rejects.toThrow("not a plain file");

  await rename(path.join(base, "in"), path.join(base, "in-before"));
  await symlink(path.join(base, "out"), path.join(base, "in"));
  await expect(readState(path.join(base, "in/sub/secret"), 1024)).rejects.toThrow("A link was put");
  await expect(replaceFile(path.join(base, "in/sub/new"), replacement)).rejects.toThrow(
    "A link was put",
  );
  expect(await readFile(path.join(base, "out/sub/secret"), "utf8")).toBe("secret");
  expect(await readdir(path.join(base, "out/sub"))).toEqual(["secret"]);
});

test("a folder swapped while it is held open does not lead elsewhere [T29]", async () => {
  await withFolder(path.join(base, "in/sub"), async (held) => {
    await rename(path.join(base, "in/sub"), path.join(base, "in/moved"));
    await symlink(path.join(base, "out/sub"), path.join(base, "in/sub"));
    await writeFile(path.join(held, "late"), "x");
  });
  expect(await readdir(path.join(base, "in/moved"))).toEqual(["late"]);
  expect(await readdir(path.join(base, "out/sub"))).toEqual(["secret"]);
});

test("1,000 writes against a folder that flips to a link never land outside [T29]", async () => {
  const [real, link] = [path.join(base, "in/sub"), path.join(base, "in/link")];
  await symlink(path.join(base, "out/sub"), link);
  let isOver = false;
  const flipping = (async () => {
    for (; !isOver; ) {
      await rename(real, path.join(base, "in/away"));
      await rename(link, real);
      await rename(real, link);
      await rename(path.join(base, "in/away"), real);
      // It rests where writes may land, or on a busy machine all of them could meet a link.
      await setTimeout(1);
    }
  })();
  // The place is resolved while the folder is real; a call that resolves the link itself is the gate's to refuse.
  const outcomes = { written: 0, refused: 0 };
  const isOneSided = () => outcomes.written === 0 || outcomes.refused === 0;
  for (let round = 0; round < 1_000 || (round < 20_000 && isOneSided()); round += 1) {
    const done = replaceFile(path.join(real, `f${round}`), replacement);
    await done.then(
      () => (outcomes.written += 1),
      () => (outcomes.refused += 1),
    );
  }
  isOver = true;
  await flipping;
  expect(await readdir(path.join(base, "out/sub"))).toEqual(["secret"]);
  expect(outcomes.written).toBeGreaterThan(0);
  expect(outcomes.refused).toBeGreaterThan(0);
});

test("of 50 writers that expect the same content exactly one creates, and readers see whole files [T4]", async () => {
  const write = filesWrite();
  const contents = Array.from({ length: 50 }, (_, n) => String(n).repeat(50_000));
  const results = await Promise.all(
    contents.map((content) =>
      write.execute(
        sampleCall({ path: path.join(base, "one"), content, expectedSha256: "absent" }),
      ),
    ),
  );
  expect(results.filter((result) => result.isError !== true)).toHaveLength(1);
  const whole = await readFile(path.join(base, "one"), "utf8");
  const winner = results.findIndex((result) => result.isError !== true);
  expect(sha256Hex(whole)).toBe(sha256Hex(contents[winner] as string));
  expect((await readdir(base)).sort()).toEqual(["in", "one", "out"]);
});
