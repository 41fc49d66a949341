import { decodeProposal, type PlannedCall } from "../gate/action.ts";
import type { AuditEntry } from "../model/audit-entry.ts";
import type { Decision } from "../model/decision.ts";
import type { Interaction, Preview } from "../model/interaction.ts";
import type { Operation } from "../model/operation.ts";
import { proofName } from "../store/content-proof.ts";
import type { Effect, Evidence } from "./evidence.ts";

/** An entry of the trail with its data read; empty where it was erased. */
export interface Line extends Pick<AuditEntry, "seq" | "at" | "type" | "subject" | "actor"> {
  readonly data: Readonly<Record<string, unknown>>;
  readonly isErased: boolean;
}

/** The same evidence, found by id. */
export interface Look {
  readonly lines: readonly Line[];
  /** When everything was stopped and when it went on. */
  readonly turns: readonly Line[];
  linesOf(subject: string): readonly Line[];
  operation(id: string): Operation | undefined;
  decision(id: string): Decision | undefined;
  preview(decisionId: string): Preview | undefined;
  interaction(id: string): Interaction | undefined;
  /** The operation that an effect belongs to, by its key. */
  behind(effect: Effect): Operation | undefined;
  effectsOf(operationId: string): readonly Effect[];
  /** The calls that were made for a decision, in no order. */
  operationsOf(decisionId: string): readonly Operation[];
  /** Every try at taking an operation back. */
  undosOf(operationId: string): readonly Operation[];
  /** The calls of a decision; undefined for one that was not staged as calls. */
  calls(decision: Decision): readonly PlannedCall[] | undefined;
  /** Begins of attempts, in order: only one that is stored may act. */
  begins(operationId: string): readonly Line[];
}

/** What starts an attempt, each with a fence of its own. */
export const BEGINS: readonly string[] = [
  "operation.started",
  "operation.taken_over",
  "operation.reopened",
  "operation.attempted",
];

const looks = new WeakMap<Evidence, Look>();

/** Made once for all invariants that look at the same evidence. */
export function lookAt(evidence: Evidence): Look {
  const known = looks.get(evidence);
  if (known !== undefined) return known;
  const made = makeLook(evidence);
  looks.set(evidence, made);
  return made;
}

/**
 * Whether an entry speaks of this content: by its proof or, in entries of earlier versions, by its plain hash. Undefined when
 * it says nothing about it, because it was erased or never did. A proof that nobody can check is a no.
 */
export function tellsOf(
  line: Pick<Line, "subject" | "data"> | undefined,
  field: string,
  sha256: string,
  { contentProof }: Evidence,
): boolean | undefined {
  const proof = line?.data[proofName(field)];
  if (line === undefined) return undefined;
  if (proof !== undefined) {
    return contentProof?.({ field, subject: line.subject }, sha256) === proof;
  }
  const plain = line.data[`${field}_sha256`];
  return plain === undefined ? undefined : plain === sha256;
}

/** The id inside an idempotency key: `tenant/operation`. */
export function operationIdOf({ key }: Effect, tenant: string): string | undefined {
  return key.startsWith(`${tenant}/`) ? key.slice(tenant.length + 1) : undefined;
}

function makeLook(evidence: Evidence): Look {
  const { tenant, ledger, trail, decisions, operations, interactions, previews } = evidence;
  const lines = trail.map(lineOf);
  const bySubject = Map.groupBy(lines, ({ subject }) => subject);
  const operationById = new Map(operations.map((one) => [one.id, one]));
  const decisionById = new Map(decisions.map((one) => [one.id, one]));
  const interactionById = new Map(interactions.map((one) => [one.id, one]));
  const previewById = new Map(previews.map((one) => [one.decisionId, one]));
  const effects = Map.groupBy(ledger, (effect) => operationIdOf(effect, tenant) ?? "");
  const ofDecision = Map.groupBy(operations, ({ decisionId }) => decisionId);
  const undos = Map.groupBy(operations, ({ undoOf }) => undoOf);
  const callsById = new Map<string, readonly PlannedCall[] | undefined>();
  const linesOf = (subject: string) => bySubject.get(subject) ?? [];
  return {
    lines,
    turns: lines.filter(({ type }) => type.startsWith("switch.")),
    linesOf,
    operation: (id) => operationById.get(id),
    decision: (id) => decisionById.get(id),
    preview: (id) => previewById.get(id),
    interaction: (id) => interactionById.get(id),
    behind: (effect) => operationById.get(operationIdOf(effect, tenant) ?? ""),
    effectsOf: (id) => effects.get(id) ?? [],
    operationsOf: (id) => (id === "" ? [] : (ofDecision.get(id) ?? [])),
    undosOf: (id) => (id === "" ? [] : (undos.get(id) ?? [])),
    begins: (id) => linesOf(id).filter(({ type }) => BEGINS.includes(type)),
    calls(decision) {
      if (!callsById.has(decision.id)) callsById.set(decision.id, decoded(decision));
      return callsById.get(decision.id);
    },
  };
}

function lineOf({ seq, at, type, subject, actor, data }: AuditEntry): Line {
  return { seq, at, type, subject, actor, data: dataOf(data), isErased: data === null };
}

/** Data that cannot be read is I17's to tell: it does not give its hash. */
function dataOf(data: string | null): Line["data"] {
  try {
    const read: unknown = JSON.parse(data ?? "{}");
    return typeof read === "object" && read !== null ? (read as Line["data"]) : {};
  } catch {
    return {};
  }
}

function decoded(decision: Decision): readonly PlannedCall[] | undefined {
  try {
    return decodeProposal(decision).calls;
  } catch {
    return undefined;
  }
}
