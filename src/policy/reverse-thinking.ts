import type { Finding, GateAnswer } from "../model/finding.ts";
import { REVERSE_THINKING_HINT } from "../tools/registry.ts";
import { shown } from "../util/error-text.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { JsonError } from "../util/json-error.ts";
import { parseStrictJson } from "../util/strict-json.ts";
import { allow, ask, deny } from "./answers.ts";

const POLICY = "reverse-thinking";

interface ReverseThinkingOptions {
  /** The tool's `capability.reverseThinking`. */
  readonly needed: boolean;
  /** The answer without a readable deliverable. There is no default, because both can be wrong. */
  readonly whenMissing: "refuse" | "proceed";
  /** Why there is none, for the refusal. */
  readonly problem?: string;
}

export interface ReverseThinkingDecision extends GateAnswer {
  /** Stored with the call; undefined when no pass was made or its result was unreadable. */
  readonly deliverable: Deliverable | undefined;
}

/**
 * Decides whether the plan survived its challenge. `written` is the agent's text, or undefined. `B_wins` denies plan A,
 * `depends_on_X` asks, `A_holds` has no objection. Independent of checkpoints; the caller of both chooses the order.
 */
export function decideReverseThinking(
  tool: string,
  written: string | JsonValue | undefined,
  { needed, whenMissing, problem = "none was given" }: ReverseThinkingOptions,
): ReverseThinkingDecision {
  if (!needed) return { ...allow(), deliverable: undefined };
  if (written === undefined) return missing(tool, problem, whenMissing);
  const read = readDeliverable(written);
  if (!read.ok) return missing(tool, `it cannot be read: ${read.problem}`, whenMissing);
  return { ...answerTo(tool, read.deliverable), deliverable: read.deliverable };
}

function answerTo(tool: string, { verdict, reason }: Deliverable): GateAnswer {
  const why = shown(reason, 500);
  switch (verdict) {
    case "A_holds":
      return allow();
    case "B_wins":
      return deny(
        POLICY,
        `Tool ${shown(tool)} was stopped by your own counter-check, which found another way to be better: ${why}. Nothing was executed. Take that way.`,
      );
    case "depends_on_X":
      return ask(
        POLICY,
        `The counter-check of tool ${shown(tool)} depends on something not yet known: ${why}. Find it out, or a person has to decide.`,
      );
  }
}

function missing(tool: string, why: string, policy: "refuse" | "proceed"): ReverseThinkingDecision {
  const what = `Tool ${shown(tool)} needs a counter-check (reverse thinking), but ${why}.`;
  // Anything but an explicit "proceed" refuses: the policy may come from a file.
  if (policy !== "proceed") {
    return {
      ...deny(POLICY, `${what} Nothing was executed. ${REVERSE_THINKING_HINT} Then call again.`),
      deliverable: undefined,
    };
  }
  const warning: Finding = {
    severity: "warning",
    policy: POLICY,
    message: `${what} It continues without one, as the policy says.`,
  };
  return { answer: "allow", findings: [warning], deliverable: undefined };
}

/** What produces a counter-check in the agent's place, for instance a model. Shape: callback; an error or silence means none. */
export type ReverseThinkingHandler = (
  request: {
    readonly tool: string;
    readonly input: JsonValue;
    readonly sessionId: string;
    readonly chain: readonly string[];
  },
  signal: AbortSignal,
) => string | JsonValue | Promise<string | JsonValue>;

/** A replay event: what the agent predicted, for comparison with what happened. */
export interface CounterfactualEvent {
  readonly kind: "counterfactual";
  readonly callId: string;
  readonly sessionId: string;
  readonly tool: string;
  readonly step: string;
  readonly verdict: DeliverableVerdict;
  readonly reason: string;
  readonly hiddenAssumptions: readonly string[];
  readonly failureScenarios: readonly string[];
  /** ISO instant of the judgement. */
  readonly at: string;
}

export function toReplayEvent(
  deliverable: Deliverable,
  call: {
    readonly callId: string;
    readonly sessionId: string;
    readonly tool: string;
    readonly at: string;
  },
): CounterfactualEvent & JsonObject {
  const { step, verdict, reason, hiddenAssumptions, failureScenarios } = deliverable;
  return {
    kind: "counterfactual",
    callId: call.callId,
    sessionId: call.sessionId,
    tool: call.tool,
    step,
    verdict,
    reason,
    hiddenAssumptions: [...hiddenAssumptions],
    failureScenarios: [...failureScenarios],
    at: call.at,
  };
}

/**
 * The agent's arguments against its own plan, required before some tools run: plan A is what it wants to do, B the best
 * alternative. Evidence for validators, not a validator.
 */
export interface Deliverable {
  /** The step of the run in which it was made; any label. */
  readonly step: string;
  readonly hiddenAssumptions: readonly string[];
  readonly failureScenarios: readonly string[];
  readonly verdict: DeliverableVerdict;
  readonly reason: string;
}

/** Continue; switch to the alternative; find out more first. */
export const DELIVERABLE_VERDICTS = ["A_holds", "B_wins", "depends_on_X"] as const;
type DeliverableVerdict = (typeof DELIVERABLE_VERDICTS)[number];

/** The metadata key under which a staged decision stores it. */
export const DELIVERABLE_KEY = "sallyport.counterfactual.deliverable";

const MOST_ITEMS = 50;
const LONGEST_TEXT = 4_000;
const KEYS = ["step", "hiddenAssumptions", "failureScenarios", "verdict", "reason"];

type ReadDeliverable =
  | { readonly ok: true; readonly deliverable: Deliverable }
  /** The problem, as the rest of a sentence. */
  | { readonly ok: false; readonly problem: string };

/**
 * Parses a model's deliverable, as text or as a value. Strict: a deliverable without arguments against the plan, with
 * an unknown verdict or with unknown fields is unreadable.
 */
export function readDeliverable(written: string | JsonValue): ReadDeliverable {
  const value = typeof written === "string" ? parsed(written) : written;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return unreadable("it is not a JSON object");
  }
  const extra = Object.keys(value).find((key) => !KEYS.includes(key));
  if (extra !== undefined)
    return unreadable(`it has a field that does not belong there; use ${KEYS.join(", ")}`);
  const { step, hiddenAssumptions, failureScenarios, verdict, reason } = value;
  if (!isText(step)) return unreadable("step must be a text");
  if (!isTexts(hiddenAssumptions)) return unreadable(listProblem("hiddenAssumptions"));
  if (!isTexts(failureScenarios)) return unreadable(listProblem("failureScenarios"));
  const known = DELIVERABLE_VERDICTS.find((one) => one === verdict);
  if (known === undefined) {
    return unreadable(`verdict must be one of ${DELIVERABLE_VERDICTS.join(", ")}`);
  }
  if (!isText(reason)) return unreadable("reason must be a text");
  return {
    ok: true,
    deliverable: { step, hiddenAssumptions, failureScenarios, verdict: known, reason },
  };
}

function parsed(text: string): JsonValue {
  try {
    return parseStrictJson(text);
  } catch (error) {
    if (error instanceof JsonError) return null;
    throw error;
  }
}

function listProblem(name: string): string {
  return `${name} must be a list of 1 to ${MOST_ITEMS} texts`;
}

function isTexts(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) && value.length > 0 && value.length <= MOST_ITEMS && value.every(isText)
  );
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "" && value.length <= LONGEST_TEXT;
}

function unreadable(problem: string): ReadDeliverable {
  return { ok: false, problem };
}
