// The gate's own files: no call of an agent reaches them, through any built-in tool, rule or person.

import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import type { Rule } from "../../src/policy/policy.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { fileTools } from "../../src/tools/builtin/files.ts";
import { shellRun } from "../../src/tools/builtin/shell-run.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

const SECRET = "the-token-of-this-server";

function openWorld() {
  const base = realpathSync(mkdtempSync(path.join(tmpdir(), "sallyport-own-")));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const gateFolder = path.join(base, "srv", "gate");
  for (const folder of [path.join(base, ".sallyport"), path.join(base, ".SALLYPORT"), gateFolder]) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, "local.json"), SECRET);
  }
  symlinkSync(gateFolder, path.join(base, "link"));
  symlinkSync(path.join(base, ".sallyport", "local.json"), path.join(base, "plain.txt"));
  writeFileSync(path.join(base, "free.txt"), "free");
  const everything: readonly Rule[] = [
    { id: "files", effect: "allow", tool: "files.*", path: "/**", reason: "All files are open." },
    {
      id: "shell",
      effect: "allow",
      tool: "shell.run",
      command: ["cat", "**"],
      folder: base,
      reason: "All may be read.",
    },
  ];
  /** Reads any file that it is asked for, and calls itself harmless. */
  const peek = defineTool({
    name: "files.peek",
    description: "Reads a file.",
    input: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
    safety: { effect: "read" },
    permissionClass: "readonly",
    resources: ({ input }) => [{ kind: "file", path: String(input["path"]), access: "read" }],
    execute: ({ input }) => readFileSync(String(input["path"]), "utf8"),
  });
  const gate = createGate({
    store: memoryStore(),
    tenant: "acme",
    tools: [...fileTools(), shellRun(), peek],
    validators: { tech: sampleVerdictValidator("t"), business: sampleVerdictValidator("b") },
    guard: allowAlways,
    policy: { version: "1", rules: everything },
    fileRoots: [{ path: base, access: "write" }],
    protectedPaths: [gateFolder, path.join(base, "keys", "anchor-key.pem")],
  });
  const session = gate.sessions.open({ id: "s", agent: "agent:one", workingDirectory: base });
  let calls = 0;
  const call = (tool: string, input: Record<string, string>) => {
    calls += 1;
    return session.call({ callId: `c${calls}`, tool, input });
  };
  return { base, gateFolder, gate, call };
}

test("protected paths: no file tool reads, writes, moves or deletes the gate's files, under any spelling [H2]", async () => {
  const { base, gateFolder, call } = openWorld();
  expect(await call("files.read", { path: "free.txt" })).toMatchObject({ answer: "done" });
  const places = [
    ".sallyport/local.json",
    ".SALLYPORT/local.json",
    ".sallyport./local.json",
    ".sallyport /local.json",
    ".sallypor\u200bt/local.json",
    ".\u017fallyport/local.json",
    "SALLYP~1/local.json",
    ".sallyport:x/local.json",
    "srv/../.sallyport/new.json",
    ".sallyport",
    "srv/gate/local.json",
    "SRV/GATE/local.json",
    "link/local.json",
    "plain.txt",
    "keys/anchor-key.pem",
    gateFolder,
  ];
  for (const where of places) {
    const answers = [
      await call("files.read", { path: where }),
      await call("files.peek", { path: path.resolve(base, where) }),
      await call("files.write", { path: where, content: "x" }),
      await call("files.edit", { path: where, oldText: "the", newText: "x" }),
      await call("files.delete", { path: where }),
      await call("files.move", { from: where, to: "taken.txt" }),
      await call("files.move", { from: "free.txt", to: where }),
    ];
    for (const answer of answers) {
      expect(JSON.stringify(answer), where).not.toContain(SECRET);
      expect(answer.answer, where).toBe("denied");
    }
    const shown = await call("files.read", { path: where });
    expect(JSON.stringify(shown), where).toContain("the gate's own records and keys");
  }
  expect(readFileSync(path.join(gateFolder, "local.json"), "utf8")).toBe(SECRET);
});

test("protected paths: no word of a shell command names the gate's files [H2]", async () => {
  const { base, gateFolder, gate, call } = openWorld();
  const commands = [
    "cat .sallyport/local.json",
    "cat .SALLYPORT/local.json",
    "cat '.sally'port/local.json",
    "cat .sally*/local.json",
    "cat .s?llyport/local.json",
    "cat .[s]allyport/local.json",
    "cat {.sallyport,x}/local.json",
    "cat ./srv/../.sallyport/local.json",
    "cd .sallyport && cat local.json",
    "cd srv && cat gate/local.json",
    "cat srv/gat*/local.json",
    "cat srv/*/local.json",
    `cat ${gateFolder}/local.json`,
    "cat < .sallyport/local.json",
    "echo x > srv/gate/local.json",
    "cat free.txt | tee .sallyport/local.json",
    "sh -c 'cat .sallyport/local.json'",
    "env X=1 cat .sallyport/local.json",
    "dd if=.sallyport/local.json",
    "git show HEAD:.sallyport/local.json",
    "tar -C.sallyport -cf - .",
    "ls .sallyport",
    "rm -r .sallyport",
    "mv .sallyport x",
    "ln -s srv/gate y",
    "cat keys/anchor-key.pem",
    "cat ~/gate/local.json",
    `python3 -c "print(open('.sallyport/local.json').read())"`,
  ];
  for (const command of commands) {
    const answer = await call("shell.run", { command });
    expect(JSON.stringify(answer), command).not.toContain(SECRET);
    expect(answer.answer, command).toBe("denied");
  }
  const inside = gate.sessions.open({ agent: "agent:one", workingDirectory: gateFolder });
  const direct = await inside.call({
    callId: "i",
    tool: "shell.run",
    input: { command: "cat local.json" },
  });
  expect(direct.answer).toBe("denied");
  // What merely looks alike is judged like everything else.
  for (const command of [
    "cat free.txt",
    "cat sallyport.md",
    "cat .sallyport.md",
    "cat srv/gatekeeper",
  ]) {
    expect((await call("shell.run", { command })).answer, command).not.toBe("denied");
  }
  expect(readFileSync(path.join(base, ".sallyport", "local.json"), "utf8")).toBe(SECRET);
});

test("protected paths: no grant lifts the denial, and a relative path is refused at the start [H2]", async () => {
  const { gate, call } = openWorld();
  const denied = await call("files.read", { path: ".sallyport/local.json" });
  const message = denied.answer === "denied" ? denied.text : "";
  await gate.grants.give({
    sessionId: "s",
    finding: { policy: "danger.gate-files", message },
    scope: { kind: "finding" },
    grantor: "user",
    reason: "let it through",
    by: "person:ada",
  });
  expect(await call("files.read", { path: ".sallyport/local.json" })).toMatchObject({
    answer: "denied",
  });
  const options = { store: memoryStore(), tenant: "t", tools: [], guard: allowAlways };
  const validators = { tech: sampleVerdictValidator("t"), business: sampleVerdictValidator("b") };
  const policy = { version: "1", rules: [] };
  expect(() => createGate({ ...options, validators, policy, protectedPaths: ["gate"] })).toThrow(
    "invalid_input",
  );
});
