import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { AuditEntry } from "../../src/model/audit-entry.ts";
import { createTaskList } from "../../src/tasks/create-task-list.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { checkLinearizable } from "./linearizability.ts";
import { taskModel } from "./task-model.ts";
import { openPlace, TENANT } from "./task-places.ts";
import { freshFolder } from "./task-stores.ts";
import { historiesOf, problemsIn } from "./worker-history.ts";
import { startWorker, type WorkerProcess } from "./worker-process.ts";

const FULL = process.env["SCALE"] === "full";
const PROCESSES = scaled({ test: 3, proof: 4, full: 8 });
const TASKS = scaled({ test: 120, proof: 300, full: 20_000 });
const LEASE_MS = FULL ? 3_000 : 500;
/** In a short run a few are enough; more would only make it long. */
const BLOWS = scaled({ test: 4, proof: 8, full: Number.POSITIVE_INFINITY });
const TIMEOUT = scaled({ test: 120_000, proof: 120_000, full: 3_600_000 });

forEachStore(
  "many processes",
  (open) => {
    test(`${PROCESSES * 4} workers in ${PROCESSES} processes, ${TASKS} tasks, killed and paused at random: each completed once, never two live claims, fences only grow, and the history is linearizable [G4 S4-36 T34 I11 I12]`, {
      timeout: TIMEOUT,
    }, async () => {
      const { place } = await open();
      const { folder, remove } = await freshFolder();
      const { store, whole, close } = await openPlace(place);
      const tasks = createTaskList({ store });
      for (let from = 0; from < TASKS; from += 100) {
        const some = Array.from({ length: Math.min(100, TASKS - from) }, (_, n) => from + n);
        await Promise.all(some.map((n) => tasks.add({ subject: `Task ${n}` })));
      }

      const workers: WorkerProcess[] = [];
      const counts = { killed: 0, paused: 0 };
      let working = true;
      const seat = async (number: number) => {
        for (let life = 0; working; life += 1) {
          const name = `p${number}-${life}`;
          const worker = startWorker("work", { place, name, folder, leaseMs: LEASE_MS });
          workers.push(worker);
          const code = await worker.ended;
          expect(code ?? 0, "a worker ends by itself or is killed").toBe(0);
        }
      };
      const harass = async () => {
        // The first deaths must fall into the work, however short it is.
        await sleep(FULL ? 3_000 : 300);
        for (let blow = 0; working && blow < BLOWS; ) {
          const alive = workers.filter((worker) => worker.isAlive() && worker.isAtWork());
          const victim = alive[Math.floor(Math.random() * alive.length)];
          if (victim === undefined) {
            await sleep(20);
            continue;
          }
          blow += 1;
          if (FULL ? Math.random() < 0.5 : blow % 2 === 1) {
            if (victim.process.kill("SIGKILL")) counts.killed += 1;
          } else {
            victim.process.kill("SIGSTOP");
            await sleep(Math.random() * 1.5 * LEASE_MS);
            victim.process.kill("SIGCONT");
            counts.paused += 1;
          }
          await sleep(Math.random() * (FULL ? 3_000 : 200));
        }
      };
      const { audit } = whole.tenant(TENANT);
      const trail: AuditEntry[] = [];
      const follow = async () => {
        let completed = 0;
        while (completed < TASKS) {
          const page = await audit.read({ after: trail.length, limit: 1_000 });
          if (page.length === 0) await sleep(50);
          for (const entry of page) if (entry.type === "task.completed") completed += 1;
          trail.push(...page);
        }
        working = false;
        for (const worker of workers) worker.finish();
      };
      const began = performance.now();
      const seats = Array.from({ length: PROCESSES }, (_, number) => seat(number));
      await Promise.all([...seats, harass(), follow()]).finally(() => {
        working = false;
        for (const worker of workers) worker.process.kill("SIGKILL");
      });
      const seconds = (performance.now() - began) / 1_000;
      trail.push(...(await audit.read({ after: trail.length, limit: 1_000 })));

      const histories = historiesOf(
        workers.map((worker) => worker.lines()),
        trail,
      );
      const expired = trail.filter(({ type }) => type === "task.expired").length;
      const rate = Math.round(TASKS / seconds);
      console.log(`${place.kind}: ${TASKS} tasks in ${seconds.toFixed(1)} s (${rate}/s)`, {
        ...counts,
        lives: workers.length,
        expired,
      });
      const all = await tasks.list();
      const odd = [...histories].filter(
        ([, history]) => !checkLinearizable(taskModel, history).linearizable,
      );
      const problems = problemsIn(trail);
      record({
        goal: "G4",
        what: `task workers killed and paused, ${place.kind}`,
        figures: {
          workers: PROCESSES * 4,
          tasks: TASKS,
          ...counts,
          lives: workers.length,
          "leases expired": expired,
          "tasks a second": rate,
          unfinished: all.filter(({ status }) => status !== "completed").length,
          "not linearizable": odd.length,
          violations: problems.length + odd.length,
        },
      });
      expect(trail.map(({ seq }) => seq)).toEqual(trail.map((_, index) => index + 1));
      expect(problems).toEqual([]);
      expect(all.length).toBe(TASKS);
      expect(all.filter(({ status }) => status !== "completed")).toEqual([]);
      expect(trail.filter(({ type }) => type === "task.completed").length).toBe(TASKS);
      expect(odd.slice(0, 3)).toEqual([]);
      expect(histories.size).toBe(TASKS);
      expect(counts.killed + counts.paused).toBeGreaterThan(0);
      await close();
      await remove();
    });
  },
  ["sqlite", "postgres"],
);
