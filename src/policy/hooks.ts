import type { GateAnswer } from "../model/finding.ts";
import { inTime, type Stop, TimeoutError, type Timers } from "../util/timers.ts";
import { allow, ask, deny, joinAnswers, shown, shownError } from "./answers.ts";

/**
 * The points in a run where hooks may speak. `veto`: the answer decides whether the run goes on; where there is none it
 * is too late to forbid anything. `failing`: what it means when a hook throws, times out or gives no answer. Before
 * something happens that is a denial; a broken hook at `stop` must not keep an agent running for ever.
 */
// biome-ignore format: a table
export const HOOK_POINTS = {
  session_start:     { veto: true,  failing: "deny",  when: "a session is about to begin" },
  session_end:       { veto: false, failing: "go on", when: "a session has ended" },
  user_prompt:       { veto: true,  failing: "deny",  when: "a person's words are about to reach the agent" },
  before_tool:       { veto: true,  failing: "deny",  when: "a tool is about to be called" },
  after_tool:        { veto: false, failing: "go on", when: "a tool has answered" },
  before_compaction: { veto: true,  failing: "deny",  when: "a conversation is about to be shortened" },
  before_delegation: { veto: true,  failing: "deny",  when: "work is about to be handed to a sub-agent" },
  after_delegation:  { veto: false, failing: "go on", when: "a sub-agent has answered" },
  before_review:     { veto: true,  failing: "deny",  when: "a decision is about to be reviewed" },
  after_review:      { veto: false, failing: "go on", when: "a decision has been reviewed" },
  before_undo:       { veto: true,  failing: "deny",  when: "an operation is about to be taken back" },
  after_undo:        { veto: false, failing: "go on", when: "an operation has been taken back" },
  notification:      { veto: false, failing: "go on", when: "a person is being told something" },
  stop:              { veto: true,  failing: "go on", when: "the agent wants to end its turn" },
} as const satisfies Record<string, { readonly veto: boolean; readonly failing: "deny" | "go on"; readonly when: string }>;

export type HookPoint = keyof typeof HOOK_POINTS;

export interface HookAnswer {
  readonly answer: "allow" | "ask" | "deny";
  readonly message?: string;
}

/** What became of one hook. */
export type HookOutcome =
  | { readonly hook: string; readonly kind: "answered"; readonly answer: unknown }
  | { readonly hook: string; readonly kind: "failed"; readonly error: string }
  | { readonly hook: string; readonly kind: "timed-out"; readonly ms: number };

/**
 * Joins what the hooks of one point said: deny beats ask, ask beats allow. Without hooks nothing is held back here; that
 * is no permission, because the gate's own checks are joined in.
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

/** Handlers are other people's code, so what they return is read like any input. */
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

/** Kept as a warning; it holds nothing back. */
function noted(policy: string, message: string): GateAnswer {
  return { answer: "allow", findings: [{ severity: "warning", policy, message }] };
}

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
