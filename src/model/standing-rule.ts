import { canonicalJson } from "../util/canonical-json.ts";
import { fromIso } from "../util/clock.ts";
import { isPlainJson, type ReadonlyJson } from "../util/json.ts";
import { MAX_REASON } from "./decision.ts";
import { isName } from "./names.ts";
import {
  data,
  instant,
  integer,
  key,
  oneOf,
  place,
  prose,
  type RecordOf,
  record,
  text,
} from "./record.ts";

export type StandingRuleId = string;
/** A proposal has no effect until another person confirms it. */
const STANDING_RULE_STATUSES = ["proposed", "active", "revoked"] as const;

/**
 * "Allow this tool with inputs like this until then": a person's yes given beforehand. It is bound to one tool in one
 * definition, lists every property an input may have, expires and can be revoked at any time. Checked again after
 * reading: a row that was changed from outside lets through no more than it did.
 */
export const STANDING_RULES = record(
  "standing_rules",
  {
    id: key<StandingRuleId>(),
    /** The resolved name, never an alias. */
    tool: text(),
    definitionHash: text(),
    pattern: data<InputPattern>({
      check: (value) => patternProblem(value, { needsExact: false }) === undefined,
    }),
    /** The folder it holds in; empty for any. */
    workingDirectory: text(),
    reason: prose(),
    status: oneOf(STANDING_RULE_STATUSES),
    madeBy: text(),
    /** The person who confirmed the proposal. Empty while it is one, and for rules that a program of the host made. */
    confirmedBy: text(),
    /** How many calls it has let through. */
    uses: integer(),
    /** Empty unless it was revoked. */
    endedBy: text(),
    endReason: prose(),
    /** The last moment it holds, by the store's clock. */
    expiresAt: instant(),
    version: integer(),
    createdAt: instant(),
    updatedAt: instant(),
    ord: place(),
  },
  {
    indexes: [{ name: "by_tool", on: ["tool", "ord"] }],
    check: ({ createdAt, expiresAt }) =>
      fromIso(expiresAt) > fromIso(createdAt) + LONGEST_RULE_MS ? "expires_at" : undefined,
  },
);
export type StandingRule = RecordOf<typeof STANDING_RULES>;

/** A test for each property of the input. What has no test must not be there. */
export type InputPattern = Readonly<Record<string, ValueTest>>;

/** One test, of the kind its key names; both limits may be combined. */
export type ValueTest =
  /** The same value, however deep: compared in canonical form. */
  (
    | { readonly equals: ReadonlyJson }
    | { readonly oneOf: readonly (string | number | boolean | null)[] }
    | { readonly atLeast: number; readonly atMost?: number }
    | { readonly atMost: number; readonly atLeast?: number }
    /** A text in which `*` stands for a part of one word: letters, digits and `_ - . +`. */
    | { readonly like: string }
    /** Any text, number, yes, no or null; a nested value only ever by `equals`. */
    | { readonly any: true }
  ) & {
    /** The property may be missing. */
    readonly optional?: true;
  };

/** The facts of the tool that a rule depends on. All follow from its definition, so the hash pins them. */
export interface RuledTool {
  readonly tool: string;
  readonly definitionHash: string;
  readonly safetyClass: string;
  /** Its inputs are commands, paths or addresses, so a wildcard cannot limit what it allows. */
  readonly needsExact: boolean;
}

export interface StandingRuleDraft extends RuledTool {
  readonly destructive: boolean;
  readonly pattern: InputPattern;
  /** Must be named for a tool that needs exact inputs, because a relative path means something else elsewhere. */
  readonly workingDirectory: string;
  readonly reason: string;
  /** How long from now, by the store's clock. */
  readonly forMs: number;
}

/** Longer than that the reason is forgotten. */
export const LONGEST_RULE_MS = 90 * 24 * 3_600_000;
const MOST_PROPERTIES = 100;
const MOST_VALUES = 1_000;
const LONGEST_TEXT = 1_000;

