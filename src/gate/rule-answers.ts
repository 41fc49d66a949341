import type { GateAnswer } from "../model/finding.ts";
import { ask, deny, joinAnswers } from "./answers.ts";
import type { Access, CallFacts, ResolvedResource } from "./call-facts.ts";
import { type HostIdentity, matchHost } from "./host-pattern.ts";
import { holdsForInput } from "./input-test.ts";
import { isAllowedBy, isRestrictedBy } from "./match-command.ts";
import { isWithin, matchPath } from "./path-pattern.ts";
import type { CompiledPolicy, CompiledRule } from "./policy.ts";
import { candidates, commandKey, hostKeys, pathKeys, watchedKinds } from "./rule-index.ts";
import { isMove, type SeenCall, type SeenScript } from "./seen-call.ts";
import type { ShellPart } from "./shell/shell-script.ts";
import { baseName } from "./shell/token.ts";
import { shown } from "./shown.ts";

/** What a rule is held against: one program, one file, one host, or the call as such. */
export type Subject =
  | { readonly kind: "command"; readonly part: ShellPart; readonly script: SeenScript }
  | { readonly kind: "file"; readonly segments: readonly string[]; readonly access: Access }
  | { readonly kind: "url"; readonly identity: HostIdentity }
  | { readonly kind: "call" };

const CALL: Subject = { kind: "call" };
const ONLY_THE_CALL: readonly Subject[] = [CALL];

/** The rule that allows this subject, if there is one. A rule that names no command, path or host allows none. */
export function allowingRule(
  policy: CompiledPolicy,
  facts: CallFacts,
  subject: Subject,
): CompiledRule | undefined {
  return matching(policy, facts, subject).find(({ rule }) => rule.effect === "allow");
}

/**
 * What the rules say against a call, whatever its class: deny and ask are looked for in every resource. Undefined when
 * no rule restricts it. A rule made for this very tool that cannot be applied, because the call does not show what the
 * rule looks at, means asking: silence must not open what somebody meant to close.
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

/** A resource of a kind that the class does not look at makes a person look. */
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
      `Tool ${shown(facts.tool)} also touches resources (${kinds}) that its permission class does not check, so a person has to look at it.`,
    ),
  ];
}

function said(tool: string, { id, effect, reason }: CompiledRule["rule"]): GateAnswer {
  return effect === "deny"
    ? deny(
        `rule.${id}`,
        `Tool ${shown(tool)} was refused by rule ${shown(id)}: ${sentence(reason)} Nothing was executed. Choose another way; repeating the call will not help.`,
      )
    : ask(
        `rule.${id}`,
        `Rule ${shown(id)} wants a person to decide about tool ${shown(tool)}: ${sentence(reason)}`,
      );
}

/** Reasons are the operator's words and may lack their full stop. */
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
 * An allowance holds in exactly its folder, and only while nothing in the script changes to another one: where that leads is
 * known to the shell alone. The change itself still starts in the folder. A restriction holds wherever it might apply.
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
