import type { Finding, GateAnswer } from "../model/finding.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { allow, ask, deny } from "./answers.ts";
import {
  DELIVERABLE_KEY,
  type Deliverable,
  type DeliverableVerdict,
  readDeliverable,
} from "./deliverable.ts";
import { shown } from "./shown.ts";

const POLICY = "reverse-thinking";

export interface ReverseThinkingOptions {
  /** The tool's `capability.reverseThinking`. */
  readonly needed: boolean;
  /** What happens without a readable deliverable. There is no default: both can be wrong. */
  readonly whenMissing: "refuse" | "proceed";
}

export interface ReverseThinkingDecision extends GateAnswer {
  /** To be stored with the call; undefined when no pass was made or nothing readable came of it. */
  readonly deliverable: Deliverable | undefined;
}

/**
 * Was the plan challenged, and did it survive? `written` is what the agent produced, undefined when nothing. A verdict
 * never allows more than it found: `B_wins` denies plan A, `depends_on_X` asks, `A_holds` holds nothing back. Says
 * nothing about checkpoints; the two are independent, and whoever runs both chooses the order.
 */
export function decideReverseThinking(
  tool: string,
  written: string | JsonValue | undefined,
  { needed, whenMissing }: ReverseThinkingOptions,
): ReverseThinkingDecision {
  if (!needed) return { ...allow(), deliverable: undefined };
  if (written === undefined) return missing(tool, "none was given", whenMissing);
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
  const what = `Tool ${shown(tool)} needs a counter-check (hidden assumptions, failure scenarios, verdict, reason), but ${why}.`;
  // Anything but an explicit "proceed" refuses: the policy may come from a file.
  if (policy !== "proceed") {
    return {
      ...deny(POLICY, `${what} Nothing was executed. Write it and call again.`),
      deliverable: undefined,
    };
  }
  const warning: Finding = {
    severity: "warning",
    policy: POLICY,
    message: `${what} It goes on without, as the policy says.`,
  };
  return { answer: "allow", findings: [warning], deliverable: undefined };
}

/** The metadata of a staged decision with the deliverable in its one place. */
export function withDeliverable<Metadata extends Readonly<Record<string, unknown>>>(
  metadata: Metadata,
  deliverable: Deliverable,
): Metadata & { readonly [DELIVERABLE_KEY]: Deliverable } {
  return { ...metadata, [DELIVERABLE_KEY]: deliverable };
}

/** An event for later: what the agent foresaw, to be compared with what came. */
export interface ReplayEvent {
  readonly kind: "counterfactual";
  readonly callId: string;
  readonly sessionId: string;
  readonly tool: string;
  readonly step: string;
  readonly verdict: DeliverableVerdict;
  readonly reason: string;
  readonly hiddenAssumptions: readonly string[];
  readonly failureScenarios: readonly string[];
  /** ISO instant at which the deliverable was judged. */
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
): ReplayEvent & JsonObject {
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
