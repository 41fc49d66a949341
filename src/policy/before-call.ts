import type { GateAnswer } from "../model/finding.ts";
import { CONFIDENCE_KEY } from "../tools/registry.ts";
import { InvariantError, invariant, shown, shownError } from "../util/error-text.ts";
import type { JsonValue } from "../util/json.ts";
import { JsonError } from "../util/json-error.ts";
import { parseStrictJson } from "../util/strict-json.ts";
import { TimeoutError, type Timers, withDeadline } from "../util/timers.ts";
import { allow, ask, deny, joinAnswers } from "./answers.ts";

interface ConfidenceOptions {
  /** The agent's own estimate must be at least this, 0 to 100; 0 switches the gate off. */
  readonly min: number;
  readonly key?: string;
}

type ConfidenceAnswer<Input> =
  | { readonly ok: true; readonly input: Input }
  | { readonly ok: false; readonly message: string };

/**
 * Decides by the agent's own estimate whether a call may proceed. A string is parsed as the JSON text that the model
 * wrote. The estimate can only stop a call: no input makes the gate more lenient than a plain number at or above the
 * minimum.
 *
 * With a minimum of 0 the input is returned unread and unchanged. Above 0 the reserved key is removed on a pass; the
 * other bytes of a text stay the same.
 *
 *     const read = checkConfidence('{"invoice":"2041","_confidence":90}', { min: 80 });
 */
export function checkConfidence<Input extends string | JsonValue>(
  input: Input,
  { min, key = CONFIDENCE_KEY }: ConfidenceOptions,
): ConfidenceAnswer<Input> {
  if (min === 0) return { ok: true, input };
  // Not `min <= 0`: NaN is neither above nor below and would switch the gate off.
  if (typeof min !== "number" || !(min > 0 && min <= 100)) {
    return fail(
      `Confidence gate: this tool asks for a minimum that is not a number from 0 to 100, so no call can pass. Nothing was executed. Tell the operator.`,
    );
  }
  const read = typeof input === "string" ? readText(input, key, min) : { value: input };
  if ("message" in read) return fail(read.message);
  const { value } = read;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return fail(missing(key, min, "the input is not a JSON object, so the key cannot be found"));
  }
  if (!Object.hasOwn(value, key)) return fail(missing(key, min, "it is missing from the input"));
  const problem = judge(value[key], key, min);
  if (problem !== undefined) return fail(problem);
  const rest =
    typeof input === "string"
      ? cutMember(input, key)
      : Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
  return { ok: true, input: rest as Input };
}

function readText(
  text: string,
  key: string,
  min: number,
): { readonly value: JsonValue } | { readonly message: string } {
  try {
    return { value: parseStrictJson(text) };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return { message: missing(key, min, `the input cannot be read (${error.message})`) };
  }
}

function judge(value: unknown, key: string, min: number): string | undefined {
  if (typeof value !== "number" || !(value >= 0 && value <= 100)) {
    const got = typeof value === "number" ? String(value) : kindOf(value);
    return `Confidence gate: ${shown(key)} must be a plain number from 0 to 100, got ${got}. This tool requires at least ${min}. Nothing was executed. Send the call again with an honest estimate.`;
  }
  if (value >= min) return undefined;
  return `Confidence gate: your confidence of ${value} is below the required minimum of ${min}. Nothing was executed. Find out more or choose another approach; do not just raise the number.`;
}

function missing(key: string, min: number, why: string): string {
  return `Confidence gate: this tool needs ${shown(key)} in its input, a self-estimate from 0 to 100 of at least ${min}; ${why}. Nothing was executed. Send the call again with an honest estimate.`;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : `a value of type ${typeof value}`;
}

function fail(message: string): { readonly ok: false; readonly message: string } {
  return { ok: false, message };
}

interface Member {
  readonly key: string;
  readonly keyAt: number;
  readonly valueEnd: number;
  /** The position of the comma after it, or -1 for the last member. */
  readonly commaAt: number;
}

