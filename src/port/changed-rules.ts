import type { Decision } from "../model/decision.ts";
import type { Shown } from "../store/approvals.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { chainOf, decodeAction } from "./action.ts";
import { judgeCall } from "./judge-call.ts";
import { reviewOf } from "./propose.ts";
import type { Rooms } from "./rooms.ts";

/** What was made of the rules since somebody said yes: the calls are refused now, or have to be looked at again. */
export interface ChangedRules {
  readonly refused: boolean;
  readonly text: string;
}

/**
 * A person agreed under certain rules and as one of those who had to. When either is not so any more, the yes is void:
 * what the new rules refuse is refused before its first call, everything else is asked about again (I4).
 */
export async function changedRules(
  decision: Decision,
  { preview }: Shown,
  first: number,
  rooms: Rooms,
): Promise<ChangedRules | undefined> {
  const { policy } = rooms.judging;
  if (policy.hash !== preview.policyHash) {
    const why = await refusal(decision, first, rooms);
    if (why !== undefined) return { refused: true, text: why };
    const [was, is] = [preview.policyHash, policy.hash].map((hash) => hash.slice(0, 12));
    const text = `The rules were changed since: they were ${was}, now they are ${is} (version ${policy.version}).`;
    return { refused: false, text };
  }
  const shown = Array.isArray(preview.dryRun) ? preview.dryRun : [];
  const now = reviewOf(decision, rooms, shown);
  if (!now.possible) return { refused: true, text: now.problem };
  const [was, is] = [preview.requires, now.review.requires].map((one) => canonicalJson(one));
  if (was === is) return undefined;
  return { refused: false, text: `Other people have to say yes now. Then: ${was}. Now: ${is}.` };
}

async function refusal(
  decision: Decision,
  first: number,
  { judging, store }: Rooms,
): Promise<string | undefined> {
  const { sessionId } = decision;
  for (const call of decodeAction(decision).slice(first)) {
    const { workingDirectory } = call;
    const caller = { tenant: store.tenant, sessionId, chain: chainOf(decision), workingDirectory };
    const judged = await judgeCall(call, caller, judging, "approved");
    if (judged.verdict === "deny") return judged.text;
  }
  return undefined;
}
