import type { GateAnswer } from "../model/finding.ts";
import { allow, ask } from "./answers.ts";
import type { CompiledPolicy } from "./policy.ts";
import { allowingRule } from "./rule-answers.ts";
import type { SeenCall } from "./seen-call.ts";
import { shown } from "./shown.ts";

/**
 * Class generic, and the fallback for tools that declare none: rules first, then ask. Whether a tool calls itself
 * read-only or destructive plays no part; a free pass needs the class readonly.
 */
export function checkGeneric(
  { facts }: SeenCall,
  { policy }: { readonly policy: CompiledPolicy },
): GateAnswer {
  if (allowingRule(policy, facts, { kind: "call" })) return allow();
  return ask(
    "permission.generic",
    `Tool ${shown(facts.tool)} needs a person's consent, because no rule allows this call.`,
  );
}
