// A gate whose calls wait for people, a notifier that is driven by hand, and receivers on loopback.

import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { createRedactor } from "../../src/audit/redact.ts";
import { createGate } from "../../src/gate/create-gate.ts";
import type { GateOptions } from "../../src/gate/options.ts";
import { createNotifier, type NotifyConfig } from "../../src/notify/index.ts";
import { memoryEngine } from "../../src/store/memory/index.ts";
import { createStore } from "../../src/store/store.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { manualClock } from "../../src/util/clock.ts";
import { seededRandom } from "../../src/util/random.ts";

/** What no notification may contain: it is in the input, the dry run and the questions. */
export const CANARY = "canary-4711";

const parts = {
  description: "A tool.",
  input: { type: "object" },
  dryRun: () => `would use ${CANARY}`,
  execute: () => `did ${CANARY}`,
} as const;

export const refund = defineTool({
  ...parts,
  name: "billing.refund",
  safety: { effect: "external" },
});
/** Of low risk: it can be undone. */
export const tag = defineTool({
  ...parts,
  name: "crm.tag",
  safety: { effect: "write", reversible: true },
  undo: () => ({ tool: "crm.tag", input: {} }),
});

export function openNotifyWorld(options: Partial<GateOptions> = {}) {
  const clock = manualClock(Date.parse("2026-11-18T12:00:00.000Z"));
  const engine = memoryEngine({ clock, random: seededRandom(7) });
  const store = createStore(engine, { redact: createRedactor({}) });
  const gate = createGate({ store, clock, tenant: "shop", tools: [refund, tag], ...options });
  const session = gate.sessions.open({ agent: "agent:billing" });
  let calls = 0;
  return {
    clock,
    store,
    gate,
    session,
    notices: store.tenant("shop").notices,
    /** A call that waits; answers the id of its question. */
    async ask(name: string = refund.name): Promise<string> {
      calls += 1;
      const callId = `c${calls}`;
      const answer = await session.call({ callId, tool: name, input: { note: CANARY, calls } });
      if (answer.answer !== "pending") throw new Error(answer.text);
      return answer.interactionId;
    },
    async approve(id: string, by = "person:ada") {
      const { hash } = await gate.interactions.get(id);
      return gate.interactions.approve(id, { hash, by });
    },
    notifier: (config: NotifyConfig) =>
      createNotifier({
        gate,
        store,
        tenant: "shop",
        config,
        baseUrl: "https://gate.example.com",
        clock,
        onError: (error) => {
          throw error;
        },
      }),
  };
}

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver on loopback. `answer` says how it answers each request. */
export async function startReceiver(
  answer: (received: Received, nth: number) => { status?: number; body?: string } = () => ({}),
) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece) => {
      body += piece;
    });
    request.on("end", () => {
      const one = { path: request.url ?? "", headers: request.headers, body };
      received.push(one);
      const { status = 200, body: text = "{}" } = answer(one, received.length);
      response.writeHead(status, { "content-type": "application/json" });
      response.end(text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, received };
}
