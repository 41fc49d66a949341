import type { GateAnswer } from "../model/finding.ts";
import { inTime, type Stop, TimeoutError, type Timers } from "../util/timers.ts";
import { allow, ask, deny, joinAnswers, shown, shownError } from "./answers.ts";

/**
 * The points of a run at which hooks run. `veto`: whether the answer can stop the run; without it the event has already
 * happened. `failing`: the answer of a hook that throws, times out or returns nothing. Before an action that is a
 * denial; a broken hook at `stop` must not keep an agent running forever.
 */
// biome-ignore format: a table
export const HOOK_POINTS = {
  session_start:     { veto: true,  failing: "deny",  when: "a session is about to begin" },
  session_end:       { veto: false, failing: "continue", when: "a session has ended" },
  user_prompt:       { veto: true,  failing: "deny",  when: "a person's words are about to reach the agent" },
  before_tool:       { veto: true,  failing: "deny",  when: "a tool is about to be called" },
  after_tool:        { veto: false, failing: "continue", when: "a tool has answered" },
  before_compaction: { veto: true,  failing: "deny",  when: "a conversation is about to be shortened" },
  before_delegation: { veto: true,  failing: "deny",  when: "work is about to be handed to a sub-agent" },
  after_delegation:  { veto: false, failing: "continue", when: "a sub-agent has answered" },
  before_review:     { veto: true,  failing: "deny",  when: "a decision is about to be reviewed" },
  after_review:      { veto: false, failing: "continue", when: "a decision has been reviewed" },
  before_undo:       { veto: true,  failing: "deny",  when: "an operation is about to be undone" },
  after_undo:        { veto: false, failing: "continue", when: "an operation has been undone" },
  notification:      { veto: false, failing: "continue", when: "a person is being notified" },
  stop:              { veto: true,  failing: "continue", when: "the agent wants to end its turn" },
} as const satisfies Record<string, { readonly veto: boolean; readonly failing: "deny" | "continue"; readonly when: string }>;

export type HookPoint = keyof typeof HOOK_POINTS;

export interface HookAnswer {
  readonly answer: "allow" | "ask" | "deny";
  readonly message?: string;
}

/** The outcome of one hook. */
export type HookOutcome =
  | { readonly hook: string; readonly kind: "answered"; readonly answer: unknown }
  | { readonly hook: string; readonly kind: "failed"; readonly error: string }
  | { readonly hook: string; readonly kind: "timed-out"; readonly ms: number };

/**
 * Combines the answers of the hooks of one point: deny beats ask, ask beats allow. No hooks means no objection; that is
 * not permission, because the gate's own checks are combined with it.
 */
export function mergeHooks(point: HookPoint, outcomes: readonly HookOutcome[]): GateAnswer {
  const answers = outcomes.map((outcome) => answerOf(point, outcome));
  return answers.length > 0 ? joinAnswers(answers) : allow();
}

function answerOf(point: HookPoint, outcome: HookOutcome): GateAnswer {
  const policy = `hook.${outcome.hook}`;
  switch (outcome.kind) {
    case "answered":
      return readAnswer(point, policy, outcome.answer);
    case "failed":
      return broken(point, policy, `failed (${outcome.error})`);
    case "timed-out":
      return broken(point, policy, `did not answer within ${outcome.ms} ms`);
  }
}

/** Handlers are third-party code, so their answers are validated like any input. */
function readAnswer(point: HookPoint, policy: string, value: unknown): GateAnswer {
  const { answer, message } = (typeof value === "object" && value !== null ? value : {}) as {
    readonly answer?: unknown;
    readonly message?: unknown;
  };
  const said = typeof message === "string" && message !== "" ? message : "it gave no reason.";
  if (answer === "allow") return allow();
  if (answer !== "ask" && answer !== "deny") {
    return broken(point, policy, "gave an answer that is none");
  }
  if (!HOOK_POINTS[point].veto) return noted(policy, `A hook objects, too late: ${said}`);
  return answer === "ask"
    ? ask(policy, `A hook wants a person to decide: ${said}`)
    : deny(policy, `A hook refused this: ${said} Nothing was executed.`);
}

function broken(point: HookPoint, policy: string, how: string): GateAnswer {
  const what = `The hook ${shown(policy.slice("hook.".length))} ${how}`;
  return HOOK_POINTS[point].failing === "deny"
    ? deny(
        policy,
        `${what}. At this point that counts as a refusal. Nothing was executed. Tell the operator.`,
      )
    : noted(policy, `${what}. At this point that changes nothing.`);
}

/** Kept as a warning; it stops nothing. */
function noted(policy: string, message: string): GateAnswer {
  return { answer: "allow", findings: [{ severity: "warning", policy, message }] };
}

/** A handler at one or more points of a run. Shape: callback; the engine waits for it. */
export interface Hook<Event = unknown> {
  readonly name: string;
  readonly points: readonly HookPoint[];
  handle(event: Event, signal: AbortSignal): HookAnswer | Promise<HookAnswer>;
}

interface RunHooksOptions {
  readonly timers: Timers;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/**
 * Runs all hooks of a point concurrently and combines their answers. Each has its own deadline, so that a slow hook
 * cannot hide the others, and all of them run, so that the record is complete.
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
