import type { GateAnswer } from "../model/finding.ts";
import { allow, ask, deny, joinAnswers } from "./answers.ts";
import type { CallFacts } from "./call-facts.ts";
import type { CompiledPolicy } from "./policy.ts";
import type { ReadUrl } from "./read-url.ts";
import { allowingRule, otherKinds } from "./rule-answers.ts";
import type { SeenCall } from "./seen-call.ts";
import { shown } from "./shown.ts";

const POLICY = "permission.webfetch";

/**
 * Class webfetch. What counts is the host as fetch itself would read it, never the text of the address. Addresses that
 * lead inside are refused by their letters; names that resolve there are the fetcher's to refuse, after looking them up.
 */
export function checkWebfetch(
  call: SeenCall,
  { policy }: { readonly policy: CompiledPolicy },
): GateAnswer {
  if (call.urls.length === 0) {
    return ask(
      POLICY,
      `Tool ${shown(call.facts.tool)} fetches addresses but did not say which for this input, so a person has to look at it.`,
    );
  }
  return joinAnswers([
    ...call.urls.map(({ url, read }) => checkUrl(url, read, call.facts, policy)),
    ...otherKinds(call, "url", POLICY),
  ]);
}

function checkUrl(
  url: string,
  read: ReadUrl,
  facts: CallFacts,
  policy: CompiledPolicy,
): GateAnswer {
  if (!read.ok) {
    return deny(
      POLICY,
      `Fetching ${shown(withoutSecrets(url), 120)} is refused: ${read.why}. Nothing was executed. Use a public https address.`,
    );
  }
  const { host, port } = read.identity;
  if (allowingRule(policy, facts, { kind: "url", identity: read.identity })) return allow();
  return ask(
    POLICY,
    `Fetching from ${shown(host)} (port ${port}) needs a person's consent, because no rule allows this host and port.`,
  );
}

/** Queries and user names often hold secrets, and messages are kept. */
function withoutSecrets(url: string): string {
  return url.replace(/[?#].*$/s, "").replace(/\/\/[^/]*@/, "//");
}
