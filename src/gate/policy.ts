import type { PermissionClass } from "../tools/metadata.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { fromIso } from "../util/clock.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonValue } from "../util/json.ts";
import type { Access } from "./call-facts.ts";
import { parseHostPattern } from "./host-pattern.ts";
import { type CompiledInputTest, compileInputTest } from "./input-test.ts";
import { segmentsOf } from "./path-pattern.ts";
import { checkPolicy } from "./policy-checks.ts";
import { buildIndex, type RuleIndex } from "./rule-index.ts";

/** Rules as data, never as functions: they are stored, compared, hashed and shown, and survive a restart. */
export interface Policy {
  readonly version: string;
  readonly rules: readonly Rule[];
}

/** Everything a rule names must hold for it to match; what it leaves out does not matter to it. */
export interface Rule {
  readonly id: string;
  readonly effect: "allow" | "ask" | "deny";
  /** A tool's name, or its beginning and `*`. */
  readonly tool: string;
  readonly class?: Exclude<PermissionClass, "">;
  /** Words of one command; see `match-command.ts` for the wildcards. */
  readonly command?: readonly string[];
  /**
   * The folder that `command` is meant for, as an absolute path without links or wildcards; a rule that allows a command
   * must name one. It allows the command in exactly this folder: not below it, and not after the command changed to another
   * one. A rule that asks or denies holds in this folder and everywhere below; without a folder it holds everywhere.
   */
  readonly folder?: string;
  /** Options that an allowing `command` accepts anywhere after its first word: exact, or a beginning and `*`. */
  readonly options?: readonly string[];
  /** An absolute path; `*` inside a name, `**` for any number of names. */
  readonly path?: string;
  /** Narrows `path` to reading or writing. */
  readonly access?: Access;
  /** `example.com`, `*.example.com` or either with `:port`; without a port 443 is meant. */
  readonly host?: string;
  readonly input?: readonly InputTest[];
  /** From this instant on the rule is void. */
  readonly expiresAt?: string;
  /** Why it exists; shown with every answer it causes. */
  readonly reason: string;
}

/** One place in the input and what must be true there. All that is given must hold. */
export interface InputTest {
  /** Such as `$.items[0].price` or `$["odd key"]`. */
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

/** A policy made ready for lookups. Holds functions and maps: keep and compare the `Policy`, not this. */
export interface CompiledPolicy {
  readonly version: string;
  readonly hash: string;
  readonly size: number;
  readonly index: RuleIndex;
}

/**
 * Checks every rule and builds the index. Throws `invalid_input` with the rule's id and what is wrong: a rule that is not
 * understood must never be skipped, because it may have been a denial.
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

/** Identity of a policy's content. Part of what an approval is bound to. */
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
