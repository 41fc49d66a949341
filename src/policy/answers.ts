import { FINDING_SEVERITIES, type Finding, type GateAnswer } from "../model/finding.ts";
import type { Effect, PermissionClass } from "../tools/tool.ts";
import type { Access, ResolvedResource } from "../tools/tool-call.ts";
import type { JsonValue } from "../util/json.ts";
import type { ReadUrl } from "./patterns.ts";
import { baseName, type ShellScript, type ShellWord } from "./shell/script.ts";

type Answer = GateAnswer["answer"];

/** Strictest first. */
const ANSWERS: readonly Answer[] = ["deny", "ask", "review", "allow"];

function strictest(answers: readonly Answer[]): Answer {
  // Answers may come from third-party code: a value that is none of them is not consent.
  if (!answers.every((answer) => ANSWERS.includes(answer))) return "deny";
  return ANSWERS.find((answer) => answers.includes(answer)) ?? "ask";
}

/** Deny beats ask, ask beats review, review beats allow. Without any answer a person is asked: silence never allows. */
export function joinAnswers(answers: readonly GateAnswer[]): GateAnswer {
  return {
    answer: strictest(answers.map(({ answer }) => answer)),
    findings: mergeFindings(answers.flatMap(({ findings }) => findings)),
  };
}

/** Keeps one finding per policy and message, the most severe, in the order of their first occurrence. */
export function mergeFindings(findings: readonly Finding[]): readonly Finding[] {
  if (findings.length < 2) return findings;
  const merged = new Map<string, Finding>();
  for (const finding of findings) {
    const key = JSON.stringify([finding.policy, finding.message]);
    const known = merged.get(key);
    if (known === undefined || rank(finding) < rank(known)) merged.set(key, finding);
  }
  return [...merged.values()];
}

export function allow(): GateAnswer {
  return { answer: "allow", findings: [] };
}

/** Both machine reviews decide, and no person is asked. */
export function review(policy: string, message: string): GateAnswer {
  return { answer: "review", findings: [{ severity: "warning", policy, message }] };
}

/** A person has to decide. The finding gives the reason and does not deny by itself. */
export function ask(policy: string, message: string): GateAnswer {
  return { answer: "ask", findings: [{ severity: "warning", policy, message }] };
}

/** No grant overrides it. */
export function deny(policy: string, message: string): GateAnswer {
  return { answer: "deny", findings: [{ severity: "hard-deny", policy, message }] };
}

/** True when the finding stops the call by itself; a warning does not. */
export function isBlocking(finding: Finding): boolean {
  return finding.severity !== "warning";
}

function rank(finding: Finding): number {
  const at = FINDING_SEVERITIES.indexOf(finding.severity);
  // An unknown severity counts as the most severe.
  return at < 0 ? -1 : at;
}

/**
 * The facts of a call, all resolved, so that the gate does no I/O. Text that an agent wrote about its call is not
 * included: the gate depends on tool, input, resources and identity alone. Nor is the entry path (direct, deferred,
 * undo, sub-agent, resumed), so that no path can have different rules.
 */
export interface CallFacts {
  readonly tool: string;
  readonly permissionClass: PermissionClass;
  /** What the tool declares that it does; empty or undefined when it declares nothing. */
  readonly effect?: Effect;
  /** The parsed input, without reserved keys. */
  readonly input: JsonValue;
  readonly resources: readonly ResolvedResource[];
  readonly tenant: string;
  readonly sessionId: string;
  /** The requester chain: the agent, then its delegators up to the root. */
  readonly chain: readonly string[];
  /** Epoch milliseconds by the store's clock, for the expiry of rules and grants. */
  readonly now: number;
}

export type { Access, ResolvedResource };

/** A call with its resources parsed once: rules and classes share the result, so they cannot disagree about it. */
export interface SeenCall {
  readonly facts: CallFacts;
  readonly scripts: readonly SeenScript[];
  readonly files: readonly SeenFile[];
  readonly urls: readonly { readonly url: string; readonly read: ReadUrl }[];
  /** Files that could not be resolved. */
  readonly unresolved: readonly { readonly path: string; readonly reason: string }[];
}

