// Between the gate's look at a path and the tool's, an agent's own process can turn a link. What the gate judged is what
// the tool opens, or nothing happens.

import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import type { AtPoint, GateOptions } from "../../src/gate/options.ts";
import { fileTools } from "../../src/tools/builtin/files.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { JsonObject } from "../../src/util/json.ts";
import { flipLink, pointLink } from "../support/flip-link.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { AGENT, approve, decisionIdOf, openGate, PERSON, request } from "../support/port-world.ts";
import { scaled } from "../support/scale.ts";

let base = "";
const at = (...names: string[]) => path.join(base, ...names);
/** The only link: inside the open folder at first. */
const turn = (to: "open/real" | "etc") => pointLink(at("open/dir"), at(to));

beforeEach(async () => {
  base = await realpath(await mkdtemp(path.join(tmpdir(), "sallyport-judged-")));
  for (const folder of ["open/real", "etc"]) await mkdir(at(folder), { recursive: true });
  await writeFile(at("open/real/a.txt"), "plain");
  await writeFile(at("etc/a.txt"), "plain SECRET");
  turn("open/real");
  onTestFinished(() => rm(base, { recursive: true, force: true }));
});

function openFolder(over: Partial<GateOptions> = {}, place = {}) {
  const fileRoots = [{ path: at("open"), access: "write" }] as const;
  const world = openGate({ tools: fileTools(), fileRoots, ...over }, place);
  const session = world.gate.sessions.open({ agent: AGENT, workingDirectory: at("open") });
  return { ...world, session };
}

async function expectUntouched(): Promise<void> {
  expect(await readdir(at("etc"))).toEqual(["a.txt"]);
  expect(await readFile(at("etc/a.txt"), "utf8")).toBe("plain SECRET");
}

const CALLS: readonly (readonly [string, JsonObject])[] = [
  ["files.read", { path: "dir/a.txt" }],
  ["files.write", { path: "dir/new.txt", content: "owned" }],
  ["files.write", { path: "dir/deep/er/new.txt", content: "owned" }],
  ["files.write", { path: "dir/a.txt", content: "owned" }],
  ["files.edit", { path: "dir/a.txt", oldText: "plain", newText: "owned" }],
  ["files.delete", { path: "dir/a.txt" }],
  ["files.move", { from: "dir/a.txt", to: "real/b.txt" }],
  ["files.move", { from: "real/a.txt", to: "dir/b.txt" }],
];

test.each(CALLS)(
  "%s %j: a link turned after the gate looked is not followed [H4]",
  async (tool, input) => {
    const flip: AtPoint = (point) => {
      if (point === "S5.after") turn("etc");
    };
    const { session } = openFolder({ at: flip });
    const answer = await session.call(request(tool, input));
    expect(JSON.stringify(answer)).not.toContain("SECRET");
    expect(answer.answer).toBe("failed");
    await expectUntouched();
    expect(await readFile(at("open/real/a.txt"), "utf8")).toBe("plain");
  },
);

test.each(CALLS.slice(1))(
  "%s %j: an approved call whose link was turned goes back to review, and stops if it is turned later [H4]",
  async (tool, input) => {
    let flipAt = "";
    const flip: AtPoint = (point) => {
      if (point === flipAt) turn("etc");
    };
    const { session, gate } = openFolder({ at: flip, fileRoots: [] });
    const first = decisionIdOf(await session.call(request(tool, input)));
    turn("etc");
    const [answer] = await approve(gate, first);
    expect(answer?.answer).toBe("pending");
    await expectUntouched();
    turn("open/real");
    const second = decisionIdOf(await session.call(request(tool, input, "c-2")));
    flipAt = "S5.after";
    const [late] = await approve(gate, second);
    expect(late?.answer).toBe("failed");
    await expectUntouched();
  },
);

