// Compares what clients were told, what the store says, what the trail proves and what production has seen, at rest.

import { verifyStore } from "../../src/audit/verify.ts";
import { decodeProposal } from "../../src/gate/show.ts";
import type { DecisionId } from "../../src/model/decision.ts";
import type { CallAnswer, Operation } from "../../src/model/operation.ts";
import { MAX_LIST } from "../../src/model/record.ts";
import type { Store, TenantStore } from "../../src/store/store.ts";
import type { Wanted } from "./production/parts.ts";
import type { LedgerLine } from "./production/production.ts";

/** A thing that an agent asked for, and every answer it got, in order. */
export interface Asked extends Wanted {
  readonly session: string;
  /** The store may be away for longer than a lease: a call that is confirmed too late is not made, and says so. */
  readonly mayBeTooLate?: boolean;
  readonly told: CallAnswer["answer"][];
}

const ENDS = ["done", "failed", "rejected", "expired", "denied", "unknown", "pending"] as const;
type End = (typeof ENDS)[number];

/** The stored outcomes that fit an answer: no answer may be wrong, and only an unknown outcome may be settled later. */
const FITS: Readonly<Record<CallAnswer["answer"], readonly End[]>> = {
  done: ["done"],
  failed: ["failed"],
  denied: ["denied", "rejected", "expired"],
  pending: ["done", "failed", "rejected", "expired", "unknown", "pending"],
  unknown: ["done", "failed", "unknown"],
};

export interface Accounts {
  /** Everything that was answered, by how it ended; `lost` and `twice` must be 0. */
  readonly figures: Readonly<Record<End, number>> & {
    readonly proposed: number;
    readonly effects: number;
    readonly repeatedKeys: number;
    readonly lost: number;
    readonly twice: number;
    readonly violations: number;
  };
  readonly violations: readonly string[];
}

/** Closes the books of one tenant. Every violation is a sentence that names the thing and its invariant. */
export async function closeAccounts(
  store: Store,
  tenantName: string,
  asked: readonly Asked[],
  ledger: readonly LedgerLine[],
): Promise<Accounts> {
  const tenant = store.tenant(tenantName);
  const violations: string[] = [];
  const counts = { ...Object.fromEntries(ENDS.map((end) => [end, 0])) } as Record<End, number>;
  let [lost, twice, proposed] = [0, 0, 0];
  const effects = Map.groupBy(ledger, ({ id }) => id);
  const questions = await lostQuestions(tenant);
  const operations = await operationsOf(tenant, new Set(asked.map(({ session }) => session)));
  for (const one of asked) {
    const say = (text: string) => violations.push(`${one.lane} ${one.kind} ${one.id}: ${text}`);
    const lines = effects.get(one.id) ?? [];
    effects.delete(one.id);
    const own = operations.get(one.id) ?? [];
    const end = await endOf(one, own, tenant);
    if (end === undefined) {
      // Never begun is consistent unless a caller got another answer.
      if (one.told.length > 0) lost += 1;
      if (one.told.length > 0) say(`I9 told ${one.told.join(", ")}, but nothing is stored`);
      if (lines.length > 0) say("I5 it happened without an intent");
      continue;
    }
    if (end === "open") {
      say("I14 it has not come to an end");
      continue;
    }
    proposed += 1;
    counts[end] += 1;
    for (const told of one.told) {
      if (FITS[told].includes(end)) continue;
      lost += 1;
      say(`I6 I9 told ${told}, but it ended ${end} (${own[0]?.error})`);
    }
    const applied = lines.filter((line) => line.applied).length;
    // A plain target must not even be asked twice.
    if ((one.kind === "plain" ? lines.length : applied) > 1) {
      twice += 1;
      say(`I7 it happened ${lines.length} times`);
    }
    checkEffect(one, end, applied, own, questions, say);
  }
  for (const id of effects.keys()) violations.push(`I1 nobody asked for ${id}, but it happened`);
  const { problems } = await verifyStore(store);
  violations.push(...problems.map((problem) => `I17 ${JSON.stringify(problem)}`));
  const figures = {
    proposed,
    ...counts,
    effects: ledger.filter(({ applied }) => applied).length,
    repeatedKeys: ledger.filter(({ applied }) => !applied).length,
    lost,
    twice,
    violations: violations.length,
  };
  return { figures, violations };
}

