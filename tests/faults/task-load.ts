// Workers that claim tasks under short leases, work longer than they may, and complete them under the fence they got.

import { setTimeout } from "node:timers/promises";
import type { Gate } from "../../src/gate/create-gate.ts";
import { isSallyportError } from "../../src/model/errors.ts";
import type { Store } from "../../src/store/store.ts";

export interface TaskWorkers {
  /** By task: the result whose completion was acknowledged. */
  readonly completed: ReadonlyMap<string, string>;
  readonly unexplained: readonly string[];
  /** Completions that were refused because the claim was over. */
  refused(): number;
  stop(): Promise<void>;
}

const AWAY = ["store_unavailable", "store_busy", "commit_unknown"] as const;
const OVER = [
  "claim_lost",
  "already_completed",
  "not_claimable",
  "concurrent_modification",
] as const;

/** Two workers on each list, which may reach the same store over different lines. */
export function startTaskWorkers(options: {
  lists: readonly Gate["tasks"][];
  leaseMs: number;
}): TaskWorkers {
  const { lists, leaseMs } = options;
  const completed = new Map<string, string>();
  const unexplained: string[] = [];
  let isOpen = true;
  let refused = 0;

  async function work(list: Gate["tasks"], by: string): Promise<void> {
    for (let n = 0; isOpen; n += 1) {
      try {
        await list.add({ subject: `${by} ${n}` });
        const task = await list.claimNext({ claimer: by, leaseMs });
        if (task === undefined) continue;
        await setTimeout(Math.random() * 0.3 * leaseMs);
        await complete(list, by, task.id, task.fence ?? 0);
      } catch (error) {
        if (!AWAY.some((code) => isSallyportError(error, code)))
          unexplained.push(`${by}: ${error}`);
      }
      await setTimeout(20);
    }
  }

  async function complete(
    list: Gate["tasks"],
    by: string,
    id: string,
    fence: number,
  ): Promise<void> {
    const result = `${by} under ${fence}`;
    for (;;) {
      try {
        await list.complete({ id, fence, by, result });
        completed.set(id, result);
        return;
      } catch (error) {
        if (OVER.some((code) => isSallyportError(error, code))) {
          refused += 1;
          return;
        }
        if (!AWAY.some((code) => isSallyportError(error, code))) throw error;
        await setTimeout(20);
      }
    }
  }

  const all = lists.flatMap((list, n) => ["a", "b"].map((one) => work(list, `worker:${n}${one}`)));
  return {
    completed,
    unexplained,
    refused: () => refused,
    async stop() {
      isOpen = false;
      await Promise.all(all);
    },
  };
}

const SETTLED = new Set(["operation.succeeded", "operation.failed", "operation.lost"]);

/** What the trail says about claims, completions and operations that another worker continued. */
export async function checkTasks(store: Store, tenantName: string, { completed }: TaskWorkers) {
  const { audit, tasks } = store.tenant(tenantName);
  const problems: string[] = [];
  const fences = new Map<string, number>();
  const done = new Set<string>();
  const settled = new Set<string>();
  const counts = { takenOver: 0, stale: 0 };
  for (let after = 0; ; ) {
    const page = await audit.read({ after, limit: 1_000 });
    for (const { type, subject, seq, data } of page) {
      after = seq;
      const { fence = 0 } = JSON.parse(data ?? "{}") as { fence?: number };
      if (type === "task.claimed") {
        if (fence <= (fences.get(subject) ?? 0))
          problems.push(`I12 the fence of ${subject} did not grow`);
        fences.set(subject, fence);
      }
      if (type === "task.completed") {
        if (done.has(subject)) problems.push(`I11 ${subject} was completed twice`);
        done.add(subject);
      }
      if (type === "operation.taken_over") counts.takenOver += 1;
      // No person is asked here, so a settled outcome is final.
      if (SETTLED.has(type) && settled.has(subject)) {
        counts.stale += 1;
        problems.push(`I12 I15 ${subject} was settled a second time (${type})`);
      }
      if (SETTLED.has(type)) settled.add(subject);
    }
    if (page.length < 1_000) break;
  }
  for (const { id, result } of await tasks.list()) {
    const told = completed.get(id);
    if (told !== undefined && result !== told)
      problems.push(`I9 ${id}: told "${told}", stored "${result}"`);
    const under = Number(result?.split(" under ")[1] ?? fences.get(id));
    if (done.has(id) && under !== fences.get(id)) {
      counts.stale += 1;
      problems.push(
        `I12 ${id} was completed under ${under}, but ${fences.get(id)} was the live claim`,
      );
    }
  }
  return { ...counts, problems, completed: done.size };
}
