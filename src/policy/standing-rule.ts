import type { DecisionId, DecisionState } from "../model/decision.ts";
import { foldName } from "../model/names.ts";
import {
  type InputPattern,
  mayBeCovered,
  patternProblem,
  type RuledTool,
  type StandingRule,
  type ValueTest,
} from "../model/standing-rule.ts";
import { type DefinitionOptions, definitionHash } from "../tools/definition.ts";
import { metadataOf, safetyClassOf } from "../tools/safety.ts";
import type { Tool } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { fromIso } from "../util/clock.ts";
import type { JsonValue, ReadonlyJson } from "../util/json.ts";
import { matchWithGaps } from "./patterns.ts";

/** The facts of a call that a rule matches. */
export interface RuledCall extends RuledTool {
  /** The parsed input: the bytes that would run. */
  readonly input: JsonValue;
  readonly workingDirectory: string;
  /** The requesters: the agent, its delegators, the people they act for, and the owners of their automations. */
  readonly askers: readonly string[];
  /** Epoch milliseconds by the store's clock. */
  readonly now: number;
}

/** The fields that decide which calls a rule covers; a draft has them too. */
type Coverage = Pick<StandingRule, "tool" | "definitionHash" | "pattern" | "workingDirectory">;

/**
 * Whether this rule approves this call in place of a person. Anything invalid in either means no, and a person is
 * asked. The transaction that writes the intent checks the rule again. A rule never approves a call that its own author
 * requested.
 */
export function matchesRule(rule: StandingRule, call: RuledCall): boolean {
  try {
    if (rule.status !== "active" || !Number.isSafeInteger(call.now)) return false;
    if (!(call.now <= fromIso(rule.expiresAt))) return false;
    // Identity providers spell names differently, so names are compared folded.
    const askers = new Set(call.askers.map(foldName));
    const { madeBy, confirmedBy } = rule;
    if (askers.has(foldName(madeBy))) return false;
    if (confirmedBy !== "" && askers.has(foldName(confirmedBy))) return false;
    return mayBeCovered(call) && covers(rule, call);
  } catch {
    // An unreadable rule or input is not an error here: it is not an approval.
    return false;
  }
}

/** Compares tool, definition, folder and input, ignoring time. Throws for an input that is not JSON. */
function covers(rule: Coverage, call: Omit<RuledCall, "askers" | "now" | "safetyClass">) {
  if (call.tool === "" || rule.tool !== call.tool) return false;
  if (call.definitionHash === "" || rule.definitionHash !== call.definitionHash) return false;
  const { workingDirectory: folder } = rule;
  if (folder === "" ? call.needsExact !== false : folder !== call.workingDirectory) return false;
  if (patternProblem(rule.pattern, call) !== undefined) return false;
  return matchesPattern(rule.pattern, call.input);
}

/** The facts for creating a rule and for every call come from the tool, never from a caller's description. */
export function ruledTool(
  tool: Tool,
  options?: DefinitionOptions,
): RuledTool & { readonly destructive: boolean } {
  const { permissionClass, destructive } = metadataOf(tool);
  return {
    tool: tool.name,
    definitionHash: definitionHash(tool, options),
    safetyClass: safetyClassOf(tool),
    destructive,
    needsExact: PLACES.includes(permissionClass) || tool.resources !== undefined,
  };
}

/** Classes whose inputs are commands, paths and addresses; a tool with `resources` takes some as well. */
const PLACES: readonly string[] = ["bash", "file", "webfetch"];

function matchesPattern(pattern: InputPattern, input: JsonValue): boolean {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return false;
  canonicalJson(input); // throws for what is not JSON, wherever it stands
  if (!Object.keys(input).every((name) => Object.hasOwn(pattern, name))) return false;
  return Object.entries(pattern).every(([name, test]) =>
    Object.hasOwn(input, name) ? passes(test, input[name]) : test.optional === true,
  );
}

function passes(test: ValueTest, value: JsonValue | undefined): boolean {
  if (value === undefined) return false;
  if ("equals" in test) return isSame(test.equals, value);
  // Only a complete nested value determines its contents.
  if (typeof value === "object" && value !== null) return false;
  if ("oneOf" in test) return test.oneOf.some((one) => isSame(one, value));
  if ("like" in test) return typeof value === "string" && isLike(value, test.like);
  if ("any" in test) return test.any;
  if (typeof value !== "number") return false;
  return value >= (test.atLeast ?? -Infinity) && value <= (test.atMost ?? Infinity);
}

