import type { GateAnswer } from "../model/finding.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import {
  type Access,
  ask,
  type CallFacts,
  deny,
  joinAnswers,
  type ResolvedResource,
  shown,
} from "./answers.ts";
import { holdsForInput, valueAt } from "./input-test.ts";
import { isAllowedBy, isRestrictedBy } from "./match-command.ts";
import { type HostIdentity, isWithin, literalStart, matchHost, matchPath } from "./patterns.ts";
import type { CompiledPolicy, CompiledRule } from "./policy.ts";
import { isMove, type SeenCall, type SeenScript } from "./seen-call.ts";
import { baseName, type ShellPart } from "./shell/script.ts";

/** The subject of a rule: one program, one file, one host, or the call itself. */
export type Subject =
  | { readonly kind: "command"; readonly part: ShellPart; readonly script: SeenScript }
  | { readonly kind: "file"; readonly segments: readonly string[]; readonly access: Access }
  | { readonly kind: "url"; readonly identity: HostIdentity }
  | { readonly kind: "call" };

const CALL: Subject = { kind: "call" };
const ONLY_THE_CALL: readonly Subject[] = [CALL];

/** The rule that allows this subject, if any. A rule that names no command, path or host allows none. */
export function allowingRule(
  policy: CompiledPolicy,
  facts: CallFacts,
  subject: Subject,
): CompiledRule | undefined {
  return matching(policy, facts, subject).find(({ rule }) => rule.effect === "allow");
}

/**
 * The restrictions of the rules for a call, whatever its class: rules that deny or ask are matched against every
 * resource. Undefined when no rule restricts it. A rule for this exact tool that cannot be applied, because the call
 * does not show what the rule matches, means ask: a missing fact must not disable a restriction.
 */
export function restrictingRules(policy: CompiledPolicy, call: SeenCall): GateAnswer | undefined {
  const { facts } = call;
  const rules = new Set<CompiledRule>();
  for (const subject of subjectsOf(call)) {
    for (const compiled of matching(policy, facts, subject)) {
      if (compiled.rule.effect !== "allow") rules.add(compiled);
    }
  }
  const answers = Array.from(rules, ({ rule }) => said(facts.tool, rule));
  for (const kind of watchedKinds(policy.index, facts.tool, facts.now)) {
    const isShown = facts.resources.some((resource) => resource.kind === kind);
    if (!isShown) answers.push(notShown(facts.tool, kind));
  }
  return answers.length > 0 ? joinAnswers(answers) : undefined;
}

/** A resource of a kind that the class does not check needs a person. */
export function otherKinds(
  { facts }: SeenCall,
  kind: ResolvedResource["kind"],
  policy: string,
): readonly GateAnswer[] {
  const others = facts.resources.filter((resource) => resource.kind !== kind);
  if (others.length === 0) return [];
  const kinds = [...new Set(others.map((resource) => resource.kind))].join(", ");
  return [
    ask(
      policy,
      `Tool ${shown(facts.tool)} also touches resources (${kinds}) that its permission class does not check, so a person has to decide.`,
    ),
  ];
}

function said(tool: string, { id, effect, reason }: CompiledRule["rule"]): GateAnswer {
  return effect === "deny"
    ? deny(
        `rule.${id}`,
        `Tool ${shown(tool)} was refused by rule ${shown(id)}: ${sentence(reason)} Nothing was executed. Choose another approach; repeating the call will not help.`,
      )
    : ask(
        `rule.${id}`,
        `Rule ${shown(id)} wants a person to decide about tool ${shown(tool)}: ${sentence(reason)}`,
      );
}

/** Reasons are written by the operator and may lack the full stop. */
function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

function notShown(tool: string, kind: string): GateAnswer {
  return ask(
    "rules",
    `Rules for tool ${shown(tool)} look at its ${kind}, which this call does not show, so a person has to decide.`,
  );
}

function matching(
  policy: CompiledPolicy,
  facts: CallFacts,
  subject: Subject,
): readonly CompiledRule[] {
  return candidates(policy.index, facts, keysOf(subject)).filter((compiled) =>
    matches(compiled, facts, subject),
  );
}

function matches(compiled: CompiledRule, facts: CallFacts, subject: Subject): boolean {
  const { rule, expiresAt, inputTests } = compiled;
  if (facts.now >= expiresAt) return false;
  if (rule.class !== undefined && rule.class !== (facts.permissionClass || "generic")) return false;
  if (!inputTests.every((test) => holdsForInput(test, facts.input))) return false;
  return matchesSubject(compiled, subject);
}

