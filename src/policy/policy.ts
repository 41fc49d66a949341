import { SallyportError } from "../model/errors.ts";
import { PERMISSION_CLASSES, type PermissionClass } from "../tools/safety.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { fromIso } from "../util/clock.ts";
import { sha256Hex } from "../util/hash.ts";
import { isPlainJson, type JsonValue } from "../util/json.ts";
import { type Access, shown } from "./answers.ts";
import { type CompiledInputTest, compileInputTest, parseSteps } from "./input-test.ts";
import { commandProblem } from "./match-command.ts";
import { parseHostPattern, pathPatternProblem, segmentsOf } from "./patterns.ts";
import { buildIndex, type RuleIndex } from "./rule-answers.ts";

/** Rules are data, not functions: they are stored, compared, hashed and shown, and survive a restart. */
export interface Policy {
  readonly version: string;
  readonly rules: readonly Rule[];
}

/** A rule matches when everything it names holds; fields that are not set do not restrict it. */
export interface Rule {
  readonly id: string;
  readonly effect: "allow" | "ask" | "deny";
  /** The name of a tool, or a prefix and `*`. */
  readonly tool: string;
  readonly class?: Exclude<PermissionClass, "">;
  /** Words of one command; see `match-command.ts` for the wildcards. */
  readonly command?: readonly string[];
  /**
   * The folder of `command`, as an absolute path without links or wildcards. A rule that allows a command must name
   * one. It allows the command in exactly this folder: not below it, and not after the command changed the folder. A
   * rule that asks or denies applies in this folder and below; without a folder it applies everywhere.
   */
  readonly folder?: string;
  /** Options that an allowing `command` accepts anywhere after its first word: exact, or a prefix and `*`. */
  readonly options?: readonly string[];
  /** An absolute path; `*` inside a name, `**` for any number of names. */
  readonly path?: string;
  /** Narrows `path` to reading or writing. */
  readonly access?: Access;
  /** `example.com`, `*.example.com` or either with `:port`; the default port is 443. */
  readonly host?: string;
  readonly input?: readonly InputTest[];
  /** The rule is void from this instant on. */
  readonly expiresAt?: string;
  /** Why the rule exists; shown with every answer it causes. */
  readonly reason: string;
}

/** One place in the input and its conditions, all of which must hold. */
export interface InputTest {
  /** Such as `$.items[0].price` or `$["a key"]`. */
  readonly at: string;
  readonly equals?: JsonValue;
  readonly oneOf?: readonly JsonValue[];
  /** The text there starts with this. */
  readonly prefix?: string;
  readonly min?: number;
  readonly max?: number;
}

export interface CompiledRule {
  readonly rule: Rule;
  /** `Infinity` when it never expires. */
  readonly expiresAt: number;
  readonly pathPattern: readonly string[] | undefined;
  readonly folder: readonly string[] | undefined;
  readonly hostPattern: ReturnType<typeof parseHostPattern> | undefined;
  readonly inputTests: readonly CompiledInputTest[];
}

/** A policy prepared for lookups. Holds functions and maps: store and compare the `Policy` instead. */
export interface CompiledPolicy {
  readonly version: string;
  readonly hash: string;
  readonly size: number;
  readonly index: RuleIndex;
}

/**
 * Checks every rule and builds the index. Throws `invalid_input` with the rule's id and the problem: a rule that is not
 * understood must never be skipped, because it may be a denial.
 */
export function compilePolicy(policy: Policy): CompiledPolicy {
  checkPolicy(policy);
  const rules = policy.rules.map(compileRule);
  return {
    version: policy.version,
    hash: policyHash(policy),
    size: rules.length,
    index: buildIndex(rules),
  };
}

/** The hash of a policy's content. An approval is bound to it. */
export function policyHash(policy: Policy): string {
  return sha256Hex(canonicalJson({ kind: "sallyport.policy", policy }));
}

export const NO_RULES: Policy = Object.freeze({ version: "none", rules: Object.freeze([]) });

function compileRule(rule: Rule): CompiledRule {
  return {
    rule,
    expiresAt: rule.expiresAt === undefined ? Number.POSITIVE_INFINITY : fromIso(rule.expiresAt),
    pathPattern: rule.path === undefined ? undefined : segmentsOf(rule.path),
    folder: rule.folder === undefined ? undefined : segmentsOf(rule.folder),
    hostPattern: rule.host === undefined ? undefined : parseHostPattern(rule.host),
    inputTests: (rule.input ?? []).map(compileInputTest),
  };
}

const MOST_RULES = 100_000;
const LONGEST_TEXT = 1_000;

const POLICY_KEYS = ["version", "rules"];
// biome-ignore format: a list
const RULE_KEYS = [
  "id", "effect", "tool", "class", "command", "folder", "options", "path", "access", "host", "input", "expiresAt",
  "reason",
];
const TEST_KEYS = ["at", "equals", "oneOf", "prefix", "min", "max"];

/** Throws `invalid_input` for the first part of a policy that is not exactly understood. */
function checkPolicy(policy: Policy): void {
  if (!isPlainJson(policy))
    refuse(
      "",
      "is not plain JSON: functions, class instances and undefined do not survive storage",
    );
  unknownKeys("", policy, POLICY_KEYS);
  if (!isText(policy.version)) refuse("", "needs a version, a text of up to 1000 characters");
  if (!Array.isArray(policy.rules)) refuse("", "needs rules, a list");
  if (policy.rules.length > MOST_RULES) refuse("", `has more than ${MOST_RULES} rules`);
  const ids = new Set<string>();
  for (const rule of policy.rules as readonly Rule[]) {
    if (typeof rule !== "object" || rule === null || !isText(rule.id)) {
      refuse("", "has a rule without an id");
    }
    if (ids.has(rule.id)) refuse(rule.id, "has the id of another rule");
    ids.add(rule.id);
    const problem = ruleProblem(rule);
    if (problem !== undefined) refuse(rule.id, problem);
  }
}

