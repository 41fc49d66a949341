import type { AuditEntry, ChainHead } from "../model/audit-entry.ts";
import { DECISIONS, type Decision } from "../model/decision.ts";
import { INTERACTIONS, type Interaction } from "../model/interaction.ts";
import { parseJson } from "../model/names.ts";
import { OPERATIONS, type Operation } from "../model/operation.ts";
import { fromIso } from "../util/clock.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import {
  type CallCount,
  type CallDocument,
  type CallFilter,
  type CallIndex,
  type CallOutcome,
  type CallPage,
  type CountBy,
  callWords,
  type IndexedCall,
} from "./call-index.ts";
import { decisionOf } from "./decisions.ts";
import { interactionOf } from "./interactions.ts";
import type { Redact, TenantEngine } from "./tenant-engine.ts";

/** What people ask about calls: find them by words and filters, and count what came of them. */
export interface CallBook {
  /** Newest first. Includes every change that was committed before it was asked. */
  find(filter: CallFilter, page: CallPage): Promise<readonly IndexedCall[]>;
  count(filter: CallFilter, by: CountBy): Promise<readonly CallCount[]>;
  /** How long people took to decide, the shortest first. */
  waits(filter: CallFilter): Promise<readonly number[]>;
}

export interface CallBookParts {
  readonly index: CallIndex;
  readonly redact: Redact;
  readonly head: () => Promise<ChainHead>;
  readonly entries: (range: { after: number; limit: number }) => Promise<readonly AuditEntry[]>;
}

const PART = 500;

/** The index of calls, brought up to date with the log before each answer. */
export function engineCalls(engine: TenantEngine, parts: CallBookParts): CallBook {
  const { index } = parts;
  let catching: Promise<void> | undefined;
  /** Callers at the same time share one look; one that comes later waits for the next. */
  const current = async () => {
    await catching;
    catching ??= catchUp(engine, parts).finally(() => {
      catching = undefined;
    });
    await catching;
  };
  return {
    async find(filter, page) {
      await current();
      return index.find(filter, page);
    },
    async count(filter, by) {
      await current();
      return index.count(filter, by);
    },
    async waits(filter) {
      await current();
      return index.waits(filter);
    },
  };
}

async function catchUp(engine: TenantEngine, parts: CallBookParts): Promise<void> {
  const { index, head, entries } = parts;
  const end = await head();
  let place = await index.place();
  if (place !== undefined && !(await isPartOf(place, parts))) {
    // Another history: the store was restored, or the index belongs to another one.
    await index.clear();
    place = undefined;
  }
  for (let after = place?.seq ?? 0; after < end.seq; ) {
    const part = await entries({ after, limit: PART });
    const last = part.at(-1);
    if (last === undefined) return;
    // The end first: what is read after it is at least that new.
    const { seq } = await head();
    const documents = await documentsOf(engine, part, parts.redact, seq);
    await index.put(documents, { seq: last.seq, hash: last.hash });
    after = last.seq;
  }
}

async function isPartOf(
  { seq, hash }: { readonly seq: number; readonly hash: string },
  { entries }: CallBookParts,
): Promise<boolean> {
  const [found] = await entries({ after: seq - 1, limit: 1 });
  return found?.seq === seq && found.hash === hash;
}

async function documentsOf(
  engine: TenantEngine,
  part: readonly AuditEntry[],
  redact: Redact,
  seq: number,
): Promise<readonly CallDocument[]> {
  const decisions = new Set<string>();
  const alone: Operation[] = [];
  const refusals: CallDocument[] = [];
  const operations = new Set<string>();
  for (const entry of part) {
    const noun = entry.type.split(".")[0];
    if (noun === "decision" || noun === "interaction") decisions.add(entry.subject);
    else if (noun === "operation") operations.add(entry.subject);
    else if (entry.type === "call.denied")
      refusals.push(refusalOf(engine.tenant, entry, redact, seq));
  }
  await Promise.all(
    [...operations].map(async (id) => {
      const row = await engine.get(OPERATIONS, id);
      if (row === undefined) return;
      const operation = OPERATIONS.read(row);
      // An undo is no call of an agent: the call that it undid says so.
      if (operation.undoOf !== "") return;
      if (operation.decisionId !== "") decisions.add(operation.decisionId);
      else alone.push(operation);
    }),
  );
  const decided = await Promise.all([...decisions].map((id) => decidedOf(engine, id, redact, seq)));
  return [
    ...refusals,
    ...alone.map((operation) => operationOf(engine.tenant, operation, redact, seq)),
    ...decided.flatMap((one) => one ?? []),
  ];
}

async function decidedOf(
  engine: TenantEngine,
  id: string,
  redact: Redact,
  seq: number,
): Promise<CallDocument | undefined> {
  const row = await engine.get(DECISIONS, id);
  // The id of a question that is about no decision.
  if (row === undefined) return undefined;
  const decision = decisionOf(row);
  const asked = await engine.get(INTERACTIONS, id);
  const question = asked === undefined ? undefined : interactionOf(asked);
  const where = { session_id: decision.sessionId, decision_id: id };
  const done = (await engine.find(OPERATIONS, { where, limit: 100 })).map(OPERATIONS.read);
  const inputs = callsOf(decision);
  const names = [...new Set(inputs.map(({ tool }) => tool))];
  const title = question?.pendingTool?.summary.split("\n").filter(isWords).join(" · ") ?? "";
  const outcome = outcomeOf(decision, question, done);
  const { requester, chain } = decision.metadata ?? {};
  const agent = Array.isArray(chain) ? String(chain[0] ?? "") : String(requester ?? "");
  const by = question?.answeredBy || (outcome === "refused" ? refuserOf(decision) : "");
  const reason =
    question?.reason ||
    decision.executionError ||
    (outcome === "refused"
      ? (decision.techVerdict.approved ? decision.bizVerdict : decision.techVerdict).reason
      : "");
  const isPersons =
    question !== undefined && question.status !== "open" && question.answeredBy !== "";
  return documentOf(engine.tenant, redact, {
    ...{ id, kind: "decision", at: decision.createdAt, sessionId: decision.sessionId },
    ...{ agent, tool: names.length === 1 ? (names[0] ?? "") : "bundle", outcome, by, reason, seq },
    title: title || names.join(", ") || decision.diff.sourceTool,
    waitMs: isPersons ? fromIso(question.updatedAt) - fromIso(question.createdAt) : null,
    searched: { inputs: inputs as unknown as JsonValue, outputs: done.map(({ output }) => output) },
  });
}