function checkEffect(
  one: Asked,
  end: End,
  applied: number,
  own: readonly Operation[],
  questions: ReadonlySet<string>,
  say: (text: string) => void,
): void {
  if (end === "done" && applied === 0) say("I6 it is done, but production knows nothing of it");
  if (end !== "done" && end !== "unknown" && applied > 0) say(`it is ${end}, but it happened`);
  const isTooLate =
    one.mayBeTooLate === true && own[0]?.error.includes("confirmed the intent too late") === true;
  if (end === "failed" && one.mode !== "refuse" && !isTooLate) {
    say(`it failed, though production refused nothing: ${own[0]?.error ?? "never begun"}`);
  }
  if (end !== "unknown") return;
  if (one.kind !== "plain" && !isTooLate) {
    say(`it is unknown, though production could have been asked: ${own[0]?.error}`);
  }
  if (!own.some(({ id }) => questions.has(id))) say("I14 it is unknown, and nobody was asked");
}

/** Undefined when nothing of it is stored; `open` when a process should have continued it. */
async function endOf(
  one: Asked,
  own: readonly Operation[],
  { decisions, interactions }: TenantStore,
): Promise<End | "open" | undefined> {
  if (one.lane === "never") return one.told.length === 0 ? undefined : "denied";
  const decisionId = one.unkeyed
    ? (await decisionsOf(decisions, one.session, one.id))[0]
    : (await interactions.ofCall(one.session, one.id))?.decisionId;
  if (decisionId === undefined) return own.length === 0 ? undefined : endOfOperation(own[0]);
  const { state } = await decisions.get(decisionId);
  switch (state) {
    case "pending_tech":
      return "open";
    case "pending_ml":
      return "pending";
    case "rejected_tech":
    case "rejected_ml":
      return (await interactions.peek(decisionId))?.outcome === "expired" ? "expired" : "rejected";
    case "approved":
      return own.some(({ status }) => status === "unknown") ? "unknown" : "open";
    case "executed":
      return "done";
    case "failed":
      return "failed";
  }
}

/** Every decision about this call, also where it was asked for without a key. */
export async function decisionsOf(
  decisions: TenantStore["decisions"],
  sessionId: string,
  callId: string,
): Promise<readonly DecisionId[]> {
  const all = await decisions.list({ sessionId, limit: MAX_LIST });
  if (all.length >= MAX_LIST) throw new Error(`${sessionId} is too long to be looked at`);
  const own = all.filter((one) => decodeProposal(one).calls.some((call) => call.callId === callId));
  return own.map(({ id }) => id);
}

function endOfOperation(operation: Operation | undefined): End | "open" {
  switch (operation?.status) {
    case "success":
    case "rolled_back":
      return "done";
    case "failed":
      return "failed";
    case "unknown":
      return "unknown";
    default:
      return "open";
  }
}

/** By the thing they do: the call id is the thing's id. */
async function operationsOf(
  { operations }: TenantStore,
  sessions: ReadonlySet<string>,
): Promise<ReadonlyMap<string, readonly Operation[]>> {
  const all: Operation[] = [];
  for (const session of sessions) {
    const some = await operations.listBySession(session);
    if (some.length >= MAX_LIST) throw new Error(`${session} is too long to be looked at`);
    all.push(...some);
  }
  return Map.groupBy(all, ({ callId }) => callId);
}

/** The operations that a person is asked about. */
async function lostQuestions({ interactions }: TenantStore): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (let after = 0; ; ) {
    const page = await interactions.list({ status: "open", after, limit: MAX_LIST });
    for (const { type, operationId, ord } of page) {
      if (type === "connection_lost") found.add(operationId);
      after = ord;
    }
    if (page.length < MAX_LIST) return found;
  }
}
