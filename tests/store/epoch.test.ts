// The epoch of a store, and the file outside of it that remembers how far it had come.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { createStore, type Store } from "../../src/store/store.ts";
import { forEachStore } from "../support/for-each-store.ts";

const BY = { actor: "person:op" };

forEachStore("an epoch", (open) => {
  test("two operators who begin an epoch concurrently both succeed, one after the other [SL10]", async () => {
    const { engine } = await open();
    const store = createStore(engine, { redact: (_, data) => data }).tenant("acme");
    const names = ["one", "two", "three"];
    await Promise.all(names.map((name) => store.epoch.begin(name, "restored", BY)));
    const told = (await store.audit.read({ after: 0, limit: 9 })).map(({ data }) =>
      JSON.parse(data ?? "{}"),
    );
    expect(told.map(({ epoch }) => epoch).toSorted()).toEqual(names.toSorted());
    expect(told.map(({ before }) => before)).toEqual(["", told[0]?.epoch, told[1]?.epoch]);
    expect(await store.epoch.current()).toBe(told[2]?.epoch);
  });
});

function inFolder() {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-epoch-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [file, epochFile] = [path.join(folder, "store.db"), path.join(folder, "epoch")];
  return {
    epochFile,
    open: () => sqliteStore({ file, epochFile }),
    remembered: () => JSON.parse(readFileSync(epochFile, "utf8")),
  };
}

/** So many entries of a tenant. */
async function write(store: Store, tenant: string, entries: number): Promise<void> {
  for (let n = 0; n < entries; n += 1) {
    const { killSwitch } = store.tenant(tenant);
    await (n % 2 === 0 ? killSwitch.stop("on", BY) : killSwitch.resume("off", BY));
  }
}

test("two processes and two tenants: the epoch file never remembers less than it did [SM2]", async () => {
  const { open, remembered } = inFolder();
  await using one = open();
  await using other = open();
  await write(one, "acme", 1);
  await write(other, "globex", 20);
  const before = remembered().entries;
  expect(before).toBe(21);
  await write(one, "acme", 1);
  expect(remembered().entries).toBeGreaterThanOrEqual(before);
});

test("a process with an outdated view does not overwrite a new epoch or an older copy that another one recorded [SM2]", async () => {
  const { open, remembered, epochFile } = inFolder();
  await using bystander = open();
  await write(bystander, "acme", 2);
  const restored = open();
  await restored.tenant("acme").epoch.begin("second-life", "restored", BY);
  await restored.close();
  await write(bystander, "acme", 1);
  expect(remembered().epoch).toBe("second-life");
  writeFileSync(epochFile, JSON.stringify({ ...remembered(), isRolledBack: true }).padEnd(511));
  await write(bystander, "acme", 2);
  expect(remembered().isRolledBack).toBe(true);
});
