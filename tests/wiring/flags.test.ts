// Flags of commands that are written by hand, each with what it changes. Further ones are shown beside their commands.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createGate } from "sallyport";
import { exportStore } from "sallyport/audit";
import { sqliteStore } from "sallyport/store/sqlite";
import { defineTool } from "sallyport/tools";
import { expect, onTestFinished, test } from "vitest";
import { runHere } from "../fuzz/cli-run.ts";
import { openHttp } from "../http/http-world.ts";

const look = defineTool({
  name: "shop.look",
  description: "Looks.",
  input: { type: "object" },
  permissionClass: "readonly",
  execute: () => "open",
});

/** A store in a folder, and the command line over it without a server. */
function storePlace() {
  const base = mkdtempSync(path.join(tmpdir(), "sallyport-flags-"));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const folder = path.join(base, "data");
  mkdirSync(folder);
  const store = sqliteStore({ file: path.join(folder, "sallyport.db") });
  onTestFinished(() => store.close());
  const here = ["--data", folder, "--json"];
  const state = ["--state", path.join(base, "state")];
  const gate = createGate({ store, tools: [look] });
  return {
    folder,
    store,
    gate,
    state,
    run: (...args: readonly string[]) => runHere([...here, ...args]),
  };
}

test.each([
  ["--agent", "agent:x"],
  ["--tool", "shop.*"],
  ["--session", "s-1"],
])("stop %s pauses only that, and resume ends it", async (flag, subject) => {
  const { gate, run } = storePlace();
  const session = gate.sessions.open({ id: "s-1", agent: "agent:x" });
  const call = async (callId: string) => {
    const { answer } = await session.call({ callId, tool: "shop.look", input: {} });
    return answer;
  };
  expect(await call("1")).toBe("done");
  expect(await run("stop", "drill", "--direct", flag, subject)).toMatchObject({ code: 0 });
  expect(await gate.killSwitch.isStopped()).toBe(false);
  expect(await gate.pauses.list()).toMatchObject([{ subject, reason: "drill" }]);
  expect(await call("2")).not.toBe("done");
  expect(await run("resume", "over", "--direct", flag, subject)).toMatchObject({ code: 0 });
  expect(await gate.pauses.list()).toEqual([]);
  expect(await call("3")).toBe("done");
});

test("store check: --no-records leaves the records out, --records compares them", async () => {
  const { gate, run, state } = storePlace();
  await gate.sessions.open({ agent: "agent:x" }).call({ tool: "shop.look", input: {} });
  const check = async (flag: string) =>
    JSON.parse((await run("store", "check", flag, ...state)).out);
  expect(await check("--records")).toMatchObject({ records: [], notCompared: "" });
  expect(await check("--no-records")).toMatchObject({ notCompared: "--no-records" });
});

test("audit verify: --file reads an export; --no-records leaves the records out, --records compares them", async () => {
  const { folder, store, gate, run, state } = storePlace();
  await gate.sessions.open({ agent: "agent:x" }).call({ tool: "shop.look", input: {} });
  const verify = async (...flags: readonly string[]) =>
    JSON.parse((await run("audit", "verify", ...flags, ...state)).out);
  expect(await verify("--records")).toMatchObject({ ok: true, records: [], notCompared: "" });
  expect(await verify("--no-records")).toMatchObject({ ok: true, notCompared: "--no-records" });
  const file = path.join(folder, "audit.jsonl");
  const lines: string[] = [];
  for await (const line of exportStore(store)) lines.push(line);
  writeFileSync(file, lines.join(""));
  expect(await verify("--file", file)).toMatchObject({ ok: true, entries: lines.length });
  writeFileSync(file, lines.join("").replace("agent:x", "agent:y"));
  expect(await verify("--file", file)).toMatchObject({ ok: false });
});

test("audit proof: --tenant says whose entry, --check reads a proof of it, and a changed one is found", async () => {
  const { folder, store, gate, run, state } = storePlace();
  await gate.sessions.open({ agent: "agent:x" }).call({ tool: "shop.look", input: {} });
  await store.tenant("other").killSwitch.stop("drill", { actor: "test" });
  const unnamed = await run("audit", "proof", "1", ...state);
  expect([unnamed.code, unnamed.err]).toEqual([3, expect.stringContaining("--tenant")]);
  const made = await run("audit", "proof", "1", "--tenant", "other", ...state);
  expect(made.code, made.err).toBe(0);
  const file = path.join(folder, "proof.json");
  writeFileSync(file, made.out);
  const checked = await run("audit", "proof", "--check", file);
  expect(JSON.parse(checked.out)).toMatchObject({ ok: true, isAnchored: false });
  writeFileSync(file, made.out.replace("drill", "other"));
  const changed = await run("audit", "proof", "--check", file);
  expect(JSON.parse(changed.out)).toMatchObject({ ok: false });
  expect(changed.code).not.toBe(0);
  writeFileSync(file, "{");
  const broken = await run("audit", "proof", "--check", file);
  expect([broken.code, broken.err]).toEqual([3, expect.stringContaining("is not a proof")]);
});

test("find --limit shows so many at most", async () => {
  const world = await openHttp({ port: { tools: [look] } });
  const session = world.gates.acme.sessions.open({ agent: "agent:x" });
  for (const callId of ["1", "2", "3"])
    await session.call({ callId, tool: "shop.look", input: {} });
  const token = await world.token("acme", "operator");
  const found = async (...flags: readonly string[]) => {
    const how = ["--json", "--url", world.server.url, "--token", token];
    return JSON.parse((await runHere([...how, "find", "shop.look", ...flags])).out).items.length;
  };
  expect(await found()).toBe(3);
  expect(await found("--limit", "2")).toBe(2);
});
