// The server under measure, in a process of its own: the load generator must not share its thread.

import { createServer } from "../src/http/index.ts";
import { allowAlways, createGate, NO_RULES } from "../src/index.ts";
import type { Validator } from "../src/model/decision.ts";
import { sqliteStore } from "../src/store/sqlite/index.ts";
import { defineTool } from "../src/tools/define-tool.ts";

export interface Ready {
  readonly url: string;
  readonly agent: string;
  readonly auditor: string;
  readonly sessions: readonly string[];
}

export type Order =
  /** So many calls through the library, by so many callers at once. */
  | { readonly do: "library"; readonly callers: number; readonly calls: number }
  /** So many entries of the trail a second, for so long. */
  | { readonly do: "entries"; readonly perSecond: number; readonly seconds: number };

const refuse: Validator = {
  name: "never asked",
  review: () => {
    throw new Error("a read-only call is not reviewed");
  },
};

const look = defineTool({
  name: "stock.look",
  description: "Shows what is on stock.",
  input: {
    type: "object",
    properties: { sku: { type: "string", maxLength: 40 } },
    required: ["sku"],
    additionalProperties: false,
  },
  safety: { effect: "read", confidenceMin: 50, concurrencySafe: true },
  permissionClass: "readonly",
  execute: () => "12 on stock",
});

const [file = ""] = process.argv.slice(2);
const store = sqliteStore({ file });
const gate = createGate({
  store,
  tenant: "bench",
  tools: [look],
  validators: { tech: refuse, business: refuse },
  guard: allowAlways,
  policy: NO_RULES,
});
// One sender sends all there is here; what it may send is not what is measured.
const rate = { perSecond: 1e6, burst: 1e6 };
const limits = { senderRate: rate, tenantRate: rate };
const server = await createServer({ store, gates: { bench: gate }, limits });
const agent = await server.makeToken({ subject: "agent:bench", roles: ["agent"] });
const auditor = await server.makeToken({ subject: "audit:bench", roles: ["auditor"] });
const sessions = await Promise.all(
  Array.from({ length: 32 }, async (_, n) => {
    const session = {
      id: `agent:bench:${n}`,
      agent: "agent:bench",
      owner: "",
      workingDirectory: "",
    };
    return (await store.tenant("bench").sessions.open(session)).id;
  }),
);
const input = '{"sku":"A-17","_confidence":90}';
let count = 0;

async function callOnce(id: string): Promise<void> {
  count += 1;
  const session = gate.sessions.open({ id, agent: "agent:bench" });
  const answer = await session.call({ callId: `l-${count}`, tool: "stock.look", input });
  if (answer.answer !== "done") throw new Error(answer.text);
}

async function obey(order: Order): Promise<void> {
  if (order.do === "library") {
    const each = order.calls / order.callers;
    const callers = Array.from({ length: order.callers }, async (_, n) => {
      for (let i = 0; i < each; i += 1) await callOnce(sessions[n % sessions.length] ?? "");
    });
    await Promise.all(callers);
    return;
  }
  const end = performance.now() + order.seconds * 1_000;
  const { seq: start } = await gate.audit.head();
  const began = performance.now();
  while (performance.now() < end) {
    const due = ((performance.now() - began) / 1_000) * order.perSecond;
    const { seq } = await gate.audit.head();
    // A call writes two entries. When the disk is slow several calls share a commit, so that the rate is kept.
    const behind = Math.min(20, Math.ceil((due - (seq - start)) / 2));
    const calls = Array.from({ length: Math.max(0, behind) }, (_, n) =>
      callOnce(sessions[n] ?? ""),
    );
    await Promise.all(calls);
    if (behind <= 0) await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

process.on("message", (order: Order) => {
  obey(order).then(
    () => process.send?.("done"),
    (error: unknown) => process.send?.(`failed: ${String(error)}`),
  );
});
process.on("disconnect", () => process.exit(0));
process.send?.({ url: server.url, agent, auditor, sessions } satisfies Ready);
