import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { createTaskList } from "../../src/tasks/create-task-list.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { openPlace } from "./task-places.ts";
import { freshFolder } from "./task-stores.ts";
import { startWorker, type WorkerProcess } from "./worker-process.ts";

const LEASE_MS = 3_000;
const HELD = 4;

forEachStore(
  "taking over",
  (open) => {
    test(`a process that starts takes no task from healthy ones, and the ${HELD} tasks of one that is killed are taken over within one lease, ${HELD} of ${HELD} [T34 G4]`, {
      timeout: 100_000,
    }, async () => {
      const { place } = await open();
      const { folder, remove } = await freshFolder();
      const { store, close } = await openPlace(place);
      const tasks = createTaskList({ store });
      await tasks.addAll(Array.from({ length: 2 * HELD }, (_, n) => ({ subject: `Task ${n}` })));
      const start = (mode: "hold" | "watch", name: string) => {
        const worker = startWorker(mode, { place, name, folder, leaseMs: LEASE_MS });
        onTestFinished(() => void worker.process.kill("SIGKILL"));
        return worker;
      };

      const [victim, healthy] = [start("hold", "victim"), start("hold", "healthy")];
      await Promise.all([heard(victim, "holds"), heard(healthy, "holds")]);
      const peer = start("watch", "peer");
      await heard(peer, "watching");
      await sleep(1.5 * LEASE_MS);
      expect(peer.said.filter((line) => "took" in line || "swept" in line)).toEqual([]);

      // Soon after a renewal, when the lease has a long way to go.
      victim.said.length = 0;
      await heard(victim, "renewed");
      await sleep(LEASE_MS / 3 - 300);
      const killedAt = Date.now();
      victim.process.kill("SIGKILL");
      while (took(peer).length < HELD && Date.now() < killedAt + 4 * LEASE_MS) await sleep(10);
      const after = took(peer).map(({ at }) => Number(at) - killedAt);
      console.log(`${place.kind}: taken over ${after.join(", ")} ms after the death`);
      expect(after.filter((ms) => ms <= LEASE_MS).length).toBe(HELD);

      healthy.finish();
      expect(await healthy.ended).toBe(0);
      expect(healthy.said.at(-1)).toEqual({ completed: HELD, lost: 0 });
      peer.finish();
      await peer.ended;
      const byClaimer = Object.groupBy(await tasks.list(), ({ claimer = "" }) => claimer);
      expect(byClaimer["peer"]?.length).toBe(HELD);
      for (const { history } of byClaimer["peer"] ?? []) {
        expect(history).toMatchObject([{ what: "expired", by: "victim" }]);
      }
      expect(byClaimer["healthy"]?.map(({ status }) => status)).toEqual(
        Array.from({ length: HELD }, () => "completed"),
      );
      await close();
      await remove();
    });
  },
  ["sqlite", "postgres"],
);

function took({ said }: WorkerProcess): readonly Record<string, unknown>[] {
  return said.filter((line) => "took" in line);
}

async function heard({ said }: WorkerProcess, what: string): Promise<void> {
  for (let tries = 0; tries < 2_000; tries += 1) {
    if (said.some((line) => what in line)) return;
    await sleep(10);
  }
  throw new Error(`It never said "${what}".`);
}
