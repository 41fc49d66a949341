// What a command starts ends with it, also what leaves its process group.

import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { shellRun } from "../../src/tools/builtin/shell-run.ts";
import { AGENT, approve, decisionIdOf, openGate, request } from "../support/port-world.ts";

let folder = "";
beforeEach(async () => {
  folder = await realpath(await mkdtemp(path.join(tmpdir(), "sallyport-left-")));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
});

async function run(command: string, timeoutMs = 20_000) {
  const { gate } = openGate({ tools: [shellRun()] });
  const session = gate.sessions.open({ agent: AGENT, workingDirectory: folder });
  const id = decisionIdOf(await session.call(request("shell.run", { command, timeoutMs })));
  const [answer] = await approve(gate, id);
  return answer;
}

async function expectGone(name = "child"): Promise<void> {
  const pid = Number(await readFile(path.join(folder, name), "utf8"));
  expect(pid).toBeGreaterThan(1);
  // A killed process stays visible until its new parent has looked at it.
  await vi.waitFor(async () => {
    const state = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "gone");
    expect(state).toMatch(/^gone$|\) Z /);
  });
}

// skip: other systems show no environment of a process
const onLinux = test.runIf(process.platform === "linux");

const LEAVES: readonly (readonly [string, string])[] = [
  [
    "in a session of its own",
    "setsid sh -c 'echo $$ > child; exec sleep 30' & sleep 0.3; echo done",
  ],
  [
    "without our pipes",
    "setsid sh -c 'echo $$ > child; exec sleep 30' </dev/null >/dev/null 2>&1 & sleep 0.3; echo done",
  ],
  [
    "forked twice",
    "(setsid sh -c '(setsid sh -c \"echo \\$\\$ > child; exec sleep 30\" &) ; exit 0' >/dev/null 2>&1 &) ; sleep 0.4; echo done",
  ],
  [
    "one that keeps starting the next",
    "setsid sh -c 'echo $$ > child; for n in $(seq 200); do setsid sleep 5 & sleep 0.01; done' >/dev/null 2>&1 & sleep 0.3; echo done",
  ],
];

onLinux.each(LEAVES)("a process %s is ended with the command [L8]", async (_, command) => {
  const started = Date.now();
  expect((await run(command))?.answer).toBe("done");
  expect(Date.now() - started).toBeLessThan(15_000);
  await expectGone();
});

onLinux("a command that runs out of time takes its own sessions with it [L8]", async () => {
  const command = "setsid sh -c 'echo $$ > child; exec sleep 30' & sleep 30";
  const answer = await run(command, 500);
  expect(answer?.answer).toBe("failed");
  await expectGone();
});

onLinux(
  "a process that erased its environment may stay, but does not hold up the answer [L8]",
  async () => {
    const command =
      "env -i setsid /bin/sh -c 'echo $$ > child; exec /bin/sleep 30' & sleep 0.3; echo done";
    const started = Date.now();
    expect((await run(command))?.answer).toBe("done");
    expect(Date.now() - started).toBeLessThan(15_000);
    const pid = Number(await readFile(path.join(folder, "child"), "utf8"));
    process.kill(pid, "SIGKILL");
  },
);