/**
 * Removes one member from the text of a JSON object and keeps every other byte, including white space and spelling. The
 * text must have passed the strict parser. Keys are compared by value, so a key written with escapes is found too.
 */
function cutMember(text: string, key: string): string {
  let previousComma = -1;
  for (const member of membersOf(text)) {
    if (member.key !== key) {
      previousComma = member.commaAt;
      continue;
    }
    if (member.commaAt >= 0) return text.slice(0, member.keyAt) + text.slice(member.commaAt + 1);
    // The last member is removed with the comma before it, if any.
    const from = previousComma >= 0 ? previousComma : member.keyAt;
    return text.slice(0, from) + text.slice(member.valueEnd);
  }
  return text;
}

function* membersOf(text: string): Generator<Member> {
  let at = skipSpace(text, text.indexOf("{") + 1);
  while (text[at] === '"') {
    const keyAt = at;
    const keyEnd = endOfString(text, at);
    const key = JSON.parse(text.slice(keyAt, keyEnd)) as string;
    const valueAt = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const valueEnd = endOfValue(text, valueAt);
    at = skipSpace(text, valueEnd);
    const hasMore = text[at] === ",";
    yield { key, keyAt, valueEnd, commaAt: hasMore ? at : -1 };
    if (!hasMore) return;
    at = skipSpace(text, at + 1);
  }
}

function endOfValue(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') {
      at = endOfString(text, at) - 1;
      if (depth === 0) return at + 1;
    } else if (character === "{" || character === "[") {
      depth += 1;
    } else if (character === "}" || character === "]") {
      // A number or literal ends at the closing bracket of the object around it.
      if (depth === 0) return trimEnd(text, at);
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (character === "," && depth === 0) {
      return trimEnd(text, at);
    }
  }
  throw new InvariantError("cutMember was given a text that is not a JSON object");
}

function endOfString(text: string, from: number): number {
  let at = from + 1;
  while (text[at] !== '"') {
    invariant(at < text.length, "cutMember was given a text that is not a JSON object");
    at += text[at] === "\\" ? 2 : 1;
  }
  return at + 1;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (isSpace(text[at])) at += 1;
  return at;
}

function trimEnd(text: string, from: number): number {
  let at = from;
  while (isSpace(text[at - 1])) at -= 1;
  return at;
}

function isSpace(character: string | undefined): boolean {
  return character === " " || character === "\n" || character === "\r" || character === "\t";
}

/**
 * The points of a run at which hooks run. `veto`: whether the answer can stop what is about to happen; without it the event
 * has already happened. `failing`: what a hook means that throws, times out or returns nothing. Before an action that is a
 * denial; a broken hook at `stop` must not keep an agent running forever. `ask`: whether a person can be asked at this
 * point; where that is not possible, a hook that asks denies.
 *
 *     const canStop = HOOK_POINTS.before_tool.veto;
 */
// biome-ignore format: a table
export const HOOK_POINTS = {
  session_start:     { veto: true,  failing: "deny",     ask: "deny",   when: "a session is about to do its first work in this process" },
  session_end:       { veto: false, failing: "continue", ask: "deny",   when: "a session has ended" },
  user_prompt:       { veto: true,  failing: "deny",     ask: "deny",   when: "a person's words are about to reach the agent" },
  before_tool:       { veto: true,  failing: "deny",     ask: "person", when: "a tool is about to be called" },
  after_tool:        { veto: false, failing: "continue", ask: "deny",   when: "a tool has answered" },
  before_compaction: { veto: true,  failing: "deny",     ask: "deny",   when: "a conversation is about to be shortened" },
  before_delegation: { veto: true,  failing: "deny",     ask: "deny",   when: "work is about to be handed to a sub-agent" },
  after_delegation:  { veto: false, failing: "continue", ask: "deny",   when: "a delegation has ended" },
  before_review:     { veto: true,  failing: "deny",     ask: "person", when: "a decision is about to be reviewed by a tier" },
  after_review:      { veto: false, failing: "continue", ask: "deny",   when: "a tier has reviewed a decision" },
  before_undo:       { veto: true,  failing: "deny",     ask: "deny",   when: "an operation is about to be undone" },
  after_undo:        { veto: false, failing: "continue", ask: "deny",   when: "undoing an operation has ended" },
  notification:      { veto: false, failing: "continue", ask: "deny",   when: "a question to people was opened" },
  stop:              { veto: true,  failing: "continue", ask: "deny",   when: "the agent wants to end its turn" },
} as const satisfies Record<string, {
  readonly veto: boolean;
  readonly failing: "deny" | "continue";
  readonly ask: "person" | "deny";
  readonly when: string;
}>;

