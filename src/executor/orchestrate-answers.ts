import type { CallAnswer, CallRequest } from "../model/call.ts";
import { errorText } from "../util/error-text.ts";
import type { CallHooks, OrchestrateOptions } from "./orchestrate.ts";

type Failed = Extract<CallAnswer, { answer: "failed" }>;

/** Runs one call and gives its answer, or one in its place. Never rejects, whatever `run` throws or gives. */
export async function answerOf(
  options: Pick<OrchestrateOptions, "run">,
  call: CallRequest,
  hooks: CallHooks,
): Promise<CallAnswer> {
  try {
    const answer: unknown = await options.run(call, hooks);
    if (isCallAnswer(answer)) return answer;
    return failed("The call ended with something that is no answer.", MAY_HAVE_HAPPENED);
  } catch (error) {
    const what = hooks.signal.aborted
      ? "The call was cancelled while it ran"
      : "The call broke off without an answer";
    return failed(`${what} (${errorText(error)}).`, MAY_HAVE_HAPPENED);
  }
}

export function notStarted(reason: unknown): Failed {
  return failed(
    `Not started: the calls were cancelled before this one's turn came (${errorText(reason)}).`,
    "Nothing was executed. Ask for it again if it is still wanted.",
  );
}

export function ignoredCancellation(graceMs: number): Failed {
  return failed(
    `The call was cancelled while it ran and gave no answer within ${graceMs} ms.`,
    MAY_HAVE_HAPPENED,
  );
}

/**
 * These stay `failed` although `unknown` would say it better: an unknown outcome carries the operation that a probe or a
 * person settles, and whoever breaks the contract of `run` has not told us which one that is.
 */
const MAY_HAVE_HAPPENED = "It may have taken effect all the same: look before asking again.";

function failed(what: string, advice: string): Failed {
  return { answer: "failed", text: `${what} ${advice}` };
}

const KINDS: Readonly<Record<CallAnswer["answer"], true>> = {
  done: true,
  pending: true,
  denied: true,
  failed: true,
  unknown: true,
};

/** As much as a reader needs to tell what became of the call; the types vouch for the rest. */
function isCallAnswer(value: unknown): value is CallAnswer {
  if (typeof value !== "object" || value === null) return false;
  const { answer, text } = value as Partial<CallAnswer>;
  return typeof answer === "string" && Object.hasOwn(KINDS, answer) && typeof text === "string";
}
