import type { GateAnswer } from "../model/finding.ts";
import { allow, ask, deny, joinAnswers } from "./answers.ts";
import type { CallFacts } from "./call-facts.ts";
import type { HostIdentity } from "./host-pattern.ts";
import type { CompiledPolicy } from "./policy.ts";
import { readUrl } from "./read-url.ts";
import { allowingRule, otherKinds, restrictingRules } from "./rule-answers.ts";
import { shown } from "./shown.ts";

const POLICY = "permission.webfetch";

/**
 * Class webfetch. What counts is the host as fetch itself would read it, never the text of the address. Addresses that
 * lead inside are refused by their letters; names that resolve there are the fetcher's to refuse, after looking them up.
 */
export function checkWebfetch(
  facts: CallFacts,
  { policy }: { readonly policy: CompiledPolicy },
): GateAnswer {
  const urls = facts.resources.filter((resource) => resource.kind === "url");
  if (urls.length === 0) {
    return ask(
      POLICY,
      `Tool ${shown(facts.tool)} fetches addresses but did not say which for this input, so a person has to look at it.`,
    );
  }
  return joinAnswers([
    ...urls.map(({ url }) => checkUrl(url, facts, policy)),
    ...otherKinds(facts, "url", POLICY),
  ]);
}

/**
 * A redirect during a fetch that was let through. To the same host and port it may be followed; any other is a new
 * question, answered by the same rules as if it had been asked for in the first place.
 */
export function checkRedirect(
  { from, to }: { readonly from: string; readonly to: string },
  facts: CallFacts,
  { policy }: { readonly policy: CompiledPolicy },
): GateAnswer {
  const target = readUrl(URL.canParse(to, from) ? new URL(to, from).href : to);
  if (!target.ok) return refused(to, target.why);
  const source = readUrl(from);
  if (source.ok && isSame(source.identity, target.identity)) return allow();
  const redirected = { ...facts, resources: [{ kind: "url", url: to }] } satisfies CallFacts;
  const restricted = restrictingRules(policy, redirected);
  const answer = checkUrl(to, redirected, policy);
  return restricted === undefined ? answer : joinAnswers([restricted, answer]);
}

function checkUrl(url: string, facts: CallFacts, policy: CompiledPolicy): GateAnswer {
  const read = readUrl(url);
  if (!read.ok) return refused(url, read.why);
  const subject = { kind: "url", identity: read.identity } as const;
  if (allowingRule(policy, facts, subject) !== undefined) return allow();
  const { host, port } = read.identity;
  return ask(
    POLICY,
    `Fetching from ${shown(host)} (port ${port}) needs a person's consent, because no rule allows this host.`,
  );
}

function refused(url: string, why: string): GateAnswer {
  return deny(
    POLICY,
    `Fetching ${shown(withoutQuery(url), 120)} is refused: ${why}. Nothing was executed. Use a public https address.`,
  );
}

/** Queries and user names often hold secrets, and messages are kept. */
function withoutQuery(url: string): string {
  return url.replace(/[?#].*$/s, "").replace(/\/\/[^/]*@/, "//");
}

function isSame(one: HostIdentity, other: HostIdentity): boolean {
  return one.host === other.host && one.port === other.port;
}
