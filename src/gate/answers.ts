import { FINDING_SEVERITIES, type Finding, type GateAnswer } from "../model/finding.ts";

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
