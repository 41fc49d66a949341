import { FINDING_SEVERITIES, type Finding, type GateAnswer } from "../model/finding.ts";
import type { Access, ResolvedResource } from "../tools/resources.ts";
import type { PermissionClass } from "../tools/safety.ts";
import type { JsonValue } from "../util/json.ts";

export type Answer = GateAnswer["answer"];

/** Strictest first. */
const ANSWERS: readonly Answer[] = ["deny", "ask", "allow"];

function strictest(answers: readonly Answer[]): Answer {
  // Answers may come from code we do not know; a word that is none of the three is no consent.
  if (!answers.every((answer) => ANSWERS.includes(answer))) return "deny";
  return ANSWERS.find((answer) => answers.includes(answer)) ?? "ask";
}

/** Deny beats ask, ask beats allow, and when nobody said anything a person is asked: silence never allows. */
export function joinAnswers(answers: readonly GateAnswer[]): GateAnswer {
  return {
    answer: strictest(answers.map(({ answer }) => answer)),
    findings: mergeFindings(answers.flatMap(({ findings }) => findings)),
  };
}

/** One finding per policy and message, the most severe of them, in the order in which they were first said. */
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

/** A person has to decide; the finding says why and is no refusal by itself. */
export function ask(policy: string, message: string): GateAnswer {
  return { answer: "ask", findings: [{ severity: "warning", policy, message }] };
}

/** Nobody can lift it. */
export function deny(policy: string, message: string): GateAnswer {
  return { answer: "deny", findings: [{ severity: "hard-deny", policy, message }] };
}

/** True when the finding stops the call by itself; a warning does not. */
export function isBlocking(finding: Finding): boolean {
  return finding.severity !== "warning";
}

function rank(finding: Finding): number {
  const at = FINDING_SEVERITIES.indexOf(finding.severity);
  // A severity nobody knows is taken for the worst.
  return at < 0 ? -1 : at;
}

/**
 * What the gate is told about a call: everything resolved, so that it does no I/O itself. Text that an agent wrote about
 * its call is not part of it: the gate depends on tool, input, resources and identity alone. Nor is the way the call came
 * in (direct, deferred, undo, sub-agent, resumed): without it no way can have a gate of its own.
 */
export interface CallFacts {
  readonly tool: string;
  readonly permissionClass: PermissionClass;
  /** The parsed input, without reserved keys. */
  readonly input: JsonValue;
  readonly resources: readonly ResolvedResource[];
  readonly tenant: string;
  readonly sessionId: string;
  /** Who asks: the agent, then whoever delegated to it, up to the root. */
  readonly chain: readonly string[];
  /** Epoch milliseconds by the store's clock: expiry of rules and grants. */
  readonly now: number;
}

export type { Access, ResolvedResource };

const LONGEST = 200;

/**
 * Foreign text as it may stand in a message: one line, printable ASCII, not too long. What a name hides (escape codes,
 * invisible and reversed characters) becomes visible, so that a message cannot be written by what it is about.
 */
export function shown(text: string, longest: number = LONGEST): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return JSON.stringify(cut.toWellFormed()).replace(/[^\x20-\x7e…]/g, escapeUnit);
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** What a thrown value says, safe to show; describing it must not throw once more. */
export function shownError(error: unknown): string {
  try {
    return shown(error instanceof Error ? error.message || error.name : String(error));
  } catch {
    return '"an error that cannot be described"';
  }
}
