import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { resolveResources } from "./tool-call.ts";

let root = "";
let work = "";

beforeAll(async () => {
  root = await realpath(await mkdtemp(path.join(tmpdir(), "sallyport-resolve-")));
  work = path.join(root, "work");
  await mkdir(path.join(work, "src", "deep"), { recursive: true });
  await mkdir(path.join(root, "outside", "inner"), { recursive: true });
  await writeFile(path.join(root, "outside", "secret"), "s");
  await writeFile(path.join(work, "file"), "f");
  await symlink(path.join(root, "outside"), path.join(work, "link"));
  await symlink("../outside/inner", path.join(work, "near"));
  await symlink("src/deep", path.join(work, "down"));
  await symlink(path.join(root, "outside", "not-yet"), path.join(work, "dangling"));
  await symlink("loop-b", path.join(work, "loop-a"));
  await symlink("loop-a", path.join(work, "loop-b"));
});

afterAll(() => rm(root, { recursive: true, force: true }));

async function resolve(given: string, directory = work): Promise<string> {
  const [resource] = await resolveResources(
    [{ kind: "file", path: given, access: "write" }],
    directory,
  );
  if (resource?.kind === "unresolved") return `! ${resource.reason}`;
  return resource?.kind === "file" ? path.relative(root, resource.resolved) || "." : "?";
}

test.each([
  ["file", "work/file"],
  ["./src/../file", "work/file"],
  ["src//deep/.", "work/src/deep"],
  ["..", "."],
  ["../outside/secret", "outside/secret"],
  ["link/secret", "outside/secret"],
  ["link/../work/file", "work/file"],
  ["near", "outside/inner"],
  ["near/../secret", "outside/secret"],
  ["down/..", "work/src"],
  ["down/../..", "work"],
])(
  "links and parent steps are followed as the system follows them: %s [I-22]",
  async (given, where) => {
    expect(await resolve(given)).toBe(where);
    expect(await resolve(`${work}/${given}`, "")).toBe(where);
    const [resource] = await resolveResources(
      [{ kind: "file", path: given, access: "read" }],
      work,
    );
    expect(resource).toMatchObject({ kind: "file", path: given, access: "read" });
    if (resource?.kind === "file")
      expect(resource.resolved).toBe(await realpath(resource.resolved));
  },
);

test.each([
  ["new", "work/new"],
  ["src/new/newer", "work/src/new/newer"],
  ["link/new", "outside/new"],
  ["near/../new", "outside/new"],
  ["dangling", "outside/not-yet"],
  ["dangling/x", "outside/not-yet/x"],
])(
  "of a file that does not exist yet the nearest existing parent is resolved: %s [I-22]",
  async (given, where) => {
    expect(await resolve(given)).toBe(where);
  },
);

test("link/.. resolves to the parent of the link's target, not of the link [I-22]", async () => {
  expect(path.resolve(work, "near/../secret")).toBe(path.join(work, "secret"));
  expect(await resolve("near/../secret")).toBe("outside/secret");
});

test.each([
  ["", /empty/],
  ["a\0b", /null character/],
  ["loop-a", /too many links/],
  ["loop-a/x", /too many links/],
  ["file/x", /is a file/],
  ["missing/../file", /does not exist/],
  ["x".repeat(5000), /ENAMETOOLONG/],
])("a path that cannot be resolved is marked unresolved: %j [I-22]", async (given, reason) => {
  expect(await resolve(given)).toMatch(/^! /);
  expect(await resolve(given)).toMatch(reason);
});

test("a relative path without a working directory is not guessed [I-22]", async () => {
  expect(await resolve("file", "")).toMatch(/no working directory/);
  expect(await resolve("file", "relative/dir")).toMatch(/no working directory/);
});

test("a folder without search permission makes the path unresolved", async (context) => {
  context.skip(process.getuid?.() === 0, "root may look everywhere");
  const closed = path.join(work, "closed");
  await mkdir(closed);
  await chmod(closed, 0);
  expect(await resolve("closed/x")).toMatch(/EACCES/);
});

test("other resources pass through in order, commands with the folder they run in", async () => {
  const resources = [
    { kind: "command", command: "ls" },
    { kind: "file", path: "file", access: "read" },
    { kind: "url", url: "https://example.com/" },
    { kind: "other", id: "x", access: "write" },
  ] as const;
  const resolved = await resolveResources(resources, work);
  expect(resolved.map(({ kind }) => kind)).toEqual(["command", "file", "url", "other"]);
  expect(resolved[0]).toEqual({ ...resources[0], folder: work });
  expect(resolved[2]).toBe(resources[2]);
});
