import { pendingTool, questionHash, textOf } from "../gate/inbox.ts";
import { agentOf, askersOf, requestedBy } from "../gate/show.ts";
import type { Decision } from "../model/decision.ts";
import { type Interaction, previewHash } from "../model/interaction.ts";
import type { Operation } from "../model/operation.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import { encodeValue } from "../util/value-codec.ts";
import {
  type EvidenceIndex,
  lookAt,
  type RunEvidence,
  type TrailLine,
  tellsOf,
} from "./evidence.ts";

/**
 * Compares every stored field that the audit log contains or determines: what would run, what is shown about it, and its
 * outcome. A bad disk or a writer of the database changes rows and leaves the log as it is. States and their times are
 * compared by the invariants.
 */
export function compareRecords(evidence: RunEvidence): readonly string[] {
  const look = lookAt(evidence);
  const sessions = new Map(evidence.trail.map(({ subject, session }) => [subject, session]));
  const problems: string[] = [];
  function same(id: string, what: string, stored: unknown, told: unknown): void {
    // What was erased or never logged cannot be compared.
    if (told === undefined || stored === told) return;
    problems.push(`the ${what} of ${id} is not the one in the audit log`);
  }
  const proven: Proven = (id, what, type, field, sha256) => {
    const line = look.linesOf(id).findLast((one) => one.type === type);
    if (tellsOf(line, field, sha256, evidence) === false) same(id, what, sha256, "");
  };
  for (const decision of evidence.decisions) {
    same(decision.id, "session", decision.sessionId, sessions.get(decision.id));
    compareDecision(decision, look, same, proven);
  }
  for (const question of evidence.interactions) {
    same(question.id, "session", question.sessionId, sessions.get(question.id));
    compareQuestion(question, look, same, proven);
  }
  for (const operation of evidence.operations) {
    same(operation.id, "session", operation.sessionId, sessions.get(operation.id));
    compareOperation(operation, look, same, proven);
  }
  return problems;
}

type Same = (id: string, what: string, stored: unknown, told: unknown) => void;
/** The same for a content that the last entry of this type proves without containing it. */
type Proven = (id: string, what: string, type: string, field: string, sha256: string) => void;

function compareDecision(
  decision: Decision,
  look: EvidenceIndex,
  same: Same,
  proven: Proven,
): void {
  const { id, diff, executionProof } = decision;
  const told = factsOf(look.linesOf(id));
  proven(id, "payload", "decision.staged", "raw", sha256Hex(diff.raw));
  same(id, "source tool", diff.sourceTool, told("decision.staged", "source_tool"));
  const proof = executionProof === undefined ? "" : sha256Hex(encodeValue(executionProof));
  proven(id, "proof", "decision.executed", "proof", proof);
  const failure = asWritten(told("decision.failed", "reason"));
  same(id, "failure", decision.executionError.toWellFormed(), failure);
  for (const { type, data } of look.linesOf(id)) {
    if (type !== "decision.reviewed") continue;
    const verdict = data["verdict"] as Record<string, unknown>;
    const stored = data["tier"] === "tech" ? decision.techVerdict : decision.bizVerdict;
    same(id, "reviewer", stored.validator.toWellFormed(), verdict["validator"]);
    same(id, "score", stored.score, verdict["score"]);
    same(id, "severity", stored.severity, verdict["severity"]);
    same(id, "reason", stored.reason.toWellFormed(), asWritten(verdict["reason"]));
    const policy = asWritten(verdict["policy_version"]);
    same(id, "policy version", stored.policyVersion.toWellFormed(), policy);
  }
  compareMachine(decision, told("decision.previewed", "machine"), same);
  // The requesters determine who may approve.
  const metadata = told("decision.staged", "metadata");
  const { chain, owner, requester, editors = [] } = (metadata ?? {}) as Decision["metadata"];
  const origin = decision.origin ?? "outside";
  same(id, "origin", origin, told("decision.staged", "origin"));
  // Entries from before the mark was logged have the gate's facts instead of it.
  if (metadata !== undefined && requester === undefined) same(id, "origin", origin, "outside");
  const stored = decision.metadata["chain"];
  if (Array.isArray(chain)) {
    same(id, "chain", Array.isArray(stored) ? stored.join("\n") : "", chain.join("\n"));
  }
  if (Array.isArray(chain) && Array.isArray(editors)) {
    same(id, "editors", requestedBy(decision).editors.join("\n"), editors.join("\n"));
  }
  // The gate leaves out an owner that was not named.
  if (Array.isArray(chain)) same(id, "owner", decision.metadata["owner"] ?? "", owner ?? "");
  const shown = told("decision.previewed", "hash");
  if (shown === undefined) return;
  const preview = look.preview(id);
  same(id, "preview", preview === undefined ? "none" : previewHash(preview), shown);
}

