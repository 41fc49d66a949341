import pg from "pg";
import type { Gate } from "../../../src/index.ts";
import type { Store } from "../../../src/store/store.ts";
import { type Code, codeOf } from "../../checkout.ts";
import { yes } from "../../yes.ts";
import { type Effect, fileIn, type OpenPeer, type Peer, type Told } from "../peer.ts";

const LEASE_MS = 1_000;

/** Makes a system of one of the functions below, with a store of the checkout whose code it runs. */
export function onSqlite(peer: (code: Code, store: Store, effect: Effect) => Driven): OpenPeer {
  return async ({ dir, effect, root }) => {
    const code = await codeOf(root);
    const store = code.sqliteStore({ file: fileIn(dir) });
    return { ...peer(code, store, effect), close: async () => store.close() };
  };
}

export function onPostgres(peer: (code: Code, store: Store, effect: Effect) => Driven): OpenPeer {
  return async ({ url, effect, root }) => {
    const code = await codeOf(root);
    const pool = new pg.Pool({ connectionString: url, max: 8, pipeline: true });
    const store = await code.postgresStore({ pool });
    return {
      ...peer(code, store, effect),
      async close() {
        await store.close();
        await pool.end();
      },
    };
  };
}

type Driven = Omit<Peer, "close">;

/** A call that a person is asked about, and that is executed here once they said yes. */
export function approved(code: Code, store: Store, effect: Effect): Driven {
  const gate = gateOf(code, store, effect, "external");
  const ask = caller(gate);
  const shown = new Map<string, string>();
  const look = async (id: string) => {
    shown.set(id, (await gate.interactions.get(id)).hash);
  };
  return {
    async propose(input) {
      const asked = await ask(input);
      if (asked.answer !== "pending") throw new Error(asked.text);
      return asked.interactionId;
    },
    look,
    async approve(id) {
      if (!shown.has(id)) await look(id);
      const hash = shown.get(id) ?? "";
      shown.delete(id);
      try {
        const { answers } = await gate.interactions.approve(id, { hash, by: "person:ada" });
        return answers[0]?.answer === "done" ? "executed" : "back to review";
      } catch (error) {
        if (code.isSallyportError(error, "already_answered")) return "already answered";
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
  };
}

/** A read-only call that the gate lets through: intent, act and outcome without a person. */
export function allowed(code: Code, store: Store, effect: Effect): Driven {
  const ask = caller(gateOf(code, store, effect, "read"));
  return {
    async propose(input) {
      const { answer, text } = await ask(input);
      if (answer !== "done") throw new Error(text);
      return "";
    },
    approve: async () => "executed",
    recover: async () => "nothing, still open",
  };
}

function gateOf(code: Code, store: Store, effect: Effect, kind: "external" | "read"): Gate {
  const refund = code.defineTool({
    name: "billing.refund",
    description: "Pays an invoice back.",
    input: {
      type: "object",
      properties: { invoice: { type: "string" }, cents: { type: "integer" } },
      required: ["invoice", "cents"],
      additionalProperties: false,
    },
    safety: { effect: kind },
    ...(kind === "read" ? { permissionClass: "readonly" } : { dryRun: () => effect.preview() }),
    execute: ({ input: { invoice, cents } }) =>
      effect.run({ invoice: String(invoice), cents: Number(cents) }),
  });
  return code.createGate({
    store,
    tenant: "peers",
    tools: [refund],
    validators: { tech: yes("schema"), business: yes("limits") },
    guard: code.allowAlways,
    policy: code.NO_RULES,
    leaseMs: LEASE_MS,
  });
}

/** An agent may have 5,000 questions open, and the previous release looks only now and then which of them are answered. */
const CALLS_PER_AGENT = 1_000;

function caller(gate: Gate) {
  let calls = 0;
  return (input: object) => {
    calls += 1;
    const agent = `agent:peers-${Math.floor(calls / CALLS_PER_AGENT)}`;
    const session = gate.sessions.open({ agent });
    return session.call({ callId: `c-${calls}`, tool: "billing.refund", input: { ...input } });
  };
}

const toldOf: Readonly<Record<string, Told>> = {
  done: "executed",
  unknown: "unknown, a person is asked",
};
