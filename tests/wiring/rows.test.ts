// Rows of docs/spec that are otherwise proved on inner parts alone, through the doors that users have.

import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createGate, type ToolAuditEntry } from "../../src/index.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool, shellRun } from "../../src/tools/index.ts";
import { openHttp } from "../http/http-world.ts";
import { tableRows } from "../support/source-files.ts";

test("every part of a compound command must be allowed, and a dangerous one denies the whole [I-21]", async () => {
  const folder = await realpath(await mkdtemp(path.join(tmpdir(), "sallyport-wiring-")));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const rule = { effect: "allow", tool: "shell.run", folder, reason: "test" } as const;
  const gate = createGate({
    store: memoryStore(),
    tools: [shellRun()],
    policy: {
      version: "1",
      rules: [
        { ...rule, id: "list", command: ["ls"] },
        { ...rule, id: "all", command: ["ls", "-a"] },
      ],
    },
  });
  const session = gate.sessions.open({ id: "s", agent: "agent:x", workingDirectory: folder });
  const run = async (command: string) =>
    (await session.call({ callId: command, tool: "shell.run", input: { command } })).answer;
  expect(await run("ls")).toBe("done");
  expect(await run("ls && ls -a")).toBe("done");
  expect(await run("ls && touch made")).toBe("pending");
  expect(await run("ls; ls -l")).toBe("pending");
  expect(await run("ls && rm -rf /")).toBe("denied");
});

test("a sink of the host gets entries with exactly the documented fields [I-29]", async () => {
  const entries: ToolAuditEntry[] = [];
  const look = defineTool({
    name: "shop.look",
    description: "Looks.",
    input: { type: "object" },
    permissionClass: "readonly",
    execute: () => "open",
  });
  const write = (entry: ToolAuditEntry) => void entries.push(entry);
  const gate = createGate({
    store: memoryStore(),
    tools: [look],
    audit: { sinks: [{ name: "own", write }], onProblem: () => {} },
  });
  await gate.sessions.open({ agent: "agent:x" }).call({ tool: "shop.look", input: {} });
  const word = (cell = "") => cell.replaceAll("`", "");
  const rows = tableRows("docs/reference/audit-entries.md", "field");
  const always = rows.filter(({ present }) => present === "always").map(({ field }) => word(field));
  expect(Object.keys(entries[0] ?? {}).toSorted()).toEqual(always.toSorted());
  const outcomes = tableRows("docs/reference/audit-entries.md", "outcome");
  expect(outcomes.map(({ outcome }) => word(outcome))).toContain(entries[0]?.outcome);
});

test("a zero time of an imported task is not set, and is not exported again [S4-10]", async () => {
  const zero = "0001-01-01T00:00:00Z";
  const world = await openHttp();
  const operator = await world.client("acme", "operator");
  const original = {
    id: "task-1f2e",
    subject: "A task",
    description: "",
    status: "pending",
    created_at: "2026-11-15T06:00:00Z",
    claimed_at: zero,
    completed_at: zero,
    version: 1,
  };
  const text = JSON.stringify([original]);
  const { added } = await operator.tasks.import({ format: "json", text });
  expect(added).toEqual([original.id]);
  const exported = await operator.tasks.export({ format: "json" });
  expect(exported.text).toContain(original.subject);
  expect(exported.text).not.toMatch(/claimed_at|completed_at|0001-01-01/);
});
