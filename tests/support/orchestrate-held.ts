import {
  type CallHooks,
  type CallResult,
  type OrchestrateOptions,
  orchestrate,
} from "../../src/gate/orchestrate.ts";
import type { CallAnswer, CallRequest } from "../../src/model/operation.ts";
import { manualClock } from "../../src/util/clock.ts";
import { manualTimers } from "./manual-timers.ts";

/** For tests: a batch whose calls end when the test says so, read to the end in the background. */
export function held(letters: string, change: Partial<OrchestrateOptions> = {}) {
  const started: HeldCall[] = [];
  const results: CallResult[] = [];
  const iterator = orchestrate(batch(letters), {
    run: ({ callId }, hooks) => {
      const { promise, resolve, reject } = Promise.withResolvers<CallAnswer>();
      started.push({ ...hooks, callId, answer: resolve, fail: reject });
      return promise;
    },
    isConcurrencySafe,
    ...change,
  });
  const reading = (async () => {
    for await (const result of iterator) results.push(result);
  })();
  return {
    started,
    results,
    reading,
    iterator,
    ids: () => started.map(({ callId }) => callId),
    async finish(callId: string, answer: CallAnswer = done(callId)) {
      started.find((call) => call.callId === callId)?.answer(answer);
      await settle();
    },
  };
}

export interface HeldCall extends CallHooks {
  readonly callId: string;
  answer(answer: CallAnswer): void;
  fail(error: unknown): void;
}

/** A letter per call: `r` is safe, anything else is not. The id is the letter and its place. */
export function batch(letters: string): CallRequest[] {
  return [...letters].map((tool, index) => ({ callId: `${tool}${index}`, tool, input: {} }));
}

export function isConcurrencySafe(tool: string): boolean {
  return tool === "r";
}

/** All results of a batch that ends by itself. */
export async function resultsOf(
  calls: readonly CallRequest[],
  options: OrchestrateOptions,
): Promise<CallResult[]> {
  const results: CallResult[] = [];
  for await (const result of orchestrate(calls, options)) results.push(result);
  return results;
}

export function done(text: string, data?: unknown): CallAnswer {
  const operationId = `op-${text}`;
  return { answer: "done", text, operationId, truncated: false, storedPath: "", data };
}

/** One turn of the event loop, after which everything that can go on has gone on. */
export function settle(): Promise<void> {
  return manualTimers(manualClock(0)).advance(0);
}