test("a dry run shows nothing of a place that the gate did not judge [H4]", async () => {
  const flip: AtPoint = (point) => {
    if (point === "S1.before") turn("etc");
  };
  const { session, gate } = openFolder({ at: flip, fileRoots: [] });
  const edit = { path: "dir/a.txt", oldText: "plain", newText: "other" };
  const id = decisionIdOf(await session.call(request("files.edit", edit)));
  const shown = JSON.stringify(await gate.interactions.shown(id));
  expect(shown).not.toContain("SECRET");
  expect(shown).toContain("unavailable");
});

test("an undo whose folder was swapped for a link changes nothing behind it [H4]", async () => {
  let isUndo = false;
  const flip: AtPoint = (point) => {
    if (isUndo && point === "S5.after") turn("etc");
  };
  const { session } = openFolder({ at: flip });
  await writeFile(at("etc/a.txt"), "owned");
  const written = await session.call(
    request("files.write", { path: "dir/a.txt", content: "owned" }),
  );
  expect(written.answer).toBe("done");
  isUndo = true;
  // The undo names the real place. The folder itself is swapped: the name now leads elsewhere.
  await rename(at("open/real"), at("open/away"));
  await symlink(at("etc"), at("open/real"));
  await session.rollback(PERSON);
  expect(await readFile(at("etc/a.txt"), "utf8")).toBe("owned");
  expect(await readFile(at("open/away/a.txt"), "utf8")).toBe("owned");
});

test("a recovered call whose link was turned while nobody ran is not executed there [H4]", async () => {
  let dies = true;
  const die: AtPoint = (point) => {
    if (dies && point === "S5.after") throw new Error("the process ends here");
  };
  const { session, again, clock } = openFolder({ at: die });
  const write = { path: "dir/new.txt", content: "owned", expectedSha256: "absent" };
  await expect(session.call(request("files.write", write))).rejects.toThrow("ends here");
  dies = false;
  turn("etc");
  clock.advance(120_000);
  await again().recover();
  await expectUntouched();
  turn("open/real");
  await again().recover();
  expect(await readFile(at("open/real/new.txt"), "utf8")).toBe("owned");
});

const ROUNDS = scaled({ test: 10, proof: 40, full: 200 });

forEachStore(
  "with a thread that keeps turning the link",
  (open) => {
    test(`nothing is read or written outside the open folder in ${8 * ROUNDS} calls [H4]`, async () => {
      const place = await open();
      const { session } = openFolder({}, { engine: place.engine, clock: place.clock });
      const thread = flipLink({ link: at("open/dir"), targets: [at("etc"), at("open/real")] });
      const leaks: string[] = [];
      const counts = new Map<string, number>();
      for (let round = 0; round < ROUNDS; round += 1) {
        await writeFile(at("open/real/a.txt"), "plain");
        const calls: readonly (readonly [string, JsonObject])[] = [
          ...CALLS.slice(0, 1),
          ["files.write", { path: `dir/f${round}`, content: "owned" }],
          ["files.write", { path: `dir/deep${round}/f`, content: "owned" }],
          ...CALLS.slice(3, 6),
          ["files.move", { from: "dir/a.txt", to: `real/moved${round}` }],
          ["files.move", { from: `real/f${round}`, to: `dir/back${round}` }],
        ];
        for (const [step, [tool, input]] of calls.entries()) {
          const answer = await session.call(request(tool, input, `c-${round}-${step}`));
          counts.set(answer.answer, (counts.get(answer.answer) ?? 0) + 1);
          if (JSON.stringify(answer).includes("SECRET")) leaks.push(`${tool} ${answer.answer}`);
        }
      }
      await thread.stop();
      expect(leaks).toEqual([]);
      await expectUntouched();
      expect(counts.get("done")).toBeGreaterThan(0);
      expect(counts.get("pending")).toBeGreaterThan(0);
    });
  },
  ["memory", "sqlite"],
);

