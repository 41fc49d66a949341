// What a tool declares about its safety, whatever it works on: tried before it runs, undone afterwards.

import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { fileTools } from "../../src/tools/builtin/files.ts";
import { sqlStagingTools } from "../../src/tools/builtin/sql-query.ts";
import { stagingDatabase } from "../../src/tools/builtin/sql-table.ts";
import { defineTool, sampleCall } from "../../src/tools/define-tool.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { previewCall } from "../../src/tools/tool-call.ts";
import { AGENT, approve, decisionIdOf, openGate, PERSON, request } from "../support/port-world.ts";
import { ITEMS, openSqlite, resetItems } from "../support/sql-engines.ts";

/** Four tools of the levels 0, 1, 2 and 2 with an undo; each notes what it did. */
function ladder() {
  const tried: string[] = [];
  const effects: string[] = [];
  const make = (name: string, can: { readonly dryRun?: true; readonly undo?: true }): Tool =>
    defineTool({
      name,
      description: `Does ${name}.`,
      input: { type: "object", properties: { back: { type: "boolean" } } },
      safety: { effect: "external", ...(can.undo && { reversible: true }) },
      ...(can.dryRun && {
        dryRun() {
          tried.push(name);
          return `would do ${name}`;
        },
      }),
      execute({ input }) {
        effects.push(input["back"] === true ? `-${name}` : `+${name}`);
        return "done";
      },
      ...(can.undo && { undo: () => ({ tool: name, input: { back: true } }) }),
    });
  const tools = [
    make("step.plain", {}),
    make("step.undoable", { undo: true }),
    make("step.triable", { dryRun: true }),
    make("step.both", { dryRun: true, undo: true }),
  ];
  return { tools, tried, effects };
}

test("tools of level 2 are tried before the person decides; a rollback compensates every tool that has an undo, at level 1 and 2 [S2-13]", async () => {
  const { tools, tried, effects } = ladder();
  const { gate } = openGate({ tools });
  const levels = (await gate.offered()).map(({ name, safetyLevel }) => [name, safetyLevel]);
  expect(Object.fromEntries(levels)).toMatchObject({
    "step.plain": 0,
    "step.undoable": 1,
    "step.triable": 2,
    "step.both": 2,
  });
  const session = gate.sessions.open({ agent: AGENT });
  const asked: string[] = [];
  for (const { name } of tools)
    asked.push(decisionIdOf(await session.call(request(name, {}, name))));
  expect(tried).toEqual(["step.triable", "step.both"]);
  expect(effects).toEqual([]);
  const shown = await Promise.all(asked.map((id) => gate.interactions.shown(id)));
  expect(
    shown.map((one) => JSON.stringify(one?.preview.dryRun).includes("would do step.")),
  ).toEqual([false, false, true, true]);

  for (const id of asked) await approve(gate, id);
  expect(effects).toEqual(["+step.plain", "+step.undoable", "+step.triable", "+step.both"]);
  const report = await session.rollback(PERSON);
  expect(report.undone.map(({ tool }) => tool)).toEqual(["step.both", "step.undoable"]);
  expect(report.irreversible.map(({ tool }) => tool)).toEqual(["step.triable", "step.plain"]);
  expect(effects.slice(4)).toEqual(["-step.both", "-step.undoable"]);
});