/** The default is irreversible, so only these two classes can be covered. */
const COVERED: readonly string[] = ["read", "reversible"];

/** A person decides each irreversible call. */
export function mayBeCovered({ safetyClass }: Pick<RuledTool, "safetyClass">): boolean {
  return COVERED.includes(safetyClass);
}

/** A sentence about what is wrong with a rule to be, undefined when it can be made. */
export function standingRuleProblem(draft: StandingRuleDraft): string | undefined {
  const { tool, definitionHash, reason, forMs, workingDirectory: folder, needsExact } = draft;
  if (!isName(tool) || !isName(definitionHash)) return "Name the tool and its definition";
  if (!mayBeCovered(draft)) {
    return `"${tool}" cannot be undone, so no rule can cover it: a person decides each time`;
  }
  if (draft.destructive !== false) {
    return `"${tool}" destroys data, so no rule can cover it: a person decides each time`;
  }
  if (typeof reason !== "string" || reason.trim() === "" || reason.length > MAX_REASON) {
    return `Say why, in at most ${MAX_REASON} characters`;
  }
  if (!Number.isSafeInteger(forMs) || forMs < 1 || forMs > LONGEST_RULE_MS) {
    return "Say for how long: whole milliseconds, at least 1 and at most 90 days";
  }
  if (folder !== "" && !isName(folder)) return "Give the working directory as a short text";
  if (needsExact !== false && folder === "") {
    return `Name the working directory: "${tool}" takes paths, commands or addresses`;
  }
  return patternProblem(draft.pattern, draft);
}

/** Also asked of what comes out of a store: a test that is not wholly understood must not let anything through. */
export function patternProblem(
  pattern: unknown,
  { needsExact }: Pick<RuledTool, "needsExact">,
): string | undefined {
  if (!isObject(pattern) || !isPlainJson(pattern) || !isCanonical(pattern)) {
    return "Give the pattern as plain data: a test for each property";
  }
  const tests = Object.entries(pattern);
  if (tests.length > MOST_PROPERTIES) return `Test at most ${MOST_PROPERTIES} properties`;
  for (const [name, test] of tests) {
    const problem = testProblem(test, needsExact !== false);
    if (problem !== undefined) return `The test of ${JSON.stringify(name)} ${problem}`;
  }
  return undefined;
}

function testProblem(test: unknown, needsExact: boolean): string | undefined {
  if (!isObject(test)) return "is not an object that says what is asked";
  const { optional, ...asked } = test;
  if (Object.hasOwn(test, "optional") && optional !== true) return "is optional or does not say so";
  switch (Object.keys(asked).sort().join()) {
    case "equals":
      return undefined;
    case "oneOf":
      return isListOfPlain(asked["oneOf"]) ? undefined : "needs a list of texts and numbers";
    case "atLeast":
    case "atMost":
    case "atLeast,atMost":
      return Object.values(asked).every(Number.isFinite) ? undefined : "needs numbers as limits";
    case "like":
      if (needsExact) return EXACTLY;
      return isText(asked["like"]) ? undefined : `needs a text of 1 to ${LONGEST_TEXT} characters`;
    case "any":
      if (needsExact) return EXACTLY;
      return asked["any"] === true ? undefined : 'is written as "any": true';
    default:
      return "asks for something else than equals, oneOf, atLeast, atMost, like or any";
  }
}

const EXACTLY =
  "must name the value (equals, oneOf): the tool takes paths, commands or addresses, and a part of one says nothing about the rest";

function isListOfPlain(list: unknown): boolean {
  if (!Array.isArray(list) || list.length === 0 || list.length > MOST_VALUES) return false;
  return list.every((value) => value === null || typeof value !== "object");
}

function isText(text: unknown): boolean {
  return typeof text === "string" && text !== "" && text.length <= LONGEST_TEXT;
}

/** What has no canonical form can be compared with nothing. */
function isCanonical(value: unknown): boolean {
  try {
    return canonicalJson(value) !== "";
  } catch {
    return false;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
