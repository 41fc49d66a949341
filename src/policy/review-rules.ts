import type { DecisionId, DecisionState } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import {
  type Factor,
  ONE_PERSON,
  type Requirement,
  requirementProblem,
} from "../model/interaction.ts";
import { foldName, isName } from "../model/names.ts";
import {
  type InputPattern,
  mayBeCovered,
  patternProblem,
  type RuledTool,
  type StandingRule,
  type ValueTest,
} from "../model/standing-rule.ts";
import { type DefinitionOptions, definitionHash } from "../tools/registry.ts";
import type { Tool } from "../tools/tool.ts";
import { metadataOf, SAFETY_CLASSES, type SafetyClass, safetyClassOf } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { fromIso } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import { isPlainJson, type JsonValue, type ReadonlyJson } from "../util/json.ts";
import { matchText, matchWithGaps } from "./patterns.ts";

/** Who must approve which calls, and by when. Without `tools` and `safetyClasses` the rule applies to every call. */
export interface ReviewRule {
  /** Names in which `*` matches any run of characters. */
  readonly tools?: readonly string[];
  readonly safetyClasses?: readonly SafetyClass[];
  readonly requires: Requirement;
  readonly deadlineMs?: number;
  readonly escalation?: Escalation;
  /** A person or a group. */
  readonly assignedTo?: string;
  /** The editor of a call may also approve it. By default another person must. */
  readonly editorMayApprove?: boolean;
  /** These calls may be approved in a batch with any others. By default see `approveAll`. */
  readonly mayBatch?: boolean;
}

interface Escalation {
  readonly afterMs: number;
  readonly to: string;
}

/** Applies to calls without a rule. By default one person. */
export interface ReviewDefaults
  extends Pick<ReviewRule, "escalation" | "assignedTo" | "editorMayApprove" | "mayBatch"> {
  readonly requires?: Requirement;
  readonly deadlineMs: number;
}

export interface RatedCall {
  readonly tool: string;
  readonly safetyClass: SafetyClass;
}

/** How a bundle of calls is reviewed. */
export interface Review {
  readonly requires: Requirement;
  readonly deadlineMs: number;
  readonly escalation?: Escalation;
  /** By default any reviewer. */
  readonly assignedTo?: string;
  readonly editorMayApprove?: true;
  readonly mayBatch?: true;
}

/** The rules contradict each other, so that no set of people could approve. The problem says what to change. */
export type ReviewAnswer =
  | { readonly possible: true; readonly review: Review }
  | { readonly possible: false; readonly problem: string };

/**
 * The strictest combination of all rules for any call of the bundle: all factors, each with its highest count and the
 * people that all rules name, and the earliest deadline and escalation. A call without a rule adds the defaults, so
 * that bundling never weakens a review.
 */
export function reviewFor(
  calls: readonly RatedCall[],
  rules: readonly ReviewRule[],
  defaults: ReviewDefaults,
): ReviewAnswer {
  if (calls.length === 0) return impossible("There is nothing to review. Stage at least one call");
  const said: Said[] = rules.filter((rule) => calls.some((call) => isAbout(rule, call)));
  if (calls.some((call) => !rules.some((rule) => isAbout(rule, call)))) {
    const { requires = ONE_PERSON } = defaults;
    // A factor open to all people is satisfied by the approval of any other factor.
    said.push(
      said.length > 0 && isAnybody(requires)
        ? { ...defaults, requires: [] }
        : { ...defaults, requires },
    );
  }
  const merged = mergeRequirements(said.map(({ requires }) => requires));
  if (!merged.possible) return impossible(`${merged.problem}. ${ADVICE}`);
  const names = new Set(said.flatMap(({ assignedTo }) => assignedTo ?? []));
  if (names.size > 1) {
    return impossible(`It is assigned to different people (${[...names].join(", ")}). ${ADVICE}`);
  }
  const [assignedTo] = names;
  const deadlines = said.flatMap(({ deadlineMs }) => deadlineMs ?? []);
  const deadlineMs = deadlines.length === 0 ? defaults.deadlineMs : Math.min(...deadlines);
  const escalation = earliest(said, deadlineMs);
  return {
    possible: true,
    review: {
      requires: merged.requires,
      deadlineMs,
      // Only when all rules for these calls allow it.
      ...(said.every((one) => one.editorMayApprove === true) ? { editorMayApprove: true } : {}),
      ...(said.every((one) => one.mayBatch === true) ? { mayBatch: true } : {}),
      ...definedFields({ assignedTo, escalation }),
    },
  };
}

