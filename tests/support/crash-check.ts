// Compares what production has seen, what the store says and what the trail tells, after everything has come to rest.

import type { AuditEntry } from "../../src/model/audit-entry.ts";
import type { Decision } from "../../src/model/decision.ts";
import type { Operation } from "../../src/model/operation.ts";
import type { Store, TenantStore } from "../../src/store/store.ts";
import { type Case, type HistoryLine, TENANT } from "./crash-child.ts";
import type { LedgerLine } from "./crash-world.ts";

/** What really happened, to be reported next to the zeros. */
export interface Counts {
  effects: number;
  repeatedKeys: number;
  takenOver: number;
  executed: number;
  failed: number;
  compensated: number;
  unknown: number;
  leftPending: number;
  acknowledged: number;
}

export interface Evidence {
  readonly cases: readonly Case[];
  readonly store: Store;
  readonly ledger: readonly LedgerLine[];
  readonly history: readonly HistoryLine[];
}

interface Scene {
  readonly one: Case;
  readonly decisions: readonly Decision[];
  readonly operations: readonly Operation[];
  readonly ledger: readonly LedgerLine[];
  readonly history: readonly HistoryLine[];
  readonly trail: readonly AuditEntry[];
  readonly isShown: boolean;
  readonly say: (problem: string) => void;
}

/** Every violation as a sentence that names its case and its invariant. */
export async function checkCases(
  { cases, store, ledger, history }: Evidence,
  counts: Counts,
  /** `killed`: nobody has recovered yet, so only what was acknowledged can be asked for. */
  moment: "killed" | "recovered" = "recovered",
): Promise<readonly string[]> {
  const problems: string[] = [];
  const tenant = store.tenant(TENANT);
  const trail = bySession(await readTrail(tenant));
  for (const one of cases) {
    const decisions = await tenant.decisions.listBySession(one.id);
    const shown = await Promise.all(decisions.map(({ id }) => tenant.approvals.shown(id)));
    const scene: Scene = {
      one,
      decisions,
      operations: await tenant.operations.listBySession(one.id),
      ledger: ledger.filter(({ run }) => run === one.id),
      history: history.filter(({ run }) => run === one.id),
      trail: trail.get(one.id) ?? [],
      isShown: shown.some((preview) => preview !== undefined),
      say: (problem) => problems.push(`${one.id} (${one.kind}, ${one.crashAt}): ${problem}`),
    };
    if (moment === "killed") {
      checkAcknowledged(scene, { ...counts });
      continue;
    }
    checkEffects(scene);
    checkOperations(scene);
    checkDecisions(scene, counts);
    checkTrail(scene);
    checkAcknowledged(scene, counts);
    count(scene, counts);
  }
  const strangers = ledger.filter(({ run }) => !cases.some(({ id }) => id === run));
  if (strangers.length > 0) problems.push(`${strangers.length} effects of nobody`);
  return problems;
}

/** T8, I5, I7, I28: at most one effect of each step and of each undo; none without an intent before it. */
function checkEffects({ one, ledger, operations, trail, say }: Scene): void {
  const times = new Map<string, number>();
  for (const line of ledger) {
    const what = `${line.undo ? "undo of " : ""}step ${line.step}`;
    // A keyed target that took a second call for the first is as it should be; a plain one must not even be asked twice.
    if (line.applied || one.kind === "plain") times.set(what, (times.get(what) ?? 0) + 1);
    const operation = operations.find(({ id }) => line.key === `${TENANT}/${id}`);
    if (operation === undefined) {
      say(`I5 ${what} happened without an operation`);
      continue;
    }
    const begins = trail.filter(
      ({ type, subject }) =>
        subject === operation.id &&
        (type === "operation.started" || type === "operation.taken_over"),
    );
    const intent = begins.find((entry) => dataOf(entry)["fence"] === line.fence);
    if (intent === undefined || Date.parse(intent.at) > line.at) {
      say(`I5 ${what} happened under fence ${line.fence} before the intent was stored`);
    }
    if (dataOf(begins[0])["input_sha256"] !== line.inputSha256) {
      say(`I2 ${what} happened with other bytes than were stored`);
    }
  }
  for (const [what, number] of times) {
    if (number > 1) say(`T8 ${what} took effect ${number} times`);
  }
}

/** I6, I14, T9: every operation has come to an end, one at most takes back another, and production saw the same. */
function checkOperations({ one, ledger, operations, say }: Scene): void {
  // Also where the first never reached production: nobody knew that, so nobody may have tried again.
  const tries = operations.filter(({ undoOf, status }) => undoOf !== "" && status !== "failed");
  for (const [id, all] of Map.groupBy(tries, ({ undoOf }) => undoOf)) {
    if (all.length > 1) say(`T9 ${all.length} operations take ${id} back`);
  }
  for (const { id, status } of operations) {
    const happened = ledger.some(({ key, applied }) => applied && key === `${TENANT}/${id}`);
    if (status === "started") say(`I14 ${id} is still open`);
    if ((status === "success" || status === "rolled_back") && !happened) {
      say(`I6 ${id} is ${status}, but production knows nothing of it`);
    }
    if (status === "failed" && happened) say(`${id} is failed, but it happened`);
    if (status === "unknown" && one.kind !== "plain" && one.fault !== "die") {
      say(`${id} is unknown, though its target could have been asked`);
    }
  }
}

