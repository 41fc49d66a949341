import pg from "pg";
import { allowAlways, createGate, isSallyportError, NO_RULES } from "../../../src/index.ts";
import { postgresStore } from "../../../src/store/postgres/index.ts";
import { sqliteStore } from "../../../src/store/sqlite/index.ts";
import type { Store } from "../../../src/store/store.ts";
import { defineTool } from "../../../src/tools/define-tool.ts";
import { yes } from "../../yes.ts";
import { type Effect, fileIn, type OpenPeer, type Peer, type Told } from "../peer.ts";

const LEASE_MS = 1_000;

export const sallyportSqlite: OpenPeer = async ({ dir, effect }) => {
  const store = sqliteStore({ file: fileIn(dir) });
  return peer(store, effect, async () => store.close());
};

export const sallyportPostgres: OpenPeer = async ({ url, effect }) => {
  const pool = new pg.Pool({ connectionString: url, max: 8, pipeline: true });
  const store = await postgresStore({ pool });
  return peer(store, effect, async () => {
    await store.close();
    await pool.end();
  });
};

function peer(store: Store, effect: Effect, close: () => Promise<void>): Peer {
  const refund = defineTool({
    name: "billing.refund",
    description: "Pays an invoice back.",
    input: {
      type: "object",
      properties: { invoice: { type: "string" }, cents: { type: "integer" } },
      required: ["invoice", "cents"],
      additionalProperties: false,
    },
    safety: { effect: "external" },
    dryRun: () => effect.preview(),
    execute: ({ input: { invoice, cents } }) =>
      effect.run({ invoice: String(invoice), cents: Number(cents) }),
  });
  const gate = createGate({
    store,
    tenant: "peers",
    tools: [refund],
    validators: { tech: yes("schema"), business: yes("limits") },
    guard: allowAlways,
    policy: NO_RULES,
    leaseMs: LEASE_MS,
  });
  let calls = 0;
  return {
    async propose(input) {
      calls += 1;
      const session = gate.sessions.open({ agent: "agent:peers" });
      const asked = await session.call({
        callId: `c-${calls}`,
        tool: refund.name,
        input: { ...input },
      });
      if (asked.answer !== "pending") throw new Error(asked.text);
      return asked.interactionId;
    },
    async approve(id) {
      const { hash } = await gate.interactions.get(id);
      try {
        const { answers } = await gate.interactions.approve(id, { hash, by: "person:ada" });
        return answers[0]?.answer === "done" ? "executed" : "back to review";
      } catch (error) {
        if (isSallyportError(error, "already_answered")) return "already answered";
        throw error;
      }
    },
    async recover() {
      const deadline = Date.now() + 5_000;
      while (Date.now() < deadline) {
        const { operations } = await gate.recover();
        const answer = operations[0]?.answer.answer;
        if (answer !== undefined) return toldOf[answer] ?? "nothing, still open";
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      return "nothing, still open";
    },
    close,
  };
}

const toldOf: Readonly<Record<string, Told>> = {
  done: "executed",
  unknown: "unknown, a person is asked",
};
