import type { GateAnswer } from "../model/finding.ts";
import { inTime, type Stop, TimeoutError, type Timers } from "../util/timers.ts";
import { type HookAnswer, type HookOutcome, type HookPoint, mergeHooks } from "./hooks.ts";
import { shownError } from "./shown.ts";

/** A handler at one or more points of a run. Shape: callback; the engine waits for it. */
export interface Hook<Event = unknown> {
  readonly name: string;
  readonly points: readonly HookPoint[];
  handle(event: Event, signal: AbortSignal): HookAnswer | Promise<HookAnswer>;
}

export interface RunHooksOptions {
  readonly timers: Timers;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/**
 * Asks every hook of a point at the same time and joins what they say. Each gets its own deadline, so that a slow one
 * cannot silence the others, and all are always asked, so that the record shows everything that was said.
 */
export async function runHooks<Event>(
  hooks: readonly Hook<Event>[],
  point: HookPoint,
  event: Event,
  options: RunHooksOptions,
): Promise<GateAnswer> {
  const mine = hooks.filter(({ points }) => points.includes(point));
  return mergeHooks(point, await Promise.all(mine.map((hook) => runHook(hook, event, options))));
}

async function runHook<Event>(
  hook: Hook<Event>,
  event: Event,
  { timers, timeoutMs, signal }: RunHooksOptions,
): Promise<HookOutcome> {
  try {
    const work = (stop: Stop) => hook.handle(event, stop.signal);
    const answer = await inTime(work, timeoutMs, timers, signal);
    return { hook: hook.name, kind: "answered", answer };
  } catch (error) {
    if (error instanceof TimeoutError) {
      return { hook: hook.name, kind: "timed-out", ms: timeoutMs };
    }
    return { hook: hook.name, kind: "failed", error: shownError(error) };
  }
}
