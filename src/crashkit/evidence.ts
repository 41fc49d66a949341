import { listOperations } from "../gate/operation-log.ts";
import { decodeProposal, type PlannedCall } from "../gate/show.ts";
import type { AuditEntry } from "../model/audit-entry.ts";
import { type Decision, MOVES } from "../model/decision.ts";
import { INTERACTION_OUTCOMES, type Interaction, type Preview } from "../model/interaction.ts";
import { OPERATION_MOVES, type Operation } from "../model/operation.ts";
import { MAX_LIST } from "../model/record.ts";
import type { Store, TenantStore } from "../store/store.ts";
import { type ContentProof, proofName } from "../store/tenant-engine.ts";
import { definedFields } from "../util/defined-fields.ts";

/** Kinds of targets: accepts each key once, can be probed for what it has done, or neither. */
export type Kind = "keyed" | "probed" | "plain";

/** One line of production's ledger: a request to change something, as it arrived. */
export interface LedgerEntry {
  readonly kind: Kind;
  readonly key: string;
  readonly fence: number;
  /** Of the bytes that arrived: the input in canonical form. */
  readonly inputSha256: string;
  /** False for what the target refused: a key that it has seen, or a fence older than one it has seen. */
  readonly applied: boolean;
  /** Milliseconds since 1970, by production's own clock. */
  readonly at: number;
}

/** An answer that a caller received, from the caller's own history. */
export type Told =
  | { readonly operationId: string; readonly answer: "done" | "failed" | "unknown" }
  /** Waiting for a person, or a person's decision. */
  | { readonly decisionId: string; readonly answer: "pending" | "approved" | "rejected" };

/** Everything of one tenant that can be compared after a run or, in a simulation, during it. */
export interface RunEvidence {
  readonly tenant: string;
  readonly ledger: readonly LedgerEntry[];
  readonly trail: readonly AuditEntry[];
  /** How the audit log proves contents; undefined when the store has no key for it. */
  readonly contentProof: ContentProof | undefined;
  readonly decisions: readonly Decision[];
  /** What reviewers were shown. */
  readonly previews: readonly Preview[];
  readonly operations: readonly Operation[];
  readonly interactions: readonly Interaction[];
  readonly told: readonly Told[];
  /** Ids of calls with an idempotency key, without duplicates. However often it was requested, each is one call. */
  readonly keyed?: readonly string[];
  /** Faults have stopped and recovery has finished: only then must everything have ended. */
  readonly isAtRest: boolean;
  /** Whether a tool may run without asking a person. Omitted: unknown, and not checked. */
  readonly mayRunAlone?: (tool: string) => boolean;
  /** How far production's clock may be behind the store's; 0 when they are the same. */
  readonly clockSkewMs?: number;
}

/** One of I1 to I30 of the threat model, as far as evidence can show a violation. */
export interface Invariant {
  readonly id: `I${number}`;
  readonly text: string;
  /** All violations, as sentences that name the record. */
  check(evidence: RunEvidence): readonly string[];
}

/** What the store does not know. The ledger may be of all tenants: only lines of this one are used. */
export type FromOutside = Pick<
  RunEvidence,
  "ledger" | "told" | "keyed" | "isAtRest" | "mayRunAlone" | "clockSkewMs"
>;

/** Reads everything about one tenant, page by page. */
export function collectEvidence(
  store: Store,
  tenant: string,
  outside: FromOutside,
): Promise<RunEvidence> {
  return followEvidence(store, tenant).read(outside);
}

/** Reads one tenant repeatedly: after the first time only new audit entries and the records they touched. */
export interface EvidenceReader {
  /** Throws when concurrent writes never allow a consistent read. */
  read(outside: FromOutside): Promise<RunEvidence>;
}

/** Attempts at a read without a write in between. */
const MOST_TRIES = 50;