export type HookPoint = keyof typeof HOOK_POINTS;

export interface HookAnswer {
  readonly answer: "allow" | "ask" | "deny";
  readonly message?: string;
}

/** What became of a question to third-party code. */
type AskOutcome =
  | { readonly kind: "answered"; readonly answer: unknown }
  | { readonly kind: "failed"; readonly error: string }
  | { readonly kind: "timed-out"; readonly ms: number };

interface AskOptions {
  readonly timers: Timers;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

async function askInTime(
  work: (stop: AbortSignal) => unknown,
  { timers, timeoutMs, signal }: AskOptions,
): Promise<AskOutcome> {
  try {
    return { kind: "answered", answer: await withDeadline(work, timeoutMs, timers, signal) };
  } catch (error) {
    if (error instanceof TimeoutError) return { kind: "timed-out", ms: timeoutMs };
    return { kind: "failed", error: shownError(error) };
  }
}

/** The answers of third-party code are validated like any input. */
function fieldsOf(answer: unknown): Readonly<Record<string, unknown>> {
  return (typeof answer === "object" && answer !== null ? answer : {}) as Record<string, unknown>;
}

export type HookOutcome = AskOutcome & { readonly hook: string };

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

function readAnswer(point: HookPoint, policy: string, value: unknown): GateAnswer {
  const { answer, message } = fieldsOf(value);
  const said = typeof message === "string" && message !== "" ? message : "it gave no reason.";
  if (answer === "allow") return allow();
  if (answer !== "ask" && answer !== "deny") {
    return broken(point, policy, "gave an answer that is none");
  }
  if (!HOOK_POINTS[point].veto) return noted(policy, `A hook objects, too late: ${said}`);
  if (answer === "deny") return deny(policy, `A hook refused this: ${said} Nothing was executed.`);
  return HOOK_POINTS[point].ask === "person"
    ? ask(policy, `A hook wants a person to decide: ${said}`)
    : deny(policy, `A hook wants a person to decide, and no person can be asked here: ${said}`);
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
  /** Its own time limit; the gate's when left out. */
  readonly timeoutMs?: number;
  handle(event: Event, signal: AbortSignal): HookAnswer | Promise<HookAnswer>;
}

/** Why a hook could never be asked, as it was given; undefined when it can. A function or a program answers. */
export function hookProblem(hook: {
  readonly name: string;
  readonly points: readonly HookPoint[];
  readonly timeoutMs?: number;
  readonly command?: string;
  readonly args?: readonly string[];
  readonly handle?: unknown;
}): string | undefined {
  const { name, points, timeoutMs, command, args = [], handle } = hook;
  if (typeof name !== "string" || name.trim() === "") return "Every hook has a name.";
  if (!Array.isArray(points) || points.length === 0) {
    return `The hook "${name}" names no point, so it would never be called.`;
  }
  const unknown = points.filter((point) => !Object.hasOwn(HOOK_POINTS, point));
  if (unknown.length > 0) {
    return `The hook "${name}" names ${unknown.join(", ")}; the points are ${Object.keys(HOOK_POINTS).join(", ")}.`;
  }
  if (timeoutMs !== undefined && !(Number.isFinite(timeoutMs) && timeoutMs > 0)) {
    return `timeoutMs of the hook "${name}" is a number of milliseconds above 0.`;
  }
  if (command === undefined) {
    if (typeof handle === "function") return undefined;
    return `The hook "${name}" needs a function handle or a program in command.`;
  }
  const isText = (one: unknown) => typeof one === "string" && !one.includes("\0");
  if (isText(command) && command !== "" && Array.isArray(args) && args.every(isText)) return;
  return `The hook "${name}" needs a program in command and texts in args.`;
}

/**
 * Runs all hooks of a point concurrently and combines their answers. Each has its own deadline, so that a slow hook
 * cannot hide the others, and all of them run, so that the record is complete.
 */
export async function runHooks<Event>(
  hooks: readonly Hook<Event>[],
  point: HookPoint,
  event: Event,
  options: AskOptions,
): Promise<GateAnswer> {
  const mine = hooks.filter(({ points }) => points.includes(point));
  const asked = mine.map(async (hook) => {
    const { timeoutMs = options.timeoutMs } = hook;
    const outcome = await askInTime((stop) => hook.handle(event, stop), { ...options, timeoutMs });
    return { hook: hook.name, ...outcome };
  });
  return mergeHooks(point, await Promise.all(asked));
}

interface CheckpointRequest {
  readonly tool: string;
  readonly input: JsonValue;
  /** The reason for the checkpoint. */
  readonly reason: string;
}

/** Asks a person through the host. Shape: callback; the call waits for it. A time-out or a throw means no. */
export type CheckpointHandler = (
  request: CheckpointRequest,
  signal: AbortSignal,
) => CheckpointAnswer | Promise<CheckpointAnswer>;

export interface RunCheckpointOptions extends AskOptions {
  /** The tool's `capability.checkpoint`. */
  readonly needed: boolean;
  readonly handler: CheckpointHandler | undefined;
}

/** Asks the host's handler and waits. Answers that outlive the connection are handled by confirm interactions. */
export async function runCheckpoint(
  request: CheckpointRequest,
  { needed, handler, ...options }: RunCheckpointOptions,
): Promise<CheckpointDecision> {
  const { tool } = request;
  if (!needed) return { go: true };
  if (handler === undefined) {
    return refuse(tool, "it needs a person's go, and there is no person to ask");
  }
  return decideCheckpoint(tool, await askInTime((stop) => handler(request, stop), options));
}

/** The answers of a checkpoint handler. */
export type CheckpointAnswer =
  | { readonly answer: "go" }
  | { readonly answer: "refuse"; readonly reason: string }
  | { readonly answer: "cancelled" };

type CheckpointDecision =
  | { readonly go: true }
  | { readonly go: false; readonly answer: "refuse" | "cancelled"; readonly message: string };

/**
 * Decides whether a tool that needs a checkpoint may run. Only an explicit go of the handler allows it: no handler, an
 * error, a time-out and an invalid answer all refuse. Only the tool's flag decides whether there is a checkpoint, never
 * the model's output.
 */
export function decideCheckpoint(tool: string, outcome: AskOutcome): CheckpointDecision {
  switch (outcome.kind) {
    case "failed":
      return refuse(tool, `asking for a person's go failed (${outcome.error})`);
    case "timed-out":
      return refuse(tool, `no person approved within ${outcome.ms} ms`);
    case "answered":
      return readGo(tool, outcome.answer);
  }
}

function readGo(tool: string, value: unknown): CheckpointDecision {
  const { answer, reason } = fieldsOf(value);
  if (answer === "go") return { go: true };
  if (answer === "refuse") {
    return refuse(
      tool,
      typeof reason === "string" && reason !== "" ? `refused: ${reason}` : "a person refused",
    );
  }
  if (answer === "cancelled") {
    const message = `The checkpoint of tool ${shown(tool)} was cancelled. Nothing was executed. Ask what to do instead of calling it again.`;
    return { go: false, answer: "cancelled", message };
  }
  return refuse(tool, "the checkpoint's answer was neither go, refuse nor cancelled");
}

function refuse(tool: string, why: string): CheckpointDecision {
  return {
    go: false,
    answer: "refuse",
    message: `Tool ${shown(tool)} was stopped at its checkpoint: ${why}. Nothing was executed. Choose another approach; repeating the call will not help.`,
  };
}
