import { canonicalJson } from "../util/canonical-json.ts";
import type { CallFacts } from "./call-facts.ts";
import type { HostIdentity } from "./host-pattern.ts";
import { valueAt } from "./input-test.ts";
import { literalStart } from "./path-pattern.ts";
import type { CompiledRule } from "./policy.ts";
import { baseName } from "./shell/token.ts";

/**
 * Where to look for rules. Each rule stands in one place only, under the rarest thing it asks for: first its tool, then
 * a value of the input, the command's name, the host, or the folder its path starts with. A call looks under its own
 * few keys, so ten thousand rules cost about as much as fifty.
 */
export interface RuleIndex {
  readonly exact: ReadonlyMap<string, ToolRules>;
  readonly prefixes: ReadonlyMap<string, ToolRules>;
  /** How long the prefixes are that exist, to try those lengths only. */
  readonly prefixLengths: readonly number[];
}

interface ToolRules {
  readonly byKey: Map<string, CompiledRule[]>;
  /** The places of the input that rules are filed under, by their spelling. */
  readonly inputPlaces: Map<string, readonly (string | number)[]>;
  /** What rules that restrict look at, and until when the last of them holds. */
  readonly watched: Map<Watched, number>;
}

/** Parts of a call that a rule can look at besides its input. */
export type Watched = "command" | "file" | "url";

/** Rules that ask for nothing an index could use. */
const ANY = "any";

export function buildIndex(rules: readonly CompiledRule[]): RuleIndex {
  const exact = new Map<string, ToolRules>();
  const prefixes = new Map<string, ToolRules>();
  for (const compiled of rules) {
    const { tool } = compiled.rule;
    if (tool.endsWith("*")) file(prefixes, tool.slice(0, -1), compiled);
    else file(exact, tool, compiled);
  }
  const prefixLengths = [...new Set([...prefixes.keys()].map((prefix) => prefix.length))];
  return { exact, prefixes, prefixLengths };
}

/** Rules that may match: those under `keys`, those under the call's input, and those that ask for neither. */
export function candidates(
  index: RuleIndex,
  facts: CallFacts,
  keys: readonly string[],
): readonly CompiledRule[] {
  return toolRules(index, facts.tool).flatMap(({ byKey, inputPlaces }) => {
    const inputKeys = [...inputPlaces].flatMap(([at, steps]) => {
      const value = valueAt(facts.input, steps);
      return value === undefined ? [] : [inputKey(at, canonicalJson(value))];
    });
    return [ANY, ...inputKeys, ...keys].flatMap((key) => byKey.get(key) ?? []);
  });
}

/** What rules for exactly this tool, other than allowing ones, need to see of a call. */
export function watchedKinds(index: RuleIndex, tool: string, now: number): readonly Watched[] {
  const watched = index.exact.get(tool)?.watched;
  if (watched === undefined) return [];
  return [...watched].filter(([, until]) => now < until).map(([kind]) => kind);
}

export const commandKey = (name: string): string => `command ${name}`;

/** The folder of a pattern; a file is looked up under each folder above it. */
export function pathKeys(segments: readonly string[]): readonly string[] {
  return segments.map((_, depth) => pathKey(segments.slice(0, depth + 1)));
}

export function hostKeys({ host }: HostIdentity): readonly string[] {
  const labels = host.split(".");
  return labels.map((_, depth) => hostKey(labels.slice(depth).join(".")));
}

const hostKey = (host: string): string => `host ${host}`;
const pathKey = (segments: readonly string[]): string => `path ${segments.join("/")}`;
const inputKey = (at: string, text: string): string => `input ${at} ${text}`;

function file(into: Map<string, ToolRules>, tool: string, compiled: CompiledRule): void {
  const rules = into.get(tool) ?? { byKey: new Map(), inputPlaces: new Map(), watched: new Map() };
  into.set(tool, rules);
  const kind = watchedBy(compiled);
  if (kind !== undefined && compiled.rule.effect !== "allow") {
    rules.watched.set(kind, Math.max(compiled.expiresAt, rules.watched.get(kind) ?? 0));
  }
  const equality = compiled.inputTests.find(({ equal }) => equal !== undefined);
  if (equality?.equal === undefined) {
    add(rules, keyOf(compiled), compiled);
    return;
  }
  rules.inputPlaces.set(equality.at, equality.steps);
  for (const text of equality.equal) add(rules, inputKey(equality.at, text), compiled);
}

function watchedBy({ rule }: CompiledRule): Watched | undefined {
  if (rule.command !== undefined) return "command";
  if (rule.path !== undefined) return "file";
  return rule.host === undefined ? undefined : "url";
}

function keyOf({ rule, hostPattern, pathPattern }: CompiledRule): string {
  const name = rule.command?.[0];
  if (name !== undefined && !name.endsWith("*")) {
    // Restrictions go by the last name of a program, wherever it lies.
    return commandKey(rule.effect === "allow" ? name : baseName(name));
  }
  if (hostPattern !== undefined) return hostKey(hostPattern.host);
  if (pathPattern !== undefined && literalStart(pathPattern).length > 0) {
    return pathKey(literalStart(pathPattern));
  }
  return ANY;
}

function add(rules: ToolRules, key: string, compiled: CompiledRule): void {
  const known = rules.byKey.get(key);
  if (known === undefined) rules.byKey.set(key, [compiled]);
  else known.push(compiled);
}

function toolRules(index: RuleIndex, tool: string): readonly ToolRules[] {
  const found = index.prefixLengths
    .filter((length) => length <= tool.length)
    .map((length) => index.prefixes.get(tool.slice(0, length)));
  return [index.exact.get(tool), ...found].filter((rules) => rules !== undefined);
}
