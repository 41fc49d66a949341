import { SallyportError } from "../model/errors.ts";
import type { GateAnswer } from "../model/finding.ts";
import { EFFECTS, type Effect, PERMISSION_CLASSES, type PermissionClass } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { fromIso } from "../util/clock.ts";
import { shown } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import { isPlainJson } from "../util/json.ts";
import {
  type Access,
  ask,
  type CallFacts,
  changesFolder,
  deny,
  joinAnswers,
  type ResolvedResource,
  type SeenCall,
  type SeenScript,
} from "./answers.ts";
import {
  type CompiledInputTest,
  commandProblem,
  compileInputTest,
  type HostIdentity,
  holdsForInput,
  type InputTest,
  isAllowedBy,
  isAllowing,
  isRestrictedBy,
  isRuleEffect,
  isWithin,
  literalStart,
  matchHost,
  matchPath,
  parseHostPattern,
  pathPatternProblem,
  segmentsOf,
  testProblem,
  valueAt,
} from "./patterns.ts";
import { baseName, type ShellPart } from "./shell/script.ts";

/** Rules are data, not functions: they are stored, compared, hashed and shown, and survive a restart. */
export interface Policy {
  readonly version: string;
  readonly rules: readonly Rule[];
}

/** A rule matches when everything it names holds; fields that are not set do not restrict it. */
export interface Rule {
  readonly id: string;
  /** `allow` asks no one, `review` both machine reviews, `ask` these and a person. Of several rules the strictest counts. */
  readonly effect: "allow" | "review" | "ask" | "deny";
  /** The name of a tool, or a prefix and `*`; or a list of them, of which one has to fit. */
  readonly tool: string | readonly string[];
  /**
   * What the tool declares that it does. A tool that declares nothing fits no rule that allows, and a person is asked where
   * a rule restricts: a missing declaration must not avoid it.
   */
  readonly toolEffect?: Exclude<Effect, "">;
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

interface CompiledRule {
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

/**
 * The policy without rules: a person is asked about every call that is not read-only.
 *
 *     const gate = createGate({ policy: NO_RULES });
 */
export const NO_RULES: Policy = Object.freeze({ version: "none", rules: Object.freeze([]) });

function toolsOf({ tool }: Pick<Rule, "tool">): readonly string[] {
  return Array.isArray(tool) ? (tool as readonly string[]) : [tool as string];
}

function isToolPattern(tool: unknown): boolean {
  return isText(tool) && /^[\x21-\x29\x2b-\x7e]*\*?$/.test(tool);
}

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
  "id", "effect", "tool", "toolEffect", "class", "command", "folder", "options", "path", "access", "host", "input", "expiresAt",
  "reason",
];

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
  if (!isRuleEffect(rule.effect)) return "needs an effect: allow, review, ask or deny";
  if (!isText(rule.reason)) return "needs a reason, a text of up to 1000 characters";
  const tools = toolsOf(rule);
  if (tools.length === 0 || tools.length > 1_000 || !tools.every(isToolPattern)) {
    return 'needs a tool, or a list of up to 1000: a name in ASCII, or its beginning followed by "*"';
  }
  const { toolEffect } = rule;
  if (
    toolEffect !== undefined &&
    !(toolEffect !== ("" as string) && EFFECTS.includes(toolEffect))
  ) {
    return "has a toolEffect that is not read, write or external";
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
  if (isAllowing(rule)) {
    if (rule.class !== undefined && wanted[rule.class] !== subject) {
      return `allows class ${rule.class} without naming a ${wanted[rule.class]}; write out what it allows`;
    }
    const isWide = subject === "" && rule.input === undefined && rule.toolEffect !== "read";
    if (toolsOf(rule).includes("*") && isWide) {
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
    return isAllowing({ effect })
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

/** The subject of a rule: one program, one file, one host, or the call itself. */
type Subject =
  | { readonly kind: "command"; readonly part: ShellPart; readonly script: SeenScript }
  | { readonly kind: "file"; readonly segments: readonly string[]; readonly access: Access }
  | { readonly kind: "url"; readonly identity: HostIdentity }
  | { readonly kind: "call" };

const CALL: Subject = { kind: "call" };
const ONLY_THE_CALL: readonly Subject[] = [CALL];

/** The rule that allows this subject, if any; of several the one that wants a review. A rule that names no command, path or host allows none. */
export function allowingRule(
  policy: CompiledPolicy,
  facts: CallFacts,
  subject: Subject,
): CompiledRule | undefined {
  const fitting = matching(policy, facts, subject).filter(({ rule }) => isAllowing(rule));
  return fitting.find(({ rule }) => rule.effect === "review") ?? fitting[0];
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
      if (!isAllowing(compiled.rule)) rules.add(compiled);
    }
  }
  const answers = Array.from(rules, ({ rule }) =>
    rule.toolEffect !== undefined && isUndeclared(facts)
      ? undeclared(facts.tool, rule)
      : said(facts.tool, rule),
  );
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

function undeclared(tool: string, { id, reason }: Rule): GateAnswer {
  return ask(
    `rule.${id}`,
    `Rule ${shown(id)} is about what tools do, and tool ${shown(tool)} does not declare it, so a person has to decide: ${sentence(reason)}`,
  );
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
  if (!isOfEffect(rule, facts)) return false;
  if (!inputTests.every((test) => holdsForInput(test, facts.input))) return false;
  return matchesSubject(compiled, subject);
}

function isOfEffect({ effect, toolEffect }: Rule, facts: CallFacts): boolean {
  if (toolEffect === undefined || toolEffect === facts.effect) return true;
  return !isAllowing({ effect }) && isUndeclared(facts);
}

function isUndeclared({ effect = "" }: CallFacts): boolean {
  return effect === "";
}

function matchesSubject(compiled: CompiledRule, subject: Subject): boolean {
  const { rule, pathPattern, hostPattern } = compiled;
  switch (subject.kind) {
    case "command": {
      const { words, wrappers } = subject.part;
      if (rule.command === undefined || !isInFolder(compiled, subject)) return false;
      if (isAllowing(rule)) return isAllowedBy(words, rule.command, rule.options ?? []);
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
  if (!isAllowing(rule)) {
    return folder === undefined || here === undefined || moves || isWithin(here, folder);
  }
  if (folder === undefined || here === undefined || part.folder !== undefined) return false;
  if (moves && (part.wrappers.length > 0 || !changesFolder(part.words))) return false;
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

export function subjectsOf({ scripts, files, urls }: SeenCall): readonly Subject[] {
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
interface RuleIndex {
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

function buildIndex(rules: readonly CompiledRule[]): RuleIndex {
  const exact = new Map<string, ToolRules>();
  const prefixes = new Map<string, ToolRules>();
  for (const compiled of rules) {
    for (const tool of new Set(toolsOf(compiled.rule))) {
      if (tool.endsWith("*")) file(prefixes, tool.slice(0, -1), compiled);
      else file(exact, tool, compiled);
    }
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
  if (kind !== undefined && !isAllowing(compiled.rule)) {
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
    return commandKey(isAllowing(rule) ? name : baseName(name));
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