/** What the business validator said before people did. Earlier versions recorded it in the log and with the question alone. */
function compareMachine({ id, machineVerdict }: Decision, told: unknown, same: Same): void {
  const { validator, score, severity, reason, policyVersion } = machineVerdict;
  if (validator === "") return;
  const shown = (told ?? { validator: "" }) as Record<string, unknown>;
  same(id, "machine reviewer", validator, shown["validator"]);
  same(id, "machine score", score, shown["score"]);
  same(id, "machine severity", severity, shown["severity"]);
  same(id, "machine reason", reason, asWritten(shown["reason"]));
  same(id, "machine policy version", policyVersion, asWritten(shown["policyVersion"]));
}

function compareQuestion(
  question: Interaction,
  look: EvidenceIndex,
  same: Same,
  proven: Proven,
): void {
  const { id, type, hash, decisionId, operationId, callId, sessionId } = question;
  const told = factsOf(look.linesOf(id));
  same(id, "kind", type, told("interaction.opened", "type"));
  same(id, "hash", hash, told("interaction.opened", "hash"));
  proven(id, "hash", "interaction.opened", "hash", hash);
  same(id, "decision", decisionId, told("interaction.opened", "decision"));
  same(id, "operation", operationId, told("interaction.opened", "operation"));
  const { displayText: text, choices, answer } = question;
  const given = answer === undefined ? "none" : sha256Hex(encodeValue(answer));
  proven(id, "answer", "interaction.answered", "answer", given);
  const closing = look.linesOf(id).findLast(({ data }) => typeof data["outcome"] === "string");
  same(id, "reason", question.reason.toWellFormed(), asWritten(closing?.data["reason"]));
  same(id, "votes", question.votes.map(({ by }) => by).join("\n"), votersOf(look.linesOf(id)));
  // The text follows from the content of its hash.
  if (type === "ask_user")
    same(id, "text", questionHash(sessionId, { callId, text, choices }), hash);
  const decision = look.decision(decisionId);
  const preview = look.preview(decisionId);
  const calls = decision === undefined ? undefined : look.calls(decision);
  if (type !== "confirm" || decision === undefined || preview === undefined) return;
  if (calls === undefined) return;
  same(id, "chain", question.chain.join("\n"), askersOf(requestedBy(decision)).join("\n"));
  same(id, "requirement", canonicalJson(question.requires), canonicalJson(preview.requires));
  same(id, "deadline", question.deadline, preview.expiresAt);
  const about = canonicalJson({ ...pendingTool(calls, preview) });
  same(id, "call", canonicalJson({ ...question.pendingTool }), about);
  same(id, "text", text, textOf(agentOf(requestedBy(decision)), calls));
}

function compareOperation(
  operation: Operation,
  look: EvidenceIndex,
  same: Same,
  proven: Proven,
): void {
  const { id, input, output, status } = operation;
  const told = factsOf(look.linesOf(id));
  same(id, "tool", operation.tool, told("operation.started", "tool"));
  same(id, "definition", operation.definitionHash, told("operation.started", "definition"));
  proven(id, "input", "operation.started", "input", sha256Hex(input));
  same(id, "decision", operation.decisionId, told("operation.started", "decision"));
  same(id, "step", operation.step, told("operation.started", "step"));
  same(id, "target", operation.undoOf, told("operation.started", "undo_of"));
  const decision = look.decision(operation.decisionId);
  const askers = decision === undefined ? undefined : askersOf(requestedBy(decision)).join("\n");
  if (operation.undoOf === "") same(id, "chain", operation.chain.join("\n"), askers);
  const { undo, stateVersion } = operation;
  if (status === "started" || status === "unknown") return;
  const has = (type: string) => look.linesOf(id).some((line) => line.type === type);
  // A failed call with an undo record is logged with the same proofs.
  const ended = has("operation.succeeded") ? "operation.succeeded" : "operation.failed";
  proven(id, "output", ended, "output", sha256Hex(output.toWellFormed()));
  const way = undo === undefined ? "none" : sha256Hex(encodeValue(undo));
  proven(id, "undo", ended, "undo", way);
  const last = has("operation.brought_back") ? "operation.brought_back" : ended;
  proven(id, "version", last, "version", sha256Hex(stateVersion.toWellFormed()));
}

/** A text without redactions: only that is equal in the record. */
function asWritten(told: unknown): string | undefined {
  return typeof told === "string" && !told.includes("[redacted:") ? told : undefined;
}

/** All approvers, in order; the last approval closed the question. */
function votersOf(lines: readonly TrailLine[]): string {
  const isYes = ({ type, data }: TrailLine): boolean =>
    type === "interaction.voted" ||
    (type === "interaction.answered" && data["outcome"] === "approved");
  return lines
    .filter(isYes)
    .map(({ actor }) => actor)
    .join("\n");
}

/** A field of the last entry of this type; undefined when there is none. */
function factsOf(lines: readonly TrailLine[]): (type: string, name: string) => unknown {
  return (type, name) => lines.findLast((line) => line.type === type)?.data[name];
}
