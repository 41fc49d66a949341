import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Policy } from "../../src/policy/policy.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { AGENT, openGate, request, rules } from "../support/port-world.ts";

let base = "";

beforeAll(async () => {
  base = await realpath(await mkdtemp(path.join(tmpdir(), "sallyport-paths-")));
  for (const folder of ["open/inner", "secret/open", "open-else"]) {
    await mkdir(path.join(base, folder), { recursive: true });
  }
  for (const file of ["open/a.txt", "secret/key", "open-else/a.txt"]) {
    await writeFile(path.join(base, file), "x");
  }
  const links: Readonly<Record<string, string>> = {
    "open/out": "../secret",
    "open/out-absolute": path.join(base, "secret"),
    "open/key": "../secret/key",
    "open/not-yet": "../secret/not-yet",
    "open/twice": "out",
    "open/loop": "loop",
    "open/back": "inner/../a.txt",
    "way-in": "open",
    "way-out": "secret",
  };
  for (const [at, to] of Object.entries(links)) await symlink(to, path.join(base, at));
});
afterAll(() => rm(base, { recursive: true, force: true }));

/** A file tool that says what it touches and leaves the disk alone. */
function fileWorld(workingDirectory: string, policy?: Policy) {
  const touched: string[] = [];
  const touch = defineTool({
    name: "file.touch",
    description: "Touches a file.",
    input: {
      type: "object",
      properties: { path: { type: "string" } },
      required: ["path"],
      additionalProperties: false,
    },
    safety: { effect: "write" },
    permissionClass: "file",
    resources: ({ input }) => [{ kind: "file", path: String(input["path"]), access: "write" }],
    execute({ input }) {
      touched.push(String(input["path"]));
      return "touched";
    },
  });
  const fileRoots = [{ path: path.join(base, "open"), access: "write" }] as const;
  const { gate } = openGate({ tools: [touch], fileRoots, ...(policy ? { policy } : {}) });
  const session = gate.sessions.open({ agent: AGENT, workingDirectory });
  const answer = async (given: string) =>
    (await session.call(request("file.touch", { path: given }))).answer;
  return { touched, answer };
}

/** From the working directory, the path as given, and what becomes of it. */
const PATHS: readonly (readonly [string, string, "done" | "pending" | "denied"])[] = [
  ["open", "a.txt", "done"],
  ["open", "./inner/../a.txt", "done"],
  ["open", "new/deeper/file", "done"],
  ["open", "back", "done"],
  ["way-in", "a.txt", "done"],
  ["", "{base}/open/a.txt", "done"],
  ["", "{base}/way-in/a.txt", "done"],
  ["open", "../open/a.txt", "done"],
  // A link and a parent step after it: where it leads, not what its letters say.
  ["open", "out/open/../../open/a.txt", "done"],
  ["open", "out/../a.txt", "pending"],
  ["open", "../secret/key", "pending"],
  ["open", "inner/../../secret/key", "pending"],
  ["open", "{base}/open/../secret/key", "pending"],
  ["open", "out/key", "pending"],
  ["open", "out-absolute/key", "pending"],
  ["open", "twice/key", "pending"],
  ["open", "key", "pending"],
  ["open", "not-yet", "pending"],
  ["open", "out/not-there/deep", "pending"],
  ["way-out", "key", "pending"],
  ["way-out", "../open/../secret/key", "pending"],
  ["secret", "open/a.txt", "pending"],
  // Whole names: a folder that only begins alike is another one.
  ["open", "../open-else/a.txt", "pending"],
  ["", "{base}/open-else/a.txt", "pending"],
  ["", "{base}", "pending"],
  // What cannot be resolved cannot be judged.
  ["open", "loop", "denied"],
  ["open", "loop/a.txt", "denied"],
  ["open", "missing/../a.txt", "denied"],
  ["open", "a.txt/../a.txt", "denied"],
  ["open", "a.txt\0.png", "denied"],
  ["open", "", "denied"],
];

test.each(PATHS)("from %j the path %j: %s [I-22]", async (from, given, expected) => {
  const { touched, answer } = fileWorld(from === "" ? "" : path.join(base, from));
  expect(await answer(given.replace("{base}", base))).toBe(expected);
  expect(touched).toHaveLength(expected === "done" ? 1 : 0);
});

test("a relative path without a working directory is refused, whatever the process stands on [I-22]", async () => {
  const { touched, answer } = fileWorld("");
  expect(await answer("a.txt")).toBe("denied");
  expect(touched).toEqual([]);
});

test("a denying rule is met by every way that leads there, an allowing one by no other [I-22]", async () => {
  const secret = path.join(base, "secret", "**");
  const deny = rules({
    id: "no",
    effect: "deny",
    tool: "file.*",
    path: secret,
    reason: "keys are here",
  });
  const closed = fileWorld(path.join(base, "open"), deny);
  for (const given of ["out/key", "twice/key", "key", "../way-out/key", "../secret/./key"]) {
    expect(await closed.answer(given), given).toBe("denied");
  }
  const allow = rules({
    id: "yes",
    effect: "allow",
    tool: "file.*",
    path: path.join(base, "way-out", "**"),
    reason: "written with a link in it",
  });
  // The rule names a link; what is compared is where a path leads, so it allows nothing behind it.
  const lax = fileWorld(path.join(base, "open"), allow);
  expect(await lax.answer("../way-out/key")).toBe("pending");
  expect([...closed.touched, ...lax.touched]).toEqual([]);
});
