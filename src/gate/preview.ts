// What a call would do, asked before anything is staged: judged like the call itself, then its dry run. Nobody is asked, nothing
// is staged or executed.

import type { Finding } from "../model/finding.ts";
import type { CallRequest } from "../model/operation.ts";
import { capabilityOf, type SafetyClass, safetyClassOf } from "../tools/tool.ts";
import { previewCall } from "../tools/tool-call.ts";
import { errorText } from "../util/error-text.ts";
import type { JsonValue } from "../util/json.ts";
import type { GateContext } from "./context.ts";
import { type Caller, judgeCall } from "./judge.ts";
import { whileLooking } from "./show.ts";

export interface CallPreview {
  /** What the rules say to the call: run, run after the reviews, ask a person, refuse; `failed` for one that cannot be read. */
  readonly verdict: "allow" | "review" | "ask" | "deny" | "failed";
  /** Why it would be refused, for a model; empty otherwise. */
  readonly text: string;
  readonly findings: readonly Finding[];
  /** What would happen; null when the tool has no dry run, or the call would be refused. */
  readonly dryRun: JsonValue;
  /** Empty when the call would be refused. */
  readonly safetyClass: SafetyClass | "";
}

/** See `Session.preview`. A call that would be refused is not looked at: its dry run could read what the call may not. */
export async function previewOf(
  context: GateContext,
  request: CallRequest,
  caller: Caller,
): Promise<CallPreview> {
  // As for a call that was approved: neither a counter-check nor a checkpoint is asked for.
  const judged = await judgeCall(context, request, caller, "approved");
  if (judged.verdict === "deny" || judged.verdict === "failed") {
    const findings = judged.verdict === "deny" ? judged.findings : [];
    return { verdict: judged.verdict, text: judged.text, findings, dryRun: null, safetyClass: "" };
  }
  const { tool, input, places, decision, verdict } = judged;
  const { sessionId, workingDirectory } = caller;
  const facts = { sessionId, callId: request.callId, input, workingDirectory, places };
  return {
    verdict: capabilityOf(tool).checkpoint ? "ask" : verdict,
    text: "",
    findings: decision.findings,
    dryRun: await dryRunOf(),
    safetyClass: safetyClassOf(tool),
  };

  async function dryRunOf(): Promise<JsonValue> {
    try {
      const seen = await whileLooking(context, facts, (call) => previewCall(tool, call));
      return seen === undefined ? null : { ...seen };
    } catch (error) {
      return { unavailable: errorText(error) };
    }
  }
}