function isSame(wanted: ReadonlyJson, value: JsonValue): boolean {
  return canonicalJson(wanted) === canonicalJson(value);
}

/**
 * A gap is part of one word. It matches no space, slash, quote or other symbol, so that a name cannot grow into a path,
 * a second argument or a second command; and a text cannot become an option that was not written as one.
 */
function isLike(text: string, pattern: string): boolean {
  if (text.includes("..") || (text.startsWith("-") && !pattern.startsWith("-"))) return false;
  return matchWithGaps(text, pattern, {
    isGap: (piece) => piece === "*",
    fits: (piece, character) => piece === character,
    maySkip: (character) => WORD.test(character),
  });
}

const WORD = /^[\p{L}\p{N}_.+-]$/u;

/** A stored decision with its payload decoded as calls. */
export interface DecidedCalls {
  readonly id: DecisionId;
  readonly state: DecisionState;
  /** Who rejected it and why, for the two rejected states. */
  readonly saidNo?: { readonly by: string; readonly reason: string };
  readonly calls: readonly Omit<RuledCall, "askers" | "now" | "safetyClass">[];
}

/** The effect of a rule on past decisions, with their ids, so that the author can inspect them first. */
export interface Replay {
  readonly looked: number;
  /** The rule would have approved them, and so did people. */
  readonly agreed: readonly DecisionId[];
  /** The rule would have approved what a person or the business review rejected. */
  readonly rejected: readonly Objection[];
  /** The rule would have approved what the technical review rejected before a person was asked. */
  readonly stopped: readonly Objection[];
  /** The rule would have approved them; they are still undecided. */
  readonly open: readonly DecisionId[];
  /** They differ only in the definition of the tool, so they prove nothing. */
  readonly otherDefinition: number;
  /** The same as one sentence. */
  readonly text: string;
}

export interface Objection {
  readonly id: DecisionId;
  readonly by: string;
  readonly reason: string;
}

type Kind = "agreed" | "rejected" | "stopped" | "open";

const KINDS = {
  pending_tech: "open",
  pending_ml: "open",
  approved: "agreed",
  executed: "agreed",
  failed: "agreed",
  rejected_tech: "stopped",
  rejected_ml: "rejected",
} as const satisfies Record<DecisionState, Kind>;

/**
 * Replays a draft rule over past decisions. A decision counts when the rule covers all of its calls, because only then
 * no person would have been asked.
 */
export function replayRule(rule: Coverage, decisions: readonly DecidedCalls[]): Replay {
  const covered: Record<Kind, DecidedCalls[]> = { agreed: [], rejected: [], stopped: [], open: [] };
  let otherDefinition = 0;
  for (const decision of decisions) {
    const { calls, state } = decision;
    const definitions = new Set(calls.map((call) => call.definitionHash));
    const loose = calls.map((call) => ({ ...call, definitionHash: rule.definitionHash }));
    if (!coversAll(rule, loose)) continue;
    if (definitions.size > 1 || !definitions.has(rule.definitionHash)) otherDefinition += 1;
    else covered[KINDS[state]].push(decision);
  }
  const { agreed, rejected, stopped, open } = covered;
  const found = {
    looked: decisions.length,
    agreed: agreed.map(({ id }) => id),
    rejected: rejected.map(objection),
    stopped: stopped.map(objection),
    open: open.map(({ id }) => id),
    otherDefinition,
  };
  return { ...found, text: textOf(found) };
}

function coversAll(rule: Coverage, calls: DecidedCalls["calls"]): boolean {
  try {
    return calls.length > 0 && calls.every((call) => covers(rule, call));
  } catch {
    // An unreadable decision would have been asked about.
    return false;
  }
}

function objection({ id, saidNo }: DecidedCalls): Objection {
  return { id, by: saidNo?.by ?? "", reason: saidNo?.reason ?? "" };
}

function textOf({
  looked,
  agreed,
  rejected,
  stopped,
  open,
  otherDefinition,
}: Omit<Replay, "text">) {
  const all = agreed.length + rejected.length + stopped.length + open.length;
  const parts = [`Of ${looked} decisions it would have approved ${all}`];
  if (rejected.length > 0) parts.push(`${rejected.length} of which were rejected`);
  if (stopped.length > 0) parts.push(`${stopped.length} of which the technical review stopped`);
  if (open.length > 0) parts.push(`${open.length} of which are not decided yet`);
  const others = `${otherDefinition} more were of another definition of the tool.`;
  return `${parts.join(", ")}.${otherDefinition > 0 ? ` ${others}` : ""}`;
}
