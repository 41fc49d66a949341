import { randomUUID } from "node:crypto";
import { Logger, run } from "graphile-worker";
import pg from "pg";
import type { OpenPeer, Refund, Told } from "../peer.ts";

const LOCK_IS_OLD = "5 hours";
/** Once a second instead of every eight to ten minutes, which is only how often it looks. */
const LOOKS_FOR_OLD_LOCKS = { minResetLockedInterval: 1_000, maxResetLockedInterval: 1_000 };

/**
 * A job queue has no approvals; the host keeps a table of them and adds the job in the transaction that records the yes, which
 * is what this queue is good at. The task writes its outcome into the same table.
 */
export const graphileWorker: OpenPeer = async ({ url, effect, role }) => {
  const pool = new pg.Pool({ connectionString: url, max: 16 });
  // The worker needs both; a broken connection also fails the query that used it, which is reported.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  const waiting = new Map<string, () => void>();
  const settled = (id: string) =>
    new Promise<Told>((resolve) => waiting.set(id, () => resolve("executed")));
  const runner =
    role === "answer"
      ? undefined
      : await run({
          pgPool: pool,
          concurrency: 64,
          noHandleSignals: true,
          pollInterval: 200,
          logger: quiet,
          preset: { worker: LOOKS_FOR_OLD_LOCKS },
          taskList: {
            async refund(payload) {
              const { id, ...refund } = payload as Refund & { id: string };
              const outcome = await effect.run(refund);
              await pool.query({ ...finish, values: [id, outcome] });
              waiting.get(id)?.();
              waiting.delete(id);
            },
          },
        });
  if (runner !== undefined) {
    await pool.query(
      "CREATE TABLE IF NOT EXISTS approvals (id text PRIMARY KEY, status text, refund jsonb, outcome text)",
    );
  }
  return {
    async propose(refund) {
      const id = randomUUID();
      await pool.query({ ...insert, values: [id, JSON.stringify(refund)] });
      return id;
    },
    async approve(id) {
      const done = settled(id);
      const { rowCount } = await pool.query({ ...approve, values: [id] });
      if (rowCount === 0) return "already answered";
      return runner === undefined ? "accepted" : done;
    },
    /** A dead worker's job stays locked for four hours; the experiment makes the lock look older instead of waiting. */
    async recover(id) {
      const done = settled(id);
      const soon = new Promise<undefined>((resolve) => setTimeout(resolve, 3_000, undefined));
      const early = await Promise.race([done, soon]);
      if (early !== undefined) return early;
      await pool.query(
        `UPDATE graphile_worker._private_jobs SET locked_at = locked_at - interval '${LOCK_IS_OLD}'`,
      );
      return done;
    },
    async close() {
      await runner?.stop();
      await pool.end();
    },
  };
};

const quiet = new Logger(() => () => {});

const insert = {
  name: "insert",
  text: "INSERT INTO approvals (id, status, refund) VALUES ($1, 'pending', $2)",
};
const approve = {
  name: "approve",
  text: `WITH taken AS (UPDATE approvals SET status = 'approved' WHERE id = $1 AND status = 'pending' RETURNING id, refund)
SELECT graphile_worker.add_job('refund', (refund || jsonb_build_object('id', id))::json) FROM taken`,
};
const finish = {
  name: "finish",
  text: "UPDATE approvals SET status = 'done', outcome = $2 WHERE id = $1",
};