const ADVICE = "Stage the calls one by one, or have the review rules changed";

type Said = Pick<
  ReviewRule,
  "requires" | "deadlineMs" | "escalation" | "assignedTo" | "editorMayApprove" | "mayBatch"
>;

function isAbout({ tools, safetyClasses }: ReviewRule, { tool, safetyClass }: RatedCall) {
  // An unknown class counts as the most dangerous.
  const known = SAFETY_CLASSES.find((name) => name === safetyClass) ?? "irreversible";
  if (safetyClasses !== undefined && !safetyClasses.includes(known)) return false;
  return tools === undefined || tools.some((pattern) => matchText(tool, pattern));
}

function isAnybody(requires: Requirement): boolean {
  return requires.length === 1 && requires[0]?.count === 1 && requires[0].from === undefined;
}

/** An escalation after the deadline would never fire. */
function earliest(said: readonly Said[], deadlineMs: number): Escalation | undefined {
  return said
    .flatMap(({ escalation }) => escalation ?? [])
    .filter(({ afterMs }) => afterMs < deadlineMs)
    .reduce<Escalation | undefined>(
      (first, one) => (first === undefined || one.afterMs < first.afterMs ? one : first),
      undefined,
    );
}

function impossible(problem: string): ReviewAnswer {
  return { possible: false, problem: `${problem}.` };
}

/** Checks the rules once, at start. Throws invalid_input for the first part that is not exactly understood. */
export function checkReviewRules(rules: readonly ReviewRule[], defaults?: ReviewDefaults): void {
  if (!Array.isArray(rules)) refuse("review rules", "Give the review rules as a list");
  for (const [index, rule] of (rules as readonly ReviewRule[]).entries()) {
    const what = `review rule ${index + 1}`;
    const problem = isPlainJson(rule) ? ruleProblem(rule, defaults) : "It is not plain data";
    if (problem !== undefined) refuse(what, problem);
  }
  if (defaults === undefined) return;
  const { requires = ONE_PERSON } = defaults;
  const problem = ruleProblem({ ...defaults, requires }, defaults);
  if (problem !== undefined) refuse("review defaults", problem);
  if (defaults.deadlineMs === undefined)
    refuse("review defaults", "Every question needs a deadline");
}

const KEYS = [
  ...["tools", "safetyClasses", "requires", "deadlineMs", "escalation", "assignedTo"],
  ...["editorMayApprove", "mayBatch"],
];

function ruleProblem(rule: ReviewRule, defaults?: ReviewDefaults): string | undefined {
  if (typeof rule !== "object" || rule === null) return "It is not an object";
  const odd = Object.keys(rule).find((key) => !KEYS.includes(key));
  if (odd !== undefined) return `It has an unknown field "${odd}"`;
  const { tools, safetyClasses, requires, deadlineMs, escalation, assignedTo } = rule;
  if (tools !== undefined && !isList(tools, isName)) return "Name its tools, or leave them out";
  const isClass = (name: unknown) => SAFETY_CLASSES.some((known) => known === name);
  if (safetyClasses !== undefined && !isList(safetyClasses, isClass)) {
    return `Its safety classes must be among ${SAFETY_CLASSES.join(", ")}`;
  }
  const span = deadlineMs ?? defaults?.deadlineMs;
  if (span !== undefined && !isSpan(span))
    return "Its deadline must be whole milliseconds, at least 1";
  if (escalation !== undefined) {
    if (!isSpan(escalation.afterMs) || (span !== undefined && escalation.afterMs >= span)) {
      return "Its escalation must come before its deadline, in whole milliseconds";
    }
    if (!isName(escalation.to)) return "Say to whom it escalates";
  }
  if (assignedTo !== undefined && !isName(assignedTo)) return "Say to whom it is assigned";
  for (const name of ["editorMayApprove", "mayBatch"] as const) {
    const value: unknown = rule[name];
    if (value !== undefined && typeof value !== "boolean") return `Its ${name} is true or false`;
  }
  return requiresProblem(requires);
}