export interface SeenScript extends ShellScript {
  /** Names of the folder it starts in; undefined when unknown. */
  readonly folder: readonly string[] | undefined;
  /** A command in it changes the folder, so the folder of the others is unknown. */
  readonly moves: boolean;
  /** Where its words lead that go through a link. */
  readonly linked: readonly { readonly segments: readonly string[]; readonly leaves: boolean }[];
}

export interface SeenFile {
  readonly path: string;
  readonly resolved: string;
  readonly segments: readonly string[];
  readonly access: Access;
}

const MOVES: ReadonlySet<string> = new Set(["cd", "pushd", "popd"]);
/** Options of find that run a program for each file. */
const MOVING_OPTIONS: ReadonlySet<string> = new Set(["-execdir", "-okdir"]);

/** True for a command that changes the folder of later commands, or of its own child. */
export function changesFolder(words: readonly ShellWord[]): boolean {
  const [name, ...rest] = words;
  return MOVES.has(baseName(name?.text ?? "")) || rest.some(({ text }) => MOVING_OPTIONS.has(text));
}

/** Counts of denied calls, by tool, by agent and by the check that denied them. For display, audit and the breaker. */
export interface Denials {
  readonly total: number;
  /** Denials since the last allowed call. */
  readonly inARow: number;
  readonly byTool: ReadonlyMap<string, number>;
  readonly byPolicy: ReadonlyMap<string, number>;
  readonly byAgent: ReadonlyMap<string, number>;
  /** Epoch milliseconds of the last denial. */
  readonly lastAt: number | undefined;
}

/** Names beyond this number are counted together: an agent can invent any number of tool names. */
const MOST_NAMES = 1_000;
const OTHERS = "(others)";

export const NO_DENIALS: Denials = Object.freeze({
  total: 0,
  inARow: 0,
  byTool: new Map(),
  byPolicy: new Map(),
  byAgent: new Map(),
  lastAt: undefined,
});

/** Records one answer of the gate. An allowed call ends a run of denials; one that others decide about changes nothing. */
export function countAnswer(
  denials: Denials,
  call: {
    readonly tool: string;
    readonly agent: string;
    readonly answer: GateAnswer;
    readonly now: number;
  },
): Denials {
  const { answer, findings } = call.answer;
  if (answer === "ask" || answer === "review") return denials;
  if (answer === "allow") return denials.inARow === 0 ? denials : { ...denials, inARow: 0 };
  const policies = new Set(findings.filter(isBlocking).map(({ policy }) => policy));
  return {
    total: denials.total + 1,
    inARow: denials.inARow + 1,
    byTool: counted(denials.byTool, [call.tool]),
    byPolicy: counted(denials.byPolicy, policies),
    byAgent: counted(denials.byAgent, [call.agent]),
    lastAt: call.now,
  };
}

export interface DenialSnapshot {
  readonly total: number;
  readonly inARow: number;
  /** Most often denied first. */
  readonly byTool: readonly (readonly [string, number])[];
  readonly byPolicy: readonly (readonly [string, number])[];
  readonly byAgent: readonly (readonly [string, number])[];
  readonly lastAt: number | undefined;
}

/** Plain data that later denials do not change. */
export function denialSnapshot(denials: Denials): DenialSnapshot {
  return {
    total: denials.total,
    inARow: denials.inARow,
    byTool: ranked(denials.byTool),
    byPolicy: ranked(denials.byPolicy),
    byAgent: ranked(denials.byAgent),
    lastAt: denials.lastAt,
  };
}

function counted(
  counts: ReadonlyMap<string, number>,
  names: Iterable<string>,
): ReadonlyMap<string, number> {
  const next = new Map(counts);
  for (const name of names) {
    const key = next.has(name) || next.size < MOST_NAMES ? name : OTHERS;
    next.set(key, (next.get(key) ?? 0) + 1);
  }
  return next;
}

function ranked(counts: ReadonlyMap<string, number>): readonly (readonly [string, number])[] {
  return [...counts].toSorted(([, a], [, b]) => b - a);
}
