// Standing rules: approvals that people give in advance. Step "judge" looks for the one that covers a call.

import type { Decision, DecisionId } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import type { Instant } from "../model/names.ts";
import { MAX_LIST } from "../model/record.ts";
import type { InputPattern, StandingRule, StandingRuleId } from "../model/standing-rule.ts";
import { type DecidedCalls, type Replay, replayRule, ruledTool } from "../policy/review-rules.ts";
import type { StandingRuleQuery } from "../store/standing-rules.ts";
import type { Registry } from "../tools/registry.ts";
import type { Tool } from "../tools/tool.ts";
import { definedFields } from "../util/defined-fields.ts";
import type { GateContext } from "./context.ts";
import { whyNot } from "./inbox.ts";
import { realFolder } from "./judge.ts";
import { decodeProposal } from "./show.ts";

/**
 * Approvals given in advance. Only people make rules; a rule never allows what its author asks for. People
 * reach it through `propose` and `confirm`, which takes two of them.
 */
export interface StandingRules {
  /** A proposal: it allows nothing before another person confirms it. Throws as `make`. */
  propose(rule: NewStandingRule): Promise<StandingRule>;
  /** Throws not_found, not_allowed for its author and their automations, illegal_transition when it is no proposal any more. */
  confirm(id: StandingRuleId, by: { readonly by: string }): Promise<StandingRule>;
  /** For the host's own program, which brings its policy as well: it holds immediately. Throws invalid_input, also for tools that cannot be undone; not_found for an unknown tool; not_allowed. */
  make(rule: NewStandingRule): Promise<StandingRule>;
  /** What such a rule would have done with decisions changed since then (at most 1,000, oldest first). Makes nothing. */
  replay(
    rule: Pick<NewStandingRule, "tool" | "pattern" | "workingDirectory"> & {
      readonly since?: Instant;
    },
  ): Promise<Replay>;
  revoke(
    id: StandingRuleId,
    by: { readonly by: string; readonly reason: string },
  ): Promise<StandingRule>;
  list(query?: StandingRuleQuery): Promise<readonly StandingRule[]>;
}

export interface NewStandingRule {
  readonly tool: string;
  readonly pattern: InputPattern;
  readonly forMs: number;
  readonly reason: string;
  readonly by: string;
  /** Must be named for tools that take paths, commands or addresses. */
  readonly workingDirectory?: string;
}

/** Stored decisions may hold a megabyte each, so they are read in parts, with other work between; it divides `MAX_LIST`. */
const PART = 20;

export function standingRulesOf({ store, registry, people, timers }: GateContext): StandingRules {
  const { standingRules, decisions } = store;

  function toolNamed(name: string): Tool {
    const tool = registry.get(name);
    if (tool !== undefined) return tool;
    throw new SallyportError("not_found", {
      id: name,
      hint: "Name a tool that is registered here.",
    });
  }

  function checkPerson(by: string, chain: readonly string[] = []): void {
    const hint = whyNot(by, { chain, assignedTo: "" }, people);
    if (hint !== undefined) throw new SallyportError("not_allowed", { by, hint });
  }

  async function draftOf({
    tool,
    pattern,
    forMs,
    reason,
    by,
    workingDirectory = "",
  }: NewStandingRule) {
    checkPerson(by);
    const folder = await realFolder(workingDirectory);
    return { ...ruledTool(toolNamed(tool)), pattern, forMs, reason, workingDirectory: folder };
  }

  return {
    make: async (rule) => standingRules.make(await draftOf(rule), { actor: rule.by }),
    propose: async (rule) => standingRules.propose(await draftOf(rule), { actor: rule.by }),
    async confirm(id, { by }) {
      const { madeBy } = await standingRules.get(id);
      checkPerson(by, [madeBy]);
      return standingRules.confirm(id, { actor: by });
    },
    async replay({ tool: name, pattern, workingDirectory = "", since }) {
      const tool = toolNamed(name);
      const { tool: resolved, definitionHash } = ruledTool(tool);
      const folder = await realFolder(workingDirectory);
      const rule = { tool: resolved, definitionHash, pattern, workingDirectory: folder };
      const decided: DecidedCalls[] = [];
      for (let [looked, after] = [0, undefined as DecisionId | undefined]; looked < MAX_LIST; ) {
        const stored = await decisions.list({ limit: PART, ...definedFields({ since, after }) });
        decided.push(...stored.flatMap((decision) => decidedCalls(decision, registry)));
        if (stored.length < PART) break;
        looked += stored.length;
        after = stored.at(-1)?.id;
        await new Promise<void>((resolve) => timers.soon(resolve));
      }
      return replayRule(rule, decided);
    },
    async revoke(id, { by, reason }) {
      checkPerson(by);
      return standingRules.revoke(id, reason, { actor: by });
    },
    list: (query) => standingRules.list(query),
  };
}

/** A decision that others staged holds no calls of the gate, and is left out. */
function decidedCalls(decision: Decision, registry: Registry): readonly DecidedCalls[] {
  if (decision.origin !== "port") return [];
  const { id, state, techVerdict, bizVerdict } = decision;
  const verdict = state === "rejected_tech" ? techVerdict : bizVerdict;
  const { calls: planned } = decodeProposal(decision);
  const calls = planned.map(({ tool, definition, input, workingDirectory }) => {
    const known = registry.get(tool);
    const needsExact = known === undefined || ruledTool(known).needsExact;
    return { tool, definitionHash: definition, input, workingDirectory, needsExact };
  });
  const saidNo = { by: verdict.validator, reason: verdict.reason };
  return [{ id, state, calls, ...(state.startsWith("rejected") ? { saidNo } : {}) }];
}
