import { setTimeout } from "node:timers/promises";
import { MAX_LIST } from "../../src/model/record.ts";
import type { Store } from "../../src/store/store.ts";

const ENDED = new Set(["operation.succeeded", "operation.failed", "operation.lost"]);

/**
 * Waits until nothing is left to continue: no started call, no approved decision without an unknown call, no proposal
 * that was cut off. Answers how long that took; throws when it takes longer than it may.
 */
export async function untilSettled(store: Store, tenantName: string, withinMs: number) {
  const { decisions, operations, leftBehind, audit } = store.tenant(tenantName);
  const started = new Set<string>();
  let after = 0;

  async function readOn(): Promise<void> {
    for (;;) {
      const page = await audit.read({ after, limit: 1_000 });
      for (const { type, subject, seq } of page) {
        if (type === "operation.started" || type === "operation.reopened") started.add(subject);
        if (ENDED.has(type)) started.delete(subject);
        after = seq;
      }
      if (page.length < 1_000) return;
    }
  }

  async function open(): Promise<readonly string[]> {
    await readOn();
    const states = ["approved", "pending_tech"] as const;
    const { items } = await leftBehind.unasked(0, { after: 0, limit: MAX_LIST });
    const waiting: string[] = [...started, ...items.map(({ id }) => id)];
    for (const { id, state, sessionId } of await decisions.list({ states, limit: MAX_LIST })) {
      const own = await operations.listBySession(sessionId, { decisionId: id });
      const isFlagged = own.some(({ status }) => status === "unknown");
      if (state === "pending_tech" || !isFlagged) waiting.push(id);
    }
    return waiting;
  }

  const start = performance.now();
  for (;;) {
    const waiting = await open();
    const tookMs = Math.round(performance.now() - start);
    if (waiting.length === 0) return tookMs;
    if (tookMs > withinMs) throw new Error(`I14 not at rest after ${tookMs} ms: ${waiting}`);
    await setTimeout(100);
  }
}