test("a standing rule covers no path through a link, and its folder is compared with links resolved [H4] [H7]", async () => {
  const { gate, session } = openFolder({ fileRoots: [] });
  const edit = { path: "dir/a.txt", oldText: "plain", newText: "other" };
  const pattern = {
    path: { oneOf: ["dir/a.txt", "real/a.txt"] },
    oldText: { equals: "plain" },
    newText: { equals: "other" },
  } as const;
  const rule = { tool: "files.edit", pattern, forMs: 60_000, reason: "r", by: PERSON };
  pointLink(at("way-in"), at("open"));
  const made = await gate.standingRules.make({ ...rule, workingDirectory: at("way-in") });
  expect(made.workingDirectory).toBe(at("open"));
  expect((await session.call(request("files.edit", edit))).answer).toBe("pending");
  const byLink = gate.sessions.open({ agent: AGENT, workingDirectory: at("way-in") });
  pointLink(at("way-in"), at("etc"));
  expect((await byLink.call(request("files.edit", { ...edit, path: "a.txt" }))).answer).toBe(
    "pending",
  );
  expect((await byLink.call(request("files.edit", { ...edit, path: "real/a.txt" }))).answer).toBe(
    "pending",
  );
  pointLink(at("way-in"), at("open"));
  const plain = request("files.edit", { ...edit, path: "real/a.txt" }, "c-9");
  expect((await byLink.call(plain)).answer).toBe("done");
  await expectUntouched();
});

test("a standing rule covers no command that a link leads out of its folder [H4]", async () => {
  const ran: string[] = [];
  const tool = defineTool({
    name: "job.start",
    description: "Starts a job, which can be stopped.",
    input: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
    safety: { effect: "external", reversible: true },
    permissionClass: "bash",
    resources: ({ input }) => [{ kind: "command" as const, command: String(input["command"]) }],
    execute({ input }) {
      ran.push(String(input["command"]));
      return "started";
    },
    undo: () => ({ tool: "job.start", input: { command: "stop" } }),
  });
  const { gate, session } = openFolder({ tools: [tool] });
  const pattern = { command: { equals: "show dir/a.txt" } } as const;
  const rule = { tool: "job.start", pattern, forMs: 60_000, reason: "r", by: PERSON };
  await gate.standingRules.make({ ...rule, workingDirectory: at("open") });
  const show = (callId: string) =>
    session.call(request("job.start", { command: "show dir/a.txt" }, callId));
  expect((await show("c-1")).answer).toBe("done");
  pointLink(at("open/dir"), at("etc"));
  expect((await show("c-2")).answer).toBe("pending");
  expect(ran).toHaveLength(1);
});

test("files.restore is refused as a call of its own, and no file tool makes a file set-uid [L2]", async () => {
  const { session, gate } = openFolder();
  const content = Buffer.from("#!/bin/sh\n").toString("base64");
  const restore = { path: at("open/x"), content, expectedSha256: "absent" };
  for (const mode of [0o4755, 0o755]) {
    const answer = await session.call(request("files.restore", { ...restore, mode }));
    expect(["denied", "failed"]).toContain(answer.answer);
  }
  const direct = await session.call(request("files.restore", restore));
  expect(direct).toMatchObject({ answer: "denied", text: expect.stringContaining("rollback") });
  expect((await session.stage([request("files.restore", restore)])).answer).toBe("denied");
  expect(await readdir(at("open"))).toEqual(["dir", "real"]);

  await chmod(at("open/real/a.txt"), 0o6755);
  expect(
    (await session.call(request("files.write", { path: "real/a.txt", content: "x" }))).answer,
  ).toBe("done");
  expect((await stat(at("open/real/a.txt"))).mode & 0o7777).toBe(0o755);
  await session.rollback(PERSON);
  expect(await readFile(at("open/real/a.txt"), "utf8")).toBe("plain");
  expect((await stat(at("open/real/a.txt"))).mode & 0o7777).toBe(0o755);
  expect(gate.tools.get("files.restore")).toBeDefined();
});