/** A summary that is JSON is no sentence. */
function isWords(line: string): boolean {
  return line !== "" && !line.startsWith("{");
}

function refuserOf({ techVerdict, bizVerdict }: Decision): string {
  return techVerdict.approved ? bizVerdict.validator : techVerdict.validator;
}

function outcomeOf(
  { state }: Decision,
  question: Interaction | undefined,
  done: readonly Operation[],
): CallOutcome {
  const ended = question?.outcome;
  switch (state) {
    case "pending_tech":
    case "pending_ml":
      return "waiting";
    case "approved":
      return done.some(({ status }) => status === "unknown") ? "unknown" : "approved";
    case "executed":
      return done.some(({ status }) => status === "rolled_back") ? "undone" : "ran";
    case "failed":
      if ((question?.supersededBy ?? "") !== "") return "replaced";
      return ended === "expired" ? "expired" : "failed";
    case "rejected_tech":
      return "refused";
    case "rejected_ml":
      if (ended === undefined) return "refused";
      return ended === "expired" ? "expired" : ended === "superseded" ? "replaced" : "rejected";
  }
}

const ALONE: Readonly<Record<Operation["status"], CallOutcome>> = {
  started: "approved",
  unknown: "unknown",
  success: "ran_alone",
  failed: "failed",
  rolled_back: "undone",
  returned: "failed",
};

function operationOf(
  tenant: string,
  operation: Operation,
  redact: Redact,
  seq: number,
): CallDocument {
  const { id, createdAt: at, sessionId, chain, tool, status, error, input, output } = operation;
  return documentOf(tenant, redact, {
    ...{ id, kind: "operation", at, sessionId, agent: chain[0] ?? "", tool, title: tool, seq },
    ...{ outcome: ALONE[status], by: "", reason: error, waitMs: null },
    searched: { inputs: read(input), outputs: [output] },
  });
}

function refusalOf(tenant: string, entry: AuditEntry, redact: Redact, seq: number): CallDocument {
  const data = entry.data === null ? {} : (read(entry.data) as JsonObject);
  const tool = String(data["tool"] ?? "");
  const findings = Array.isArray(data["findings"]) ? (data["findings"] as JsonObject[]) : [];
  const [first] = findings;
  return documentOf(tenant, redact, {
    ...{ id: `entry-${entry.seq}`, kind: "refusal", at: entry.at, sessionId: entry.session, seq },
    ...{ agent: entry.actor, tool, title: tool, outcome: "refused", waitMs: null },
    by: String(first?.["policy"] ?? data["policy"] ?? "gate"),
    reason: String(first?.["message"] ?? data["reason"] ?? ""),
    searched: { inputs: data, outputs: [] },
  });
}

interface Draft extends Omit<CallDocument, "words" | "kind"> {
  readonly kind: string;
  readonly searched: { readonly inputs: JsonValue; readonly outputs: readonly string[] };
}

const MOST_TEXT = 20_000;
const MOST_TITLE = 300;

/** Redacted before anything of it is stored: a secret cannot be found, and stands in no title or reason. */
function documentOf(tenant: string, redact: Redact, { searched, ...draft }: Draft): CallDocument {
  const { inputs, outputs } = searched;
  const { title, reason } = draft;
  const given = {
    title,
    reason,
    input: inputs,
    outputs: outputs.map((text) => text.slice(0, MOST_TEXT)),
  };
  const safe = redact(tenant, given as JsonObject);
  const words = callWords(
    [draft.id, draft.agent, draft.tool, draft.sessionId, draft.by, draft.outcome, textOf(safe)]
      .join(" ")
      .slice(0, 4 * MOST_TEXT),
  );
  return {
    ...(draft as Omit<CallDocument, "words">),
    title: textOf(safe["title"] ?? "")
      .slice(0, MOST_TITLE)
      .toWellFormed(),
    reason: textOf(safe["reason"] ?? "")
      .slice(0, MOST_TITLE)
      .toWellFormed(),
    words: words.join(" ").toWellFormed(),
  };
}

/** The texts of a value, without names of members. */
function textOf(value: JsonValue): string {
  if (typeof value !== "object" || value === null) return String(value);
  return Object.values(value)
    .map((member) => textOf(member as JsonValue))
    .join(" ");
}

interface IndexedInput {
  readonly tool: string;
  readonly input: JsonValue;
}

/** The calls of a decision; a payload of another platform is one call of its source. */
function callsOf({ diff }: Decision): readonly IndexedInput[] {
  const staged = { tool: diff.sourceTool, input: null };
  try {
    const action = parseJson(diff.raw) as { calls?: IndexedInput[] };
    return Array.isArray(action?.calls)
      ? action.calls.map(({ tool, input }) => ({ tool: String(tool), input }))
      : [staged];
  } catch {
    return [staged];
  }
}

function read(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}
