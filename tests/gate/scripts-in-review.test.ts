// An approval of a command holds for the scripts that it names as they were when the reviewer read them.

import { mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { shellRun } from "../../src/tools/builtin/shell-run.ts";
import { sampleCall } from "../../src/tools/define-tool.ts";
import type { JsonObject } from "../../src/util/json.ts";
import { AGENT, approve, decisionIdOf, openGate, request } from "../support/port-world.ts";

let base = "";
let folder = "";
const at = (...names: string[]) => path.join(folder, ...names);

beforeEach(async () => {
  base = await realpath(await mkdtemp(path.join(tmpdir(), "sallyport-scripts-")));
  folder = path.join(base, "app");
  await mkdir(at("sub"), { recursive: true });
  await mkdir(at("bin"));
  for (const name of ["check.sh", "sub/deep.sh", "bin/tool"]) {
    await writeFile(at(name), "#!/bin/sh\necho honest\n", { mode: 0o755 });
  }
  await writeFile(at("x.js"), "console.log('honest')\n");
  await writeFile(at("package.json"), '{"scripts":{"test":"echo honest"}}');
  await writeFile(at("Makefile"), "all:\n\techo honest\n");
  await writeFile(at(".env"), "SECRET=swordfish\n");
  await writeFile(path.join(base, "outside.sh"), "echo honest\n", { mode: 0o755 });
  await symlink(at("check.sh"), at("link.sh"));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
});

async function ask(command: string) {
  const { gate, tap } = openGate({
    tools: [shellRun({ environment: { PATH: "./bin:/usr/bin:/bin" } })],
  });
  const session = gate.sessions.open({ agent: AGENT, workingDirectory: folder });
  const id = decisionIdOf(await session.call(request("shell.run", { command })));
  const shown = await gate.interactions.shown(id);
  const [dryRun = {}] = (shown?.preview.dryRun ?? []) as JsonObject[];
  return { gate, tap, id, dryRun };
}

const EVIL = "#!/bin/sh\ntouch PWNED\n";
/** A command, and the file that is changed between the showing and the yes. */
const COMMANDS: readonly (readonly [string, string])[] = [
  ["./check.sh", "check.sh"],
  ["bash check.sh", "check.sh"],
  ["sh -c './check.sh && echo done'", "check.sh"],
  ["cd sub && ./deep.sh", "sub/deep.sh"],
  ["echo a; ./link.sh", "check.sh"],
  ["node x.js", "x.js"],
  ["node x", "x.js"],
  ["sh c*.sh", "check.sh"],
  ["tool", "bin/tool"],
  ["npm test", "package.json"],
  ["make all", "Makefile"],
  ["sh < check.sh", "check.sh"],
  ["node --import=./x.js -e 1", "x.js"],
  ["sh ../outside.sh", "../outside.sh"],
  ["sh ./'check'.sh", "check.sh"],
  ["sh ./new.sh || true", "new.sh"],
];

test.each(COMMANDS)(
  "%j goes back to review when %s is changed before the yes [M1]",
  async (command, file) => {
    const { gate, id } = await ask(command);
    await writeFile(at(file), EVIL, { mode: 0o755 });
    const [answer] = await approve(gate, id);
    expect(answer).toMatchObject({
      answer: "pending",
      text: expect.stringContaining("not what was approved"),
    });
    expect(await readdir(folder)).not.toContain("PWNED");
  },
);

test("a script that is changed after the yes, before the command starts, is not run [M1]", async () => {
  const { gate, id, tap } = await ask("./check.sh");
  tap.after = async ({ steps }) => {
    const isIntent = steps.some((step) => step.op === "insert" && step.table.name === "operations");
    if (isIntent) await writeFile(at("check.sh"), EVIL, { mode: 0o755 });
  };
  expect((await approve(gate, id))[0]?.answer).toBe("failed");
  expect(await readdir(folder)).not.toContain("PWNED");
});

test("the dry run shows names, short hashes and the text of scripts, and of other files no text [M1]", async () => {
  const { dryRun, gate, id } = await ask("./check.sh .env; cat x.js");
  expect(dryRun["summary"]).toMatch(/check\.sh [0-9a-f]{12}/);
  expect(dryRun["preview"]).toContain("echo honest");
  expect(dryRun["preview"]).toMatch(/\.env \(17 bytes, sha256 [0-9a-f]{12}\)/);
  expect(dryRun["preview"]).not.toContain("swordfish");
  expect(dryRun["preview"]).not.toContain("console.log");
  expect((await approve(gate, id))[0]?.answer).toBe("done");
  const outside = await ask("sh ../outside.sh");
  expect(outside.dryRun["preview"]).toContain("outside.sh");
  expect(outside.dryRun["preview"]).not.toContain("echo honest");
});

test("what is beyond the limits is said in the preview, and looking stays quick [M1]", async () => {
  await mkdir(at("many"));
  for (let n = 0; n < 80; n += 1) await writeFile(at("many", `${n}.sh`), String(n));
  await writeFile(at("huge.bin"), Buffer.alloc(17 * 1024 * 1024));
  expect((await ask("cat many/*.sh")).dryRun["preview"]).toContain("16 more files");
  const huge = await ask("./huge.bin");
  expect(huge.dryRun["preview"]).toContain("too large to be hashed");
  await writeFile(at("huge.bin"), Buffer.alloc(18 * 1024 * 1024));
  expect((await approve(huge.gate, huge.id))[0]?.answer).toBe("pending");
  expect((await ask('sh "$HOME/x.sh" */deep.sh')).dryRun["preview"]).toContain("works these out");
  const words = await shellRun({ directory: folder }).dryRun?.(
    sampleCall({ command: "a=b,c:d@e ".repeat(3_000) }),
  );
  expect(words?.preview).toContain("more words");
});