function matchesSubject(compiled: CompiledRule, subject: Subject): boolean {
  const { rule, pathPattern, hostPattern } = compiled;
  switch (subject.kind) {
    case "command": {
      const { words, wrappers } = subject.part;
      if (rule.command === undefined || !isInFolder(compiled, subject)) return false;
      if (rule.effect === "allow") return isAllowedBy(words, rule.command, rule.options ?? []);
      const pattern = rule.command;
      return [...wrappers, words].some((layer) => isRestrictedBy(layer, pattern));
    }
    case "file":
      if (rule.access !== undefined && rule.access !== subject.access) return false;
      return pathPattern !== undefined && matchPath(subject.segments, pathPattern);
    case "url":
      return hostPattern !== undefined && matchHost(subject.identity, hostPattern);
    case "call":
      return rule.command === undefined && rule.path === undefined && rule.host === undefined;
  }
}

/**
 * An allowing rule applies in exactly its folder and only while nothing in the script changes the folder, because only
 * the shell knows the new one. The change itself still starts in the folder. A restricting rule applies wherever it
 * might match.
 */
function isInFolder(
  { rule, folder }: CompiledRule,
  { part, script }: Extract<Subject, { kind: "command" }>,
): boolean {
  const { folder: here, moves } = script;
  if (rule.effect !== "allow") {
    return folder === undefined || here === undefined || moves || isWithin(here, folder);
  }
  if (folder === undefined || here === undefined || part.folder !== undefined) return false;
  if (moves && (part.wrappers.length > 0 || !isMove(part.words))) return false;
  return here.length === folder.length && isWithin(here, folder);
}

function keysOf(subject: Subject): readonly string[] {
  switch (subject.kind) {
    case "command": {
      const layers = [...subject.part.wrappers, subject.part.words];
      const names = layers.flatMap(([name]) => (name === undefined ? [] : [name.text]));
      return [...new Set(names.flatMap((name) => [name, baseName(name)]))].map(commandKey);
    }
    case "file":
      return pathKeys(subject.segments);
    case "url":
      return hostKeys(subject.identity);
    case "call":
      return [];
  }
}

function subjectsOf({ scripts, files, urls }: SeenCall): readonly Subject[] {
  if (scripts.length + files.length + urls.length === 0) return ONLY_THE_CALL;
  return [
    CALL,
    ...scripts.flatMap((script) =>
      script.parts.map((part) => ({ kind: "command", part, script }) as const),
    ),
    ...files.map(({ segments, access }) => ({ kind: "file", segments, access }) as const),
    ...urls.flatMap(({ read }) =>
      read.ok ? [{ kind: "url", identity: read.identity } as const] : [],
    ),
  ];
}

/**
 * The index of the rules. Each rule has one entry, under its most selective condition: first its tool, then a value of
 * the input, the command's name, the host, or the folder of its path. A call looks up its few keys, so ten thousand
 * rules cost about as much as fifty.
 */
export interface RuleIndex {
  readonly exact: ReadonlyMap<string, ToolRules>;
  readonly prefixes: ReadonlyMap<string, ToolRules>;
  /** The lengths of existing prefixes; only these are tried. */
  readonly prefixLengths: readonly number[];
}

interface ToolRules {
  readonly byKey: Map<string, CompiledRule[]>;
  /** The places of the input that rules are indexed by, in normal form. */
  readonly inputPlaces: Map<string, readonly (string | number)[]>;
  /** What restricting rules match, and the latest expiry among them. */
  readonly watched: Map<Watched, number>;
}

/** Parts of a call, besides its input, that a rule can match. */
type Watched = "command" | "file" | "url";

/** Rules without an indexable condition. */
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

/** Candidate rules: those under `keys`, those under the call's input, and those without an index key. */
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

/** What restricting rules for exactly this tool need to see of a call. */
function watchedKinds(index: RuleIndex, tool: string, now: number): readonly Watched[] {
  const watched = index.exact.get(tool)?.watched;
  if (watched === undefined) return [];
  return [...watched].filter(([, until]) => now < until).map(([kind]) => kind);
}

export const commandKey = (name: string): string => `command ${name}`;

/** The folder of a pattern; a file is looked up under each of its parent folders. */
function pathKeys(segments: readonly string[]): readonly string[] {
  return segments.map((_, depth) => pathKey(segments.slice(0, depth + 1)));
}

function hostKeys({ host }: HostIdentity): readonly string[] {
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
    // Restrictions match a program by its base name, in any folder.
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
