import { expect, test } from "vitest";
import { sampleCall } from "./define-tool.ts";
import { directoryFor, withWorkingDirectory, workingDirectoryOf } from "./tool-call.ts";

const { context } = sampleCall({});

test("a context can carry a directory; an empty one returns the very same context [S2-78]", () => {
  const inside = withWorkingDirectory(context, "/srv/app");
  expect(inside).toEqual({ ...context, workingDirectory: "/srv/app" });
  expect(context.workingDirectory).toBe("");
  expect(withWorkingDirectory(context, "")).toBe(context);
  expect(withWorkingDirectory(inside, "")).toBe(inside);
});

test("workingDirectory returns the directory, or the empty string when none is set [S2-79]", () => {
  expect(workingDirectoryOf(withWorkingDirectory(context, "/a"))).toBe("/a");
  expect(workingDirectoryOf(context)).toBe("");
  expect(workingDirectoryOf({})).toBe("");
});

test("a directory-aware tool uses the context's directory when present and its own otherwise [S2-80]", () => {
  expect(directoryFor(withWorkingDirectory(context, "/context"), "/own")).toBe("/context");
  expect(directoryFor(context, "/own")).toBe("/own");
});

test("a nested override wins, and parallel calls do not disturb each other [S2-81]", async () => {
  const outer = withWorkingDirectory(context, "/outer");
  const inner = withWorkingDirectory(outer, "/inner");
  expect([workingDirectoryOf(inner), workingDirectoryOf(outer)]).toEqual(["/inner", "/outer"]);
  const seen = await Promise.all(
    ["/a", "/b", "/c"].map(async (directory) => {
      const own = withWorkingDirectory(outer, directory);
      await Promise.resolve();
      return workingDirectoryOf(own);
    }),
  );
  expect(seen).toEqual(["/a", "/b", "/c"]);
});