function requiresProblem(requires: Requirement): string | undefined {
  if (!isList(requires, (factor) => typeof factor === "object" && factor !== null)) {
    return "Say who has to say yes: a list of factors";
  }
  if (!requires.every(({ from }) => from === undefined || isList(from, isName))) {
    return "Name the people of a factor, or leave them out";
  }
  const problem = requirementProblem(requires);
  if (problem !== undefined) return problem;
  return isMeetable(requires)
    ? undefined
    : "One person counts once, so it needs more people than it names";
}

function isList<Item>(list: unknown, isItem: (item: unknown) => boolean): list is readonly Item[] {
  return Array.isArray(list) && list.length > 0 && list.every(isItem);
}

function isSpan(ms: unknown): ms is number {
  return Number.isSafeInteger(ms) && (ms as number) >= 1;
}

function refuse(what: string, problem: string): never {
  throw new SallyportError("invalid_input", { what, hint: `${problem}.` });
}

type MergedRequirement =
  | { readonly possible: true; readonly requires: Requirement }
  | { readonly possible: false; readonly problem: string };

/**
 * Merges factors by name, each with its highest count and the people that all of them name. The narrowest factor comes
 * first: an approval counts for the first factor open to the person, and a person who is the only one for a factor must
 * not be used for another.
 */
function mergeRequirements(all: readonly Requirement[]): MergedRequirement {
  const merged = new Map<string, Factor>();
  for (const factor of all.flat()) {
    const known = merged.get(factor.name);
    merged.set(factor.name, known === undefined ? factor : stricter(known, factor));
  }
  const width = ({ from }: Factor) => from?.length ?? Number.MAX_SAFE_INTEGER;
  const requires = [...merged.values()].toSorted((a, b) => width(a) - width(b));
  const problem = requirementProblem(requires);
  if (problem !== undefined) return { possible: false, problem };
  if (isMeetable(requires)) return { possible: true, requires };
  return { possible: false, problem: "One person counts once, so too few are named for all of it" };
}

function stricter(one: Factor, other: Factor): Factor {
  const { from } = other;
  const both =
    one.from === undefined ? from : one.from.filter((who) => from?.includes(who) ?? true);
  const count = Math.max(one.count, other.count);
  return definedFields({ name: one.name, count, from: both });
}

/**
 * Whether different people can satisfy every factor that names its people. Each approval takes one person and reassigns
 * others where needed (augmenting paths); a factor open to everyone can always be satisfied.
 */
function isMeetable(requires: Requirement): boolean {
  if (requires.some(({ count, from }) => from !== undefined && count > from.length)) return false;
  const seats = requires.flatMap(({ count, from }) =>
    from === undefined ? [] : Array<readonly string[]>(count).fill(from),
  );
  const seatOf = new Map<string, number>();
  const sits = (seat: number, tried: Set<string>): boolean =>
    (seats[seat] ?? []).some((person) => {
      if (tried.has(person)) return false;
      tried.add(person);
      const taken = seatOf.get(person);
      if (taken !== undefined && !sits(taken, tried)) return false;
      seatOf.set(person, seat);
      return true;
    });
  return seats.every((_, seat) => sits(seat, new Set()));
}

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

interface Objection {
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
