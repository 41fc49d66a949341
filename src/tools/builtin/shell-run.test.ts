import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { JsonObject } from "../../util/json.ts";
import { sampleCall } from "../define-tool.ts";
import { safetyClassOf } from "../tool.ts";
import { makeUndo } from "../tool-call.ts";
import { shellRun } from "./shell-run.ts";

let folder = "";

beforeEach(async () => {
  folder = await realpath(await mkdtemp(path.join(tmpdir(), "sallyport-shell-")));
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

const run = (input: JsonObject, options = {}, signal = new AbortController().signal) =>
  shellRun(options).execute(sampleCall(input, { workingDirectory: folder, signal }));

test("a command runs in the context's directory and gives exit code and both outputs [S2-80]", async () => {
  const result = await run({ command: "pwd; echo no >&2; exit 3" });
  expect(result).toMatchObject({
    isError: true,
    data: { exitCode: 3, stdout: `${folder}\n`, stderr: "no\n", endedBy: "itself" },
  });
  expect(result.text).toContain("Exit code 3");
  const nowhere = await shellRun().execute(sampleCall({ command: "pwd" }));
  expect(nowhere).toMatchObject({ isError: true, data: { refused: "unusable" } });
  const own = await shellRun({ directory: folder }).execute(sampleCall({ command: "pwd" }));
  expect(own.data).toMatchObject({ stdout: `${folder}\n`, exitCode: 0 });
});

test("a command inherits no secret [T22]", async () => {
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "canary-1");
  vi.stubEnv("NODE_OPTIONS", "--no-warnings");
  const { text } = await run({ command: "env" }, { environment: { GIVEN: "yes" } });
  expect(text).not.toContain("canary-1");
  expect(text).not.toContain("NODE_OPTIONS");
  expect(text).toContain("GIVEN=yes");
  expect(text).toContain("PATH=");
});

test("a command that takes too long ends with all it has started", async () => {
  const command = "(sleep 30; echo late > late) & echo $! > child; trap '' TERM; sleep 30; echo on";
  const result = await run({ command, timeoutMs: 300 });
  expect(result).toMatchObject({ isError: true, data: { endedBy: "timeout" } });
  expect(result.text).toContain("300 ms");
  await expectGone();
});

test("cancelling ends the whole process group", async () => {
  const stop = new AbortController();
  const running = run({ command: "sleep 30 & echo $! > child; wait" }, {}, stop.signal);
  await vi.waitFor(
    async () => expect(await readFile(path.join(folder, "child"), "utf8")).not.toBe(""),
    60_000,
  );
  stop.abort();
  expect((await running).data).toMatchObject({ endedBy: "abort" });
  await expectGone();
});

test("background processes of a command end with it", async () => {
  const result = await run({ command: "sleep 30 & echo $! > child; echo done" });
  expect(result.data).toMatchObject({ exitCode: 0, stdout: "done\n" });
  await expectGone();
});

test("output beyond the limit is dropped and counted", async () => {
  const command = "head -c 5000000 /dev/zero | tr '\\0' x";
  const { data, text } = await run({ command }, { maxOutputBytes: 1000 });
  expect(data).toMatchObject({ stdout: "x".repeat(1000), droppedBytes: 4_999_000, exitCode: 0 });
  expect(text).toContain("4999000 more bytes");
});

test("the undo record is irreversible and has a guide; the gate gets the command [S2-100]", async () => {
  const tool = shellRun();
  const call = sampleCall({ command: "echo hi" }, { workingDirectory: folder });
  const { undo } = await makeUndo(tool, call, await tool.execute(call));
  expect(undo).toMatchObject({ irreversible: true, tool: "" });
  expect(undo?.manualGuide).toContain("echo hi");
  expect(safetyClassOf(tool)).toBe("irreversible");
  expect(tool.resources?.({ command: "a && b" }, { workingDirectory: "" })).toEqual([
    { kind: "command", command: "a && b" },
  ]);
});

test("a command that cannot be started is refused", async () => {
  expect(await run({ command: "a\0b" })).toMatchObject({ isError: true });
  expect(await run({ command: "true" }, { shell: "/no/such/shell" })).toMatchObject({
    isError: true,
    data: { refused: "unusable" },
  });
});

async function expectGone(): Promise<void> {
  const pid = Number(await readFile(path.join(folder, "child"), "utf8"));
  expect(pid).toBeGreaterThan(1);
  // A killed process stays visible until its new parent has looked at it.
  await vi.waitFor(async () => {
    const state = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "gone");
    expect(state).toMatch(/^gone$|\) Z /);
  }, 10_000);
}
