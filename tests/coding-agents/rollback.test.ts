// A session that edited 20 files and ran 5 commands, on the published hosts: rolled back from the command line, the tree is as it
// was, byte for byte, and each command is listed for a person.

import { execFile } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { HOSTS, type HostName } from "../support/hosts/run-host.ts";
import { installHosts, noHosts } from "../support/hosts.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import type { Script, ScriptedTurn } from "../support/scripted-model.ts";
import { openWorld, PROGRAM, treeOf, type World } from "./world.ts";

type Call = NonNullable<ScriptedTurn["calls"]>[number];

interface Editor {
  /** Started with these, so that the host offers its own tools for files. */
  readonly args?: readonly string[];
  /** What has to be read before it may be changed. */
  read?(id: string, file: string): Call;
  change(id: string, file: string, from: string, to: string): Call;
}

const overwrite = (host: HostName) => (id: string, file: string, _from: string, to: string) =>
  HOSTS[host].write(id, file, to);

const EDITORS: Readonly<Record<HostName, Editor>> = {
  "claude-code": {
    read: (id, file_path) => ({ id, name: "Read", input: { file_path } }),
    change: overwrite("claude-code"),
  },
  codex: {
    args: ["-m", "gpt-5.5"],
    change(id, file, from, to) {
      const [removed, added] = [from, to].map((text) => text.split(/\r?\n/)[0]);
      const input = `*** Begin Patch\n*** Update File: ${file}\n@@\n-${removed}\n+${added}\n*** End Patch`;
      return { id, name: "apply_patch", input };
    },
  },
  gemini: { change: overwrite("gemini") },
  opencode: {
    read: (id, filePath) => ({ id, name: "read", input: { filePath } }),
    change: overwrite("opencode"),
  },
};

const names = scaled<readonly HostName[]>({
  test: ["claude-code", "codex"],
  proof: ["claude-code", "codex", "gemini"],
  full: ["claude-code", "codex", "gemini", "opencode"],
});

beforeAll(async () => {
  if (noHosts === undefined) await installHosts();
});

// skip: the programs are hundreds of megabytes
describe.skipIf(noHosts !== undefined).each(names)("%s", { timeout: 400_000 }, (name) => {
  test("a session of 20 edits and 5 commands is rolled back byte for byte", async () => {
    const world = await openWorld(name, { commands: [["cp", "**"]] });
    const { change, read, args = [] } = EDITORS[name];
    const { shell, write } = HOSTS[name];
    const file = (n: number) =>
      path.join(world.project, n < 10 ? `f${n}.txt` : `new/deep/f${n}.txt`);
    const first = (n: number) => `line ${n}\n\té ${n}\n`;
    for (let n = 0; n < 10; n += 1) writeFileSync(file(n), first(n));
    const before = treeOf(world.project);
    const ten = Array.from({ length: 10 }, (_, n) => n);
    const turns: ScriptedTurn[] = [
      ...(read === undefined ? [] : [{ calls: ten.map((n) => read(`call_r${n}`, file(n))) }]),
      { calls: ten.map((n) => change(`call_c${n}`, file(n), first(n), `first ${n}\n`)) },
      { calls: ten.map((n) => write(`call_w${n}`, file(n + 10), `new ${n}\n`)) },
      {
        calls: [0, 1, 2].map((n) => change(`call_d${n}`, file(n), `first ${n}\n`, `second ${n}\n`)),
      },
      { calls: [1, 2, 3, 4, 5].map((n) => shell(`call_s${n}`, `cp f${n}.txt copy${n}.txt`)) },
    ];
    await world.run(played(turns), { args });
    const seen = [...world.told.values()].join("\n").slice(0, 3_000);
    expect(world.read("f0.txt"), seen).toMatch(/^second 0\n/);
    expect(world.read("new/deep/f19.txt"), seen).toBe("new 9\n");
    expect(world.read("copy5.txt"), seen).toMatch(/^first 5\n/);
    const report = await rolledBack(world);
    for (let n = 1; n <= 5; n += 1) rmSync(path.join(world.project, `copy${n}.txt`));
    const isSame = treeOf(world.project) === before;
    const figures = { stories: 1, "ungated effects": isSame ? 0 : 1, twice: 0 };
    record({ goal: "HOSTS-stories", what: `${name}: a session is rolled back`, figures });
    expect(report.undone).toHaveLength(23);
    const guides = report.irreversible.map(({ guide }) => /cp f\d/.exec(guide)?.[0]).sort();
    expect(guides).toEqual([1, 2, 3, 4, 5].map((n) => `cp f${n}`));
    expect(treeOf(world.project)).toBe(before);
  });
});

/** One turn after the other; a host may ask its model for other things in between, without tools. */
function played(turns: readonly ScriptedTurn[]): Script {
  let turn = 0;
  return () => turns[turn++] ?? { text: "done" };
}

interface Report {
  readonly undone: readonly unknown[];
  readonly irreversible: readonly { readonly guide: string }[];
}

/** As the guide says, in a process of its own. */
async function rolledBack(world: World): Promise<Report> {
  const { gate } = world.served;
  const [session] = await world.served.store
    .tenant("default")
    .sessions.list({ after: 0, limit: 1 });
  expect((await gate.operations.listBySession(session?.id ?? "")).length).toBeGreaterThan(20);
  const { link } = world.served;
  const [file = "", ...args] = PROGRAM;
  const cli = ["--data", world.data, "--json", "--link", link];
  const words = [...cli, "sessions", "rollback", session?.id ?? ""];
  const { stdout } = await promisify(execFile)(file, [...args, ...words]);
  return JSON.parse(stdout) as Report;
}
