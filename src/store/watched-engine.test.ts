import { expect, test } from "vitest";
import { OPERATIONS } from "../model/operation.ts";
import { manualClock } from "../util/clock.ts";
import { systemRandom } from "../util/random.ts";
import type { Change, Engine } from "./engine.ts";
import { type MemoryEngine, memoryEngine } from "./memory/index.ts";
import { type EpochFile, type Remembered, watchedEngine } from "./watched-engine.ts";

const OPTIONS = { clock: manualClock(0), random: systemRandom };

/** A server with two processes on one machine, which share an epoch file. A failover puts an older image in place. */
function machine() {
  const server: { image: MemoryEngine } = { image: memoryEngine(OPTIONS) };
  const remembered: { now: Remembered | undefined } = { now: undefined };
  const open = (): Engine => {
    const file: EpochFile = {
      read: () => remembered.now,
      write: (what) => {
        remembered.now = what;
      },
      close: () => {},
    };
    const { image } = server;
    const through: Engine = {
      ...image,
      commit: (tenant, change) => server.image.commit(tenant, change),
      get: (tenant, table, id) => server.image.get(tenant, table, id),
      entries: (tenant, range) => server.image.entries(tenant, range),
      heads: () => server.image.heads(),
      head: (tenant) => server.image.head(tenant),
    };
    return watchedEngine(through, file);
  };
  return { server, remembered, one: open(), other: open() };
}

function effect(id: string): Change {
  const event = { type: "operation.started", subject: id, session: "", actor: "case", data: {} };
  return { steps: [{ op: "insert", table: OPERATIONS, id, row: {} }], events: [event] };
}

test("after a failover no process of the machine begins an effect, also not one that never saw what was lost [SH1]", async () => {
  const { server, remembered, one, other } = machine();
  await other.commit("acme", effect("a"));
  const standby = server.image.copy(OPTIONS);
  await one.commit("acme", effect("b"));
  await one.commit("acme", effect("c"));
  server.image = standby;
  await expect(other.commit("acme", effect("d"))).rejects.toMatchObject({
    code: "store_rolled_back",
  });
  expect(remembered.now?.isRolledBack).toBe(true);
  await expect(one.commit("acme", effect("e"))).rejects.toMatchObject({
    code: "store_rolled_back",
  });
});

test("entries of another process that were lost are missed, even after others wrote past their number unremembered [SH1]", async () => {
  const { server, remembered, one, other } = machine();
  await other.commit("acme", effect("a"));
  const standby = server.image.copy(OPTIONS);
  await one.commit("acme", effect("b"));
  server.image = standby;
  // Their processes died before they got as far as the file.
  await server.image.commit("acme", effect("c"));
  await server.image.commit("acme", effect("d"));
  await expect(other.commit("acme", effect("e"))).rejects.toMatchObject({
    code: "store_rolled_back",
  });
  expect(remembered.now?.isRolledBack).toBe(true);
});

test("a loss that another process has noted stops the effect whose intent was written meanwhile [SH1]", async () => {
  const { remembered, one } = machine();
  await one.commit("acme", effect("a"));
  if (remembered.now !== undefined) remembered.now = { ...remembered.now, isRolledBack: true };
  await expect(one.commit("acme", effect("b"))).rejects.toMatchObject({
    code: "store_rolled_back",
  });
});

test("processes that write in turns are not taken for a loss, and the file keeps the newest entry", async () => {
  const { remembered, one, other } = machine();
  const both = [one, other].flatMap((engine, at) =>
    [1, 2, 3, 4].map((n) => engine.commit("acme", effect(`${at}-${n}`))),
  );
  const results = await Promise.all(both);
  expect(results.every(({ committed }) => committed)).toBe(true);
  expect(remembered.now).toMatchObject({ entries: 8, last: { seq: 8 } });
});
