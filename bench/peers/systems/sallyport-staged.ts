import pg from "pg";
import { allowAlways, createStaging, isSallyportError } from "../../../src/index.ts";
import { postgresStore } from "../../../src/store/postgres/index.ts";
import { sqliteStore } from "../../../src/store/sqlite/index.ts";
import type { Store } from "../../../src/store/store.ts";
import { type Effect, fileIn, type OpenPeer, type Peer, type Refund } from "../peer.ts";

/** The path for platforms that execute by themselves: staged, reviewed twice, and reported back by the executor. */
export const stagedSqlite: OpenPeer = async ({ dir, effect }) => {
  const store = sqliteStore({ file: fileIn(dir) });
  return peer(store, effect, () => store.close());
};

export const stagedPostgres: OpenPeer = async ({ url, effect }) => {
  const pool = new pg.Pool({ connectionString: url, max: 8, pipeline: true });
  const store = await postgresStore({ pool });
  return peer(store, effect, async () => {
    await store.close();
    await pool.end();
  });
};

const VERDICT = { score: 1, severity: "warn", reason: "fits", policyVersion: "2026-11" } as const;
const YES = { ...VERDICT, approved: true };

function peer(store: Store, effect: Effect, close: () => Promise<void>): Peer {
  const { decisions } = store.tenant("peers");
  const staging = createStaging({
    store: decisions,
    tech: { name: "schema", review: () => ({ ...YES, validator: "schema" }) },
    // The business tier is the person: reviewing is passing their yes on.
    business: { name: "person:ada", review: () => ({ ...YES, validator: "person:ada" }) },
    guard: allowAlways,
  });
  let count = 0;
  return {
    async propose(refund) {
      count += 1;
      const raw = new TextEncoder().encode(JSON.stringify(refund));
      const { id } = await staging.stage(`session-${process.pid}-${count}`, {
        sourceTool: "billing.refund",
        raw,
        metadata: {},
      });
      await staging.validateTech(id);
      return id;
    },
    async approve(id) {
      try {
        const { diff } = await staging.validateBiz(id);
        const refund = JSON.parse(new TextDecoder().decode(diff.raw)) as Refund;
        const told = await effect.run(refund);
        await staging.markExecuted(id, { told });
        return "executed";
      } catch (error) {
        if (isSallyportError(error, "illegal_transition")) return "already answered";
        throw error;
      }
    },
    /** It stays approved and is listed as stuck; nothing repeats it. */
    recover: async () => "nothing, still open",
    close,
  };
}
