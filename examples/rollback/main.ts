/** An agent edits files and a row, its fourth step fails, and everything is undone and read back. */
import assert from "node:assert/strict";
import path from "node:path";
import { allowAlways, createGate, describeRollback, verifyStore } from "sallyport";
import { sqliteStore } from "sallyport/store/sqlite";
import { fileTools, sqliteDatabase, sqlStagingTools, stagingDatabase } from "sallyport/tools";
import { askNobody } from "./validators.ts";
import { makeWorld } from "./world.ts";

const world = makeWorld();
const before = world.read();
const store = sqliteStore({ file: path.join(world.root, "sallyport.db") });
const staging = stagingDatabase(sqliteDatabase({ name: "stock", handle: world.database }));
const stock = { name: "stock", key: ["sku"], version: "version", columns: ["amount"] };
const gate = createGate({
  store,
  tenant: "acme",
  tools: [...fileTools(), ...sqlStagingTools({ database: staging, tables: [stock] })],
  validators: { tech: askNobody, business: askNobody },
  guard: allowAlways,
  fileRoots: [{ path: world.folder, access: "write" }],
  policy: {
    version: "1",
    rules: [{ id: "stock", effect: "allow", tool: "sql.*", reason: "staging only" }],
  },
});
const session = gate.sessions.open({ agent: "agent:shop", workingDirectory: world.folder });

const steps = [
  ["files.edit", { path: "prices.txt", oldText: "shirt 20", newText: "shirt 15" }],
  ["files.edit", { path: "notes.txt", oldText: "sale: no", newText: "sale: yes" }],
  ["sql.update_row", { table: "stock", key: { sku: "shirt" }, version: 1, set: { amount: 60 } }],
  ["files.edit", { path: "imprint.txt", oldText: "Sample Inc.", newText: "Example Inc." }],
] as const;
for (const [step, [tool, input]] of steps.entries()) {
  const { answer, text } = await session.call({ callId: `step-${step + 1}`, tool, input });
  console.log(`step ${step + 1}: ${tool}: ${answer}. ${text.split("\n")[0]}`);
  assert.equal(answer, step < 3 ? "done" : "failed");
}
assert.notEqual(world.read(), before);

const report = await session.rollback("person:ada");
console.log(`\n${describeRollback(report)}\n`);
assert.deepEqual([report.undone.length, report.failed.length, report.conflicted.length], [3, 0, 0]);
assert.equal(world.read(), before, "everything is as it was");

const again = await session.rollback("person:ada");
assert.equal(again.undone.length, 0, "a second rollback does nothing twice");
assert.equal(world.read(), before);

for (const { seq, type, actor, subject } of await gate.audit.read({ after: 0, limit: 100 })) {
  console.log(`${String(seq).padStart(3)}  ${type.padEnd(20)}  ${actor.padEnd(11)}  ${subject}`);
}
const { ok, entries } = await verifyStore(store);
assert.ok(ok);
console.log(`\nVerified ${entries} entries: no entry between the first and the last was changed.`);
await store.close();