function ruleProblem(rule: Rule): string | undefined {
  unknownKeys(rule.id, rule, RULE_KEYS);
  if (!["allow", "ask", "deny"].includes(rule.effect)) return "needs an effect: allow, ask or deny";
  if (!isText(rule.reason)) return "needs a reason, a text of up to 1000 characters";
  if (!isText(rule.tool) || !/^[\x21-\x29\x2b-\x7e]*\*?$/.test(rule.tool)) {
    return 'needs a tool: a name in ASCII, or its beginning followed by "*"';
  }
  if (
    rule.class !== undefined &&
    !(rule.class !== ("" as string) && PERMISSION_CLASSES.includes(rule.class))
  ) {
    return "has a class that does not exist";
  }
  return subjectProblem(rule) ?? inputProblem(rule) ?? expiryProblem(rule);
}

function subjectProblem(rule: Rule): string | undefined {
  const subjects = (["command", "path", "host"] as const).filter(
    (name) => rule[name] !== undefined,
  );
  if (subjects.length > 1) return "may name only one of command, path and host";
  const wanted = { bash: "command", file: "path", webfetch: "host", generic: "", readonly: "" };
  const [subject = ""] = subjects;
  if (rule.class !== undefined && subject !== "" && wanted[rule.class] !== subject) {
    return `names a ${subject}, which the class ${rule.class} does not look at`;
  }
  if (rule.effect === "allow") {
    if (rule.class !== undefined && wanted[rule.class] !== subject) {
      return `allows class ${rule.class} without naming a ${wanted[rule.class]}; write out what it allows`;
    }
    if (rule.tool === "*" && subject === "" && rule.input === undefined) {
      return "would allow every call of every tool; name the tools or what they may touch";
    }
  }
  if (rule.access !== undefined && rule.path === undefined) return "has access but no path";
  if (rule.access !== undefined && !["read", "write"].includes(rule.access)) {
    return "has an access that is neither read nor write";
  }
  if (rule.path !== undefined) {
    const problem = isText(rule.path) ? pathPatternProblem(rule.path) : "must be a text";
    if (problem !== undefined) return `has a path that ${problem}`;
  }
  if (rule.host !== undefined && !(isText(rule.host) && parseHostPattern(rule.host))) {
    return 'has a host that is not like "example.com", "*.example.com" or either with ":8443"';
  }
  return commandProblem(rule) ?? folderProblem(rule);
}

function folderProblem({ command, effect, folder }: Rule): string | undefined {
  if (command === undefined) {
    return folder === undefined ? undefined : "has a folder, which belongs to a command";
  }
  if (folder === undefined) {
    return effect === "allow"
      ? 'allows a command without naming its folder; add the one it is meant for, such as folder: "/work/app"'
      : undefined;
  }
  const segments = isText(folder) ? segmentsOf(folder) : undefined;
  if (segments === undefined || segments.some((name) => name.includes("*"))) {
    return 'has a folder that is not an absolute path such as "/work/app", without ".", ".." and wildcards';
  }
  return undefined;
}

function inputProblem({ input }: Rule): string | undefined {
  if (input === undefined) return undefined;
  if (!Array.isArray(input) || input.length === 0 || input.length > 100) {
    return "has an input that is not a list of 1 to 100 tests";
  }
  return (input as readonly InputTest[]).map(testProblem).find((problem) => problem !== undefined);
}

function testProblem(test: InputTest): string | undefined {
  if (typeof test !== "object" || test === null || Array.isArray(test))
    return "has an input test that is no object";
  const extra = Object.keys(test).find((key) => !TEST_KEYS.includes(key));
  if (extra !== undefined) return `has an input test with the unknown key ${shown(extra)}`;
  if (typeof test.at !== "string" || parseSteps(test.at) === undefined) {
    return 'has an input test whose "at" is not like $.items[0]["a key"]';
  }
  const given = Object.keys(test).filter((key) => key !== "at");
  if (given.length === 0) return "has an input test that asks for nothing";
  if (test.equals !== undefined && test.oneOf !== undefined)
    return "has an input test with equals and oneOf";
  if (test.oneOf !== undefined && !(Array.isArray(test.oneOf) && test.oneOf.length > 0)) {
    return "has an input test whose oneOf is not a filled list";
  }
  if (test.prefix !== undefined && (typeof test.prefix !== "string" || test.prefix === "")) {
    return "has an input test whose prefix is not a filled text";
  }
  const isBound = (bound: unknown) => bound === undefined || typeof bound === "number";
  return isBound(test.min) && isBound(test.max)
    ? undefined
    : "has an input test whose min or max is no number";
}

function expiryProblem({ expiresAt }: Rule): string | undefined {
  if (expiresAt === undefined) return undefined;
  try {
    fromIso(expiresAt);
    return undefined;
  } catch {
    return "has an expiresAt that is not like 2026-11-15T06:00:00.000Z";
  }
}

/** A misspelt `expiresAt` would make a rule permanent, so unknown fields are rejected. */
function unknownKeys(id: string, value: object, known: readonly string[]): void {
  const extra = Object.keys(value).find((key) => !known.includes(key));
  if (extra !== undefined) refuse(id, `has the unknown key ${shown(extra)}`);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "" && value.length <= LONGEST_TEXT;
}

function refuse(id: string, problem: string): never {
  const what = id === "" ? "The policy" : `Rule ${shown(id)}`;
  throw new SallyportError("invalid_input", { hint: `${what} ${problem}.`, rule: id });
}
