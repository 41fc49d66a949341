import { foldName } from "../model/names.ts";
import {
  type InputPattern,
  mayBeCovered,
  patternProblem,
  type RuledTool,
  type StandingRule,
  type ValueTest,
} from "../model/standing-rule.ts";
import { type DefinitionOptions, definitionHash } from "../tools/definition-hash.ts";
import { metadataOf } from "../tools/metadata.ts";
import { safetyClassOf } from "../tools/safety-class.ts";
import type { Tool } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { fromIso } from "../util/clock.ts";
import type { JsonValue, ReadonlyJson } from "../util/json.ts";
import { matchWithGaps } from "./wildcard.ts";

/** A call as a rule looks at it. */
export interface RuledCall extends RuledTool {
  /** The parsed input: the bytes that would run. */
  readonly input: JsonValue;
  readonly workingDirectory: string;
  /** Who asks: the agent, who delegated to it, for whom they act, and whose automations they are. */
  readonly askers: readonly string[];
  /** Epoch milliseconds by the store's clock. */
  readonly now: number;
}

/** What a rule says about which calls; a rule that is not made yet says as much. */
export type Coverage = Pick<
  StandingRule,
  "tool" | "definitionHash" | "pattern" | "workingDirectory"
>;

/**
 * Does this rule stand for a person's yes to this call? Whatever is odd about either means no, and then a person is asked.
 * This is the look; whether the rule still holds is decided once more in the transaction that writes the intent. Nobody's
 * rule lets through what they asked for themselves.
 */
export function matchesRule(rule: StandingRule, call: RuledCall): boolean {
  try {
    if (rule.status !== "active" || !Number.isSafeInteger(call.now)) return false;
    if (!(call.now <= fromIso(rule.expiresAt))) return false;
    // Identity providers do not all spell a name alike, so names are compared folded.
    const askers = new Set(call.askers.map(foldName));
    const { madeBy, confirmedBy } = rule;
    if (askers.has(foldName(madeBy))) return false;
    if (confirmedBy !== "" && askers.has(foldName(confirmedBy))) return false;
    return mayBeCovered(call) && covers(rule, call);
  } catch {
    // A rule or an input that cannot be read is no error here: it is no yes.
    return false;
  }
}

/** Tool, definition, folder and input, whatever the time. Throws for an input that is not JSON. */
export function covers(rule: Coverage, call: Omit<RuledCall, "askers" | "now" | "safetyClass">) {
  if (call.tool === "" || rule.tool !== call.tool) return false;
  if (call.definitionHash === "" || rule.definitionHash !== call.definitionHash) return false;
  const { workingDirectory: folder } = rule;
  if (folder === "" ? call.needsExact !== false : folder !== call.workingDirectory) return false;
  if (patternProblem(rule.pattern, call) !== undefined) return false;
  return matchesPattern(rule.pattern, call.input);
}

/** The same facts for making a rule and for every call: read from the tool, never from what somebody says about it. */
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

/** Classes whose inputs are commands, paths and addresses; a tool that names resources takes some as well. */
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
  // Only a whole nested value says what is in it.
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
 * A gap is part of one word. It swallows no space, slash, quote or other sign, so that what was meant as a name cannot grow
 * into a path, a second argument or a second command; nor does a text become an option that was not written as one.
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