/** I28: a decision ends executed, fully taken back, or plainly in need of somebody who looks. */
function checkDecisions({ one, decisions, operations, ledger, say }: Scene, counts: Counts): void {
  const done = (step: number, undo: boolean) =>
    ledger.some((line) => line.applied && line.step === step && line.undo === undo);
  const steps = Array.from({ length: one.steps }, (_, step) => step);
  for (const { id, state, executionError } of decisions) {
    const own = operations.filter(({ decisionId }) => decisionId === id);
    const undos = operations.filter(({ undoOf }) =>
      own.some((operation) => operation.id === undoOf),
    );
    const isFlagged = [...own, ...undos].some(({ status }) => status === "unknown");
    if (state === "executed") {
      if (one.failsLast) say("executed, though its last step was refused");
      if (!steps.every((step) => done(step, false))) say("executed, but a step is missing");
      if (steps.some((step) => done(step, true))) say("executed, but a step was taken back");
    } else if (state === "failed") {
      if (executionError === "") say("failed without a word");
      // What the done steps changed themselves must not look like a changed world to the rest.
      if (!one.failsLast) say(`failed, though production refused nothing: ${executionError}`);
      const isClean = steps.every((step) => done(step, false) === done(step, true));
      if (isClean) counts.compensated += 1;
      else if (!isFlagged) say("I28 failed, neither fully taken back nor flagged");
      else if (!executionError.includes("may or may not")) say("I28 failed without telling why");
    } else if (state === "approved") {
      if (!isFlagged) say("I14 still approved, and nothing is unknown");
    } else if (own.length > 0) {
      say(`I1 ${state}, but it was executed`);
    }
  }
}

/** I20: the last thing that the trail tells of each record is what the record says. */
function checkTrail({ decisions, operations, trail, say }: Scene): void {
  const last = (subject: string, types: Readonly<Record<string, string>>) =>
    trail.findLast((entry) => entry.subject === subject && entry.type in types);
  for (const { id, state } of decisions) {
    const moves = trail.filter(({ subject, data }) => subject === id && data?.includes('"to"'));
    if (dataOf(moves.at(-1))["to"] !== state) say(`I20 the trail does not say ${id} is ${state}`);
  }
  for (const { id, status } of operations) {
    const entry = last(id, STATUS_OF);
    if (entry === undefined || STATUS_OF[entry.type] !== status) {
      say(`I20 the trail says ${entry?.type} of ${id}, which is ${status}`);
    }
  }
}

const STATUS_OF: Readonly<Record<string, string>> = {
  "operation.started": "started",
  "operation.succeeded": "success",
  "operation.failed": "failed",
  "operation.lost": "unknown",
  "operation.undone": "rolled_back",
};

/** I6, I9: what a process was told is still so, and so is every write that had answered before the process was killed. */
function checkAcknowledged(scene: Scene, counts: Counts): void {
  const { decisions, operations, history, trail, isShown, say } = scene;
  for (const line of history) {
    if ("pending" in line) {
      counts.acknowledged += 1;
      if (!decisions.some(({ id }) => id === line.pending)) say(`I9 ${line.pending} is lost`);
    }
    for (const answer of "answers" in line ? line.answers : []) {
      counts.acknowledged += 1;
      const id = "operationId" in answer ? answer.operationId : undefined;
      const status = operations.find((operation) => operation.id === id)?.status ?? "none";
      if (!(ANSWERED[answer.answer] ?? []).includes(status)) {
        say(`I9 answered ${answer.answer}, but ${id} is ${status}: ${answer.text}`);
      }
    }
  }
  const times = (point: string) =>
    history.filter((line) => "point" in line && line.point === point).length;
  const told = (...types: string[]) => trail.filter(({ type }) => types.includes(type)).length;
  const least: readonly [string, number][] = [
    ["S1.after", decisions.length],
    ["S2a.after", told("decision.reviewed")],
    ["S3.after", isShown ? told("decision.previewed") : 0],
    ["S4.after", decisions.filter(({ state }) => !state.startsWith("pending")).length],
    ["S5.after", told("operation.started", "operation.taken_over")],
    ["S7.after", told("operation.succeeded", "operation.failed", "operation.lost")],
  ];
  for (const [point, stored] of least) {
    counts.acknowledged += times(point);
    if (times(point) > stored) say(`I9 came past ${point} ${times(point)} times, ${stored} stored`);
  }
}

const ANSWERED: Readonly<Record<string, readonly string[]>> = {
  done: ["success", "rolled_back"],
  // A step that production refused has an operation, a drift or a refusal of the store has none.
  failed: ["failed", "none"],
  // Nobody knew then; a recovery may have found out since.
  unknown: ["unknown", "success", "failed", "rolled_back"],
};

function count({ decisions, operations, ledger, trail }: Scene, counts: Counts): void {
  counts.effects += ledger.filter(({ applied }) => applied).length;
  counts.repeatedKeys += ledger.filter(({ applied }) => !applied).length;
  counts.takenOver += trail.filter(({ type }) => type === "operation.taken_over").length;
  counts.unknown += operations.filter(({ status }) => status === "unknown").length;
  for (const { state } of decisions) {
    if (state === "executed" || state === "failed") counts[state] += 1;
    if (state.startsWith("pending")) counts.leftPending += 1;
  }
}

function dataOf(entry: AuditEntry | undefined): Readonly<Record<string, unknown>> {
  return JSON.parse(entry?.data ?? "{}");
}

async function readTrail({ audit }: TenantStore): Promise<readonly AuditEntry[]> {
  const all: AuditEntry[] = [];
  for (;;) {
    const page = await audit.read({ after: all.at(-1)?.seq ?? 0, limit: 1_000 });
    if (page.length === 0) return all;
    all.push(...page);
  }
}

function bySession(trail: readonly AuditEntry[]): ReadonlyMap<string, readonly AuditEntry[]> {
  return Map.groupBy(trail, ({ session }) => session);
}