export function followEvidence(store: Store, tenant: string): EvidenceReader {
  const bound = store.tenant(tenant);
  const trail: AuditEntry[] = [];
  const operations = new Map<string, readonly Operation[]>();
  const previews = new Map<string, Preview>();

  async function readOnce(): Promise<Omit<RunEvidence, keyof FromOutside>> {
    const news = await readTrail(bound, trail.at(-1)?.seq ?? 0);
    const touched = news.filter(({ type }) => type.startsWith("operation."));
    for (const session of new Set(touched.map((entry) => entry.session))) {
      operations.set(session, await listOperations(bound.operations, { sessionId: session }));
    }
    // Only after the records they touched were read, so that an interrupted read is repeated.
    trail.push(...news);
    const decisions = await readDecisions(bound);
    for (const { id } of decisions) {
      const shown = previews.has(id) ? undefined : await bound.interactions.shown(id);
      // A preview is stored once and never changed.
      if (shown !== undefined) previews.set(id, shown.preview);
    }
    return {
      tenant,
      trail: [...trail],
      contentProof: await bound.contentProof(),
      decisions,
      previews: [...previews.values()],
      operations: [...operations.values()].flat(),
      interactions: await readInteractions(bound),
    };
  }

  return {
    async read(outside) {
      for (let tries = 0; tries < MOST_TRIES; tries += 1) {
        const inside = await readOnce();
        // Records are read after the log: after a write in between they may be ahead of it.
        if ((await bound.audit.head()).seq !== (trail.at(-1)?.seq ?? 0)) continue;
        const ledger = outside.ledger.filter((one) => operationIdOf(one, tenant) !== undefined);
        return { ...outside, ...inside, ledger };
      }
      throw new Error(`${tenant} is written faster than it can be read`);
    },
  };
}

function readTrail({ audit }: TenantStore, from: number): Promise<readonly AuditEntry[]> {
  return pages((last?: AuditEntry) => audit.read({ after: last?.seq ?? from, limit: MAX_LIST }));
}

function readDecisions({ decisions }: TenantStore): Promise<readonly Decision[]> {
  return pages((last?: Decision) =>
    decisions.list({ limit: MAX_LIST, ...definedFields({ after: last?.id }) }),
  );
}

function readInteractions({ interactions }: TenantStore): Promise<readonly Interaction[]> {
  return pages((last?: Interaction) =>
    interactions.list({ limit: MAX_LIST, ...definedFields({ after: last?.ord }) }),
  );
}

async function pages<Item>(
  read: (last?: Item) => Promise<readonly Item[]>,
): Promise<readonly Item[]> {
  const all: Item[] = [];
  for (;;) {
    const page = await read(all.at(-1));
    all.push(...page);
    if (page.length < MAX_LIST) return all;
  }
}

/** An audit entry with its data parsed; empty where it was erased. */
export interface TrailLine extends Pick<AuditEntry, "seq" | "at" | "type" | "subject" | "actor"> {
  readonly data: Readonly<Record<string, unknown>>;
  readonly isErased: boolean;
}

/** The evidence, indexed by id. */
export interface EvidenceIndex {
  readonly lines: readonly TrailLine[];
  /** Entries of the kill switch. */
  readonly turns: readonly TrailLine[];
  linesOf(subject: string): readonly TrailLine[];
  operation(id: string): Operation | undefined;
  decision(id: string): Decision | undefined;
  preview(decisionId: string): Preview | undefined;
  interaction(id: string): Interaction | undefined;
  /** The operation that an effect belongs to, by its key. */
  behind(effect: LedgerEntry): Operation | undefined;
  effectsOf(operationId: string): readonly LedgerEntry[];
  /** The operations of a decision, in no order. */
  operationsOf(decisionId: string): readonly Operation[];
  /** All attempts to undo an operation. */
  undosOf(operationId: string): readonly Operation[];
  /** The calls of a decision; undefined for one that was not staged as calls. */
  calls(decision: Decision): readonly PlannedCall[] | undefined;
  /** The starts of attempts, in order: only a stored one may act. */
  begins(operationId: string): readonly TrailLine[];
}

/** Entries that start an attempt, each with its own fence. */
export const BEGINS: readonly string[] = [
  "operation.started",
  "operation.taken_over",
  "operation.reopened",
  "operation.attempted",
];

const looks = new WeakMap<RunEvidence, EvidenceIndex>();

/** Created once for all invariants of the same evidence. */
export function lookAt(evidence: RunEvidence): EvidenceIndex {
  const known = looks.get(evidence);
  if (known !== undefined) return known;
  const made = makeLook(evidence);
  looks.set(evidence, made);
  return made;
}

/**
 * Whether an entry proves this content: by its proof or, in entries of earlier versions, by its plain hash. Undefined when it
 * has neither, or was erased. False for a proof that cannot be checked.
 */