test("a file, a row and a remote record declare their safety by the same members, and are tried, shown and rolled back alike [S2-14]", async () => {
  const folder = await realpath(await mkdtemp(path.join(tmpdir(), "sallyport-safety-")));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = path.join(folder, "a.txt");
  await writeFile(file, "old");
  const engine = await openSqlite();
  onTestFinished(() => engine.close());
  await resetItems(engine);
  const remote = new Map([["c-1", "old"]]);
  const rename = defineTool({
    name: "crm.rename",
    description: "Renames a customer.",
    input: {
      type: "object",
      properties: { id: { type: "string" }, name: { type: "string" } },
      required: ["id", "name"],
      additionalProperties: false,
    },
    safety: { effect: "write", reversible: true, affects: ["crm"] },
    dryRun: ({ input }) => `${remote.get(String(input["id"]))} -> ${input["name"]}`,
    stateVersion: async ({ input }) => remote.get(String(input["id"])) ?? "absent",
    async execute({ input }) {
      const id = String(input["id"]);
      const before = remote.get(id) ?? "";
      remote.set(id, String(input["name"]));
      return { text: "renamed", data: { id, name: before } };
    },
    undo: ({ output }) => ({ tool: "crm.rename", input: output as { id: string; name: string } }),
  });
  const rows = sqlStagingTools({ database: stagingDatabase(engine.database), tables: [ITEMS] });
  const { gate } = openGate({ tools: [...fileTools({ directory: folder }), ...rows, rename] });
  const session = gate.sessions.open({ agent: AGENT, workingDirectory: folder });
  const read = async () => [
    await readFile(file, "utf8"),
    (await engine.run("SELECT name FROM items WHERE id = 1"))[0]?.["name"],
    remote.get("c-1"),
  ];
  const before = await read();
  const calls = [
    ["files.write", { path: "a.txt", content: "new" }],
    ["sql.update_row", { table: "items", key: { id: 1 }, version: 1, set: { name: "new" } }],
    ["crm.rename", { id: "c-1", name: "new" }],
  ] as const;
  const asked: string[] = [];
  for (const [name, input] of calls) {
    const tool = gate.tools.get(name);
    expect(tool?.metadata, name).toMatchObject({ effect: "write", readOnly: false });
    expect(tool?.capability?.affects, name).toHaveLength(1);
    for (const member of ["dryRun", "stateVersion", "generateUndo"] as const) {
      expect(typeof tool?.[member], `${name}.${member}`).toBe("function");
    }
    const offered = (await gate.offered()).find((one) => one.name === name);
    expect(offered, name).toMatchObject({ safetyLevel: 2 });
    asked.push(decisionIdOf(await session.call(request(name, input, name))));
  }
  expect(await read()).toEqual(before);
  for (const [at, id] of asked.entries()) {
    const { preview } = (await gate.interactions.shown(id)) ?? {};
    expect(preview, calls[at]?.[0]).toMatchObject({ safetyClass: "reversible" });
    expect(JSON.stringify(preview?.dryRun), calls[at]?.[0]).toMatch(/\b(old|one)\b/);
    expect(JSON.stringify(preview?.dryRun), calls[at]?.[0]).not.toContain("unavailable");
    expect(await approve(gate, id), calls[at]?.[0]).toMatchObject([{ answer: "done" }]);
  }
  expect(await read()).toEqual(["new", "new", "new"]);
  const report = await session.rollback(PERSON);
  expect(report.undone.map(({ tool }) => tool)).toEqual(calls.map(([name]) => name).toReversed());
  expect(await read()).toEqual(before);
});

test("a preview asks a tool of the gate before anything is proposed, and again while the call waits; it never executes [S2-21]", async () => {
  const { tools, tried, effects } = ladder();
  const { gate } = openGate({ tools });
  const both = gate.tools.get("step.both") as Tool;
  expect(await previewCall(both, sampleCall({}))).toMatchObject({ preview: "would do step.both" });
  expect(tried).toEqual(["step.both"]);
  expect(await gate.decisions.list(), "nothing is staged").toEqual([]);
  expect(await gate.audit.entries({ after: 0, limit: 10 }), "nothing is recorded").toEqual([]);

  const session = gate.sessions.open({ agent: AGENT });
  const id = decisionIdOf(await session.call(request("step.both", {})));
  expect(await previewCall(both, sampleCall({}))).toMatchObject({ preview: "would do step.both" });
  const { hash } = await gate.interactions.get(id);
  await gate.interactions.reject(id, { hash, by: PERSON, reason: "The preview was enough." });
  expect(tried).toHaveLength(3);
  expect(effects).toEqual([]);
  const plain = gate.tools.get("step.plain") as Tool;
  expect(await previewCall(plain, sampleCall({})), "without a dry run").toBeUndefined();
});
