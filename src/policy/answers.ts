import { FINDING_SEVERITIES, type Finding, type GateAnswer } from "../model/finding.ts";
import type { Access, ResolvedResource } from "../tools/resources.ts";
import type { PermissionClass } from "../tools/safety.ts";
import type { JsonValue } from "../util/json.ts";

export type Answer = GateAnswer["answer"];

/** Strictest first. */
const ANSWERS: readonly Answer[] = ["deny", "ask", "allow"];

function strictest(answers: readonly Answer[]): Answer {
  // Answers may come from third-party code: a value that is none of the three is not consent.
  if (!answers.every((answer) => ANSWERS.includes(answer))) return "deny";
  return ANSWERS.find((answer) => answers.includes(answer)) ?? "ask";
}

/** Deny beats ask, ask beats allow. Without any answer a person is asked: silence never allows. */
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

const LONGEST = 200;

/**
 * Untrusted text for use in a message: one line, printable ASCII, limited length. Escape codes and invisible or
 * reversed characters become visible, so that the subject of a message cannot forge the message.
 */
export function shown(text: string, longest: number = LONGEST): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return JSON.stringify(cut.toWellFormed()).replace(/[^\x20-\x7e…]/g, escapeUnit);
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** The text of a thrown value, safe to show. Never throws. */
export function shownError(error: unknown): string {
  try {
    return shown(error instanceof Error ? error.message || error.name : String(error));
  } catch {
    return '"an error that cannot be described"';
  }
}