export function tellsOf(
  line: Pick<TrailLine, "subject" | "data"> | undefined,
  field: string,
  sha256: string,
  { contentProof }: RunEvidence,
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
export function operationIdOf({ key }: LedgerEntry, tenant: string): string | undefined {
  return key.startsWith(`${tenant}/`) ? key.slice(tenant.length + 1) : undefined;
}

function makeLook(evidence: RunEvidence): EvidenceIndex {
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

function lineOf({ seq, at, type, subject, actor, data }: AuditEntry): TrailLine {
  return { seq, at, type, subject, actor, data: dataOf(data), isErased: data === null };
}

/** Unreadable data is reported by I17: it does not match its hash. */
function dataOf(data: string | null): TrailLine["data"] {
  try {
    const read: unknown = JSON.parse(data ?? "{}");
    return typeof read === "object" && read !== null ? (read as TrailLine["data"]) : {};
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

// The states of each record according to the audit log, in order.

/** One transition in the audit log. `from` is the state that the entry itself names, if it does. */
export interface Move {
  readonly seq: number;
  readonly at: string;
  readonly from: string | undefined;
  readonly to: string;
  readonly type: string;
}

/** Undefined where an entry was erased. */
export function decisionMoves(id: string, look: EvidenceIndex): readonly Move[] | undefined {
  const own = look.linesOf(id).filter(({ type }) => DECISION_TYPES.includes(type));
  if (own.some(({ isErased }) => isErased)) return undefined;
  return own.map(({ seq, at, type, data }) => {
    const from = typeof data["from"] === "string" ? data["from"] : undefined;
    return { seq, at, type, to: String(data["to"]), from };
  });
}

const DECISION_TYPES = [
  "decision.staged",
  "decision.reviewed",
  "decision.executed",
  "decision.failed",
];

/** The state a decision was in when the entry with this number was written. */
export function stateBefore(id: string, seq: number, look: EvidenceIndex): string {
  const moves = decisionMoves(id, look);
  if (moves === undefined) return "approved";
  return moves.filter((move) => move.seq < seq).at(-1)?.to ?? "not staged yet";
}

/** Whether everything was stopped when the entry with this number was written. */
export function isStopped(seq: number, look: EvidenceIndex): boolean {
  const turn = look.turns.findLast((line) => line.seq < seq);
  return turn?.type === "switch.stopped";
}

/** The status after each entry of an operation, and those allowed before it. */
export const OPERATION_EVENTS: Readonly<
  Record<string, { readonly to: string; readonly from: readonly string[] }>
> = {
  "operation.started": { to: "started", from: ["nothing"] },
  "operation.renewed": { to: "started", from: ["started"] },
  "operation.taken_over": { to: "started", from: ["started"] },
  "operation.attempted": { to: "started", from: ["started"] },
  "operation.reopened": { to: "started", from: ["unknown", "returned"] },
  "operation.returned": { to: "returned", from: comesFrom("returned") },
  "operation.succeeded": { to: "success", from: comesFrom("success") },
  "operation.failed": { to: "failed", from: comesFrom("failed") },
  "operation.lost": { to: "unknown", from: comesFrom("unknown") },
  "operation.brought_back": { to: "success", from: ["success"] },
  "operation.undone": { to: "rolled_back", from: comesFrom("rolled_back") },
};

function comesFrom(to: string): readonly string[] {
  return Object.entries(OPERATION_MOVES)
    .filter(([, targets]) => (targets as readonly string[]).includes(to))
    .map(([from]) => from);
}

export function operationLines(id: string, look: EvidenceIndex): readonly TrailLine[] {
  return look.linesOf(id).filter(({ type }) => type in OPERATION_EVENTS);
}

/** Entries that close a question; the outcome is in the data. */
const CLOSINGS: readonly string[] = [
  "interaction.answered",
  "interaction.superseded",
  "interaction.expired",
  "interaction.canceled",
];

export function closingsOf(id: string, look: EvidenceIndex): readonly TrailLine[] {
  return look.linesOf(id).filter(({ type }) => CLOSINGS.includes(type));
}

export function outcomeStatus(outcome: unknown): string | undefined {
  return typeof outcome === "string" && outcome in INTERACTION_OUTCOMES
    ? INTERACTION_OUTCOMES[outcome as keyof typeof INTERACTION_OUTCOMES]
    : undefined;
}

/** Whether the table has this transition; the first state has no predecessor. */
export function isMove(from: string | undefined, to: string): boolean {
  if (from === undefined) return to === "pending_tech";
  const targets: readonly string[] = MOVES[from as keyof typeof MOVES] ?? [];
  return targets.includes(to);
}
