// Commands that are made to be slow to look at: the gate runs on the thread that everybody waits for.

import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readShell } from "../../src/policy/shell/read-shell.ts";
import { shellRun } from "../../src/tools/index.ts";
import { AGENT, openGate } from "../support/port-world.ts";

const COMMANDS: readonly (readonly [string, string])[] = [
  ["open braces", "{".repeat(32_000)],
  ["open braces in quotes", `ls '${"{".repeat(32_000)}'`],
  ["find in find", "find -exec ".repeat(1_450)],
  ["find in find with words", "find . -name x -exec ".repeat(750)],
  ["digits", `${"0".repeat(16_000)}x`],
  ["shells in wrappers", "env nice sh -c ".repeat(1_000)],
];

test.each(COMMANDS)(
  "a command of %s is looked at without holding up the others [H6]",
  {
    timeout: 60_000,
  },
  async (_, command) => {
    const folder = realpathSync(mkdtempSync(path.join(tmpdir(), "sallyport-slow-")));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { gate } = openGate({ tools: [shellRun({ directory: folder })] });
    // In a session of its own each: the same call again would only find its open question.
    const propose = (callId: string) =>
      gate.sessions
        .open({ agent: AGENT, workingDirectory: folder })
        .call({ callId, tool: "shell.run", input: { command } });
    // The first one also loads and compiles what is used.
    expect((await propose("first")).answer).toBe("pending");
    const times: number[] = [];
    for (const callId of ["second", "third", "fourth"]) {
      const before = process.cpuUsage();
      await propose(callId);
      times.push(process.cpuUsage(before).user / 1_000);
    }
    expect(Math.min(...times)).toBeLessThan(200);
  },
);

test("find in find beyond the depth that is followed is never allowed [H6]", () => {
  const { parts } = readShell(`${"find . -exec ".repeat(40)}rm x`);
  expect(parts.length).toBeLessThan(12);
  expect(parts.at(-1)?.blocks).toContain("it has too many wrappers inside each other");
});
