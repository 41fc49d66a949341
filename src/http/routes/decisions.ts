import { z } from "zod";
import { decodeProposal, targetsOf } from "../../gate/show.ts";
import { DECISION_STATES, DECISIONS, type Decision } from "../../model/decision.ts";
import { isDelegated } from "../../model/delegation.ts";
import { SallyportError } from "../../model/errors.ts";
import { OPERATIONS, type Operation } from "../../model/operation.ts";
import type { DecisionPage } from "../../store/decisions.ts";
import { PAYLOAD_TOOL } from "../../tools/builtin/payload.ts";
import type { ResolvedResource } from "../../tools/tool-call.ts";
import { fromIso } from "../../util/clock.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { isPlainJson } from "../../util/json.ts";
import { access, type Call, gateSession, jsonRoute, maySee, narrowed, notFound } from "../route.ts";
import {
  anyText,
  bytePage,
  bytesOf,
  callAnswer,
  cursorOf,
  DEFAULT_PAGE,
  fitting,
  idAfter,
  idCursor,
  instantText,
  json,
  jsonObject,
  list,
  name,
  pageOf,
  paging,
  placeOf,
  recordedUndo,
  texts,
  wireOf,
} from "../wire.ts";

const verdict = z.object({
  approved: z.boolean(),
  score: z.number(),
  reason: anyText,
  severity: z.enum(["", "warn", "block"]),
  ...texts("validator", "policyVersion"),
});

export const plannedCall = z.object({
  ...texts("tool", "definition"),
  input: json,
  workingDirectory: anyText,
  /** The resolved paths of its files and folders; omitted if it has none. */
  places: list(anyText).optional(),
  callId: anyText,
  turn: z.number(),
});

export const decision = z.object({
  ...wireOf(DECISIONS, ["id", "sessionId", "state"]).shape,
  sourceTool: anyText,
  /** Its calls; null for a payload staged by another platform, which only that can read. */
  calls: list(plannedCall).nullable(),
  /** The payload itself where it is not made of calls, as text if it is text. */
  raw: z.object({ text: anyText.nullable(), bytes: z.int(), base64: anyText }).nullable(),
  ...wireOf(
    DECISIONS,
    // biome-ignore format: a list
    [
      "metadata", "techVerdict", "bizVerdict", "machineVerdict", "executionProof", "executionError", "createdAt", "updatedAt",
    ],
    {
      metadata: jsonObject,
      techVerdict: verdict,
      bizVerdict: verdict,
      machineVerdict: verdict,
      executionProof: json.nullable(),
    },
  ).shape,
});

type WireDecision = z.output<typeof decision>;

/** What a call would touch, with links and relative paths resolved as they are now. */
const target = z.object({
  kind: z.enum(["file", "unresolved", "command", "url", "other"]),
  target: anyText,
  access: z.enum(["read", "write"]).optional(),
  /** Why it could not be resolved. */
  reason: anyText.optional(),
});

export const decisionInFull = decision.extend({
  /** For each call; null where its tool does not say. */
  targets: list(list(target).nullable()),
});

function wireTarget(resource: ResolvedResource): z.output<typeof target> {
  switch (resource.kind) {
    case "file":
      return { kind: "file", target: resource.resolved, access: resource.access };
    case "unresolved":
      return { ...resource, target: resource.path };
    case "command":
      return { kind: "command", target: resource.command };
    case "url":
      return { kind: "url", target: resource.url };
    case "other":
      return { kind: "other", target: resource.id, access: resource.access };
  }
}

export function wireDecision({ diff, ...record }: Decision): WireDecision {
  const calls = callsOf({ ...record, diff });
  const metadata = Object.entries(record.metadata).map(([key, value]) => [key, shown(value)]);
  return {
    ...record,
    sourceTool: diff.sourceTool,
    calls,
    raw: calls === null ? rawOf(diff.raw) : null,
    metadata: Object.fromEntries(metadata),
    executionProof: record.executionProof === undefined ? null : shown(record.executionProof),
  };
}

function callsOf(record: Decision): WireDecision["calls"] {
  try {
    return decodeProposal(record).calls;
  } catch {
    // Staged from outside: then the payload is shown as what it is.
    return null;
  }
}

function rawOf(raw: Uint8Array): WireDecision["raw"] {
  const base64 = Buffer.from(raw).toString("base64");
  return { text: textOf(raw), bytes: raw.byteLength, base64 };
}

function textOf(raw: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(raw);
  } catch {
    return null;
  }
}

/** Metadata and proofs may be any value; what JSON cannot represent is named, not converted. */
function shown(value: unknown) {
  return isPlainJson(value) ? value : `(not JSON: ${Object.prototype.toString.call(value)})`;
}

const state = z.enum(DECISION_STATES);

/** Each may hold a megabyte, so a page is read in parts. */
function decisionPage(
  read: (page: DecisionPage) => Promise<readonly Decision[]>,
  { cursor, limit = DEFAULT_PAGE }: { cursor?: string | undefined; limit?: number | undefined },
  { services }: Call,
) {
  return bytePage({
    limit,
    after: idAfter(cursor),
    timers: services.timers,
    read: (after, count) => read({ ...definedFields({ after }), limit: count }),
    place: ({ id }): string => id,
    cursor: idCursor,
    weigh: ({ diff }) => diff.raw.byteLength,
    show: wireDecision,
  });
}

export const decisionRoutes = {
  "decisions.list": jsonRoute({
    summary: "List decisions, oldest first.",
    ...access("read", "list"),
    input: z.strictObject({
      sessionId: name.optional(),
      state: z.array(state).max(7).optional(),
      /** Updated at this moment or later. */
      since: instantText.optional(),
      ...paging,
    }),
    answer: pageOf(decision),
    async handle({ sessionId, state: states, since, ...place }, call) {
      const session = await narrowed(call, sessionId);
      const query = definedFields({ sessionId: session, states, since });
      const read = (page: DecisionPage) => call.gate.decisions.list({ ...query, ...page });
      return decisionPage(read, place, call);
    },
  }),
  "decisions.stage": jsonRoute({
    summary:
      "Stage a payload that another platform carries out: both reviews, a person, then its executor.",
    ...access("propose", "none"),
    input: z.strictObject({
      sessionId: name,
      callId: name,
      /** The platform's tool that it is for. */
      source: z.string().min(1).max(200),
      /** Only the platform can read it. */
      payload: z.string().max(700_000),
      encoding: z.enum(["text", "base64"]),
      metadata: jsonObject.optional(),
    }),
    answer: callAnswer,
    keys: "passed",
    async handle({ sessionId, callId, metadata = {}, ...staged }, call) {
      if (call.gate.tools.get(PAYLOAD_TOOL) === undefined) {
        const hint = "This gate stages no payloads: register payloadTool() of sallyport/tools.";
        throw new SallyportError("not_found", { id: PAYLOAD_TOOL, hint });
      }
      if (!(await maySee(call, sessionId))) throw notFound(sessionId);
      const requestKey = call.key === "" ? undefined : call.key;
      const request = { callId, tool: PAYLOAD_TOOL, input: { ...staged, metadata } };
      const session = await gateSession(call, sessionId);
      return session.call(definedFields({ ...request, requestKey }));
    },
  }),
  "decisions.stuck": jsonRoute({
    summary: "List decisions that have been in a state for a given time, oldest first.",
    ...access("readAll", "list"),
    input: z.strictObject({ state, forAtLeastMs: z.int().min(0), ...paging }),
    answer: pageOf(decision),
    handle({ state: inState, forAtLeastMs, ...place }, call) {
      const read = (page: DecisionPage) =>
        call.gate.decisions.listStuck(inState, forAtLeastMs, page);
      return decisionPage(read, place, call);
    },
  }),
  "decisions.get": jsonRoute({
    summary: "Get a decision with its verdicts and what its calls would touch.",
    ...access("read", "decision"),
    input: z.strictObject({ id: name }),
    answer: decisionInFull,
    async handle({ id }, { gate }) {
      const record = await gate.decisions.get(id);
      const shown = wireDecision(record);
      // A payload staged by another platform has no calls.
      const targets = shown.calls === null ? [] : await targetsOf(record, gate.tools);
      return { ...shown, targets: targets.map((resources) => resources?.map(wireTarget) ?? null) };
    },
  }),
};

export const operation = wireOf(
  OPERATIONS,
  // biome-ignore format: a list
  [
    "id", "sessionId", "messageId", "callId", "turn", "tool", "effect", "definitionHash", "input",
    "workingDirectory", "decisionId", "step", "undoOf", "executor", "status", "attempt", "fence", "leaseUntil",
    "output", "truncated", "storedPath", "undo", "error", "stateVersion", "createdAt", "updatedAt",
  ],
  { undo: recordedUndo.optional() },
);

const rollbackEntries = list(
  z.object(
    texts("operationId", "tool", "description", "reason", "guide", "undoOperationId", "decisionId"),
  ),
);

export const rollbackReport = z.object({
  failed: rollbackEntries,
  conflicted: rollbackEntries,
  unfinished: rollbackEntries,
  pending: rollbackEntries,
  irreversible: rollbackEntries,
  undone: rollbackEntries,
  skipped: rollbackEntries,
});

/** Each may hold a megabyte of output and as much for its undo. */
const CHUNK = 16;

/** How long a reviewer may undo what they approved; later it takes an operator. */
const OWN_UNDO_MS = 60 * 60_000;

/** Throws not_allowed. */
async function checkOwnYes({ id, decisionId, updatedAt }: Operation, call: Call): Promise<void> {
  const { gate, by, services } = call;
  const asked = decisionId === "" ? undefined : await gate.interactions.get(decisionId);
  const isOwn = asked?.votes.some((vote) => vote.by === by) === true;
  const isRecent = services.clock.now() - fromIso(updatedAt) <= OWN_UNDO_MS;
  if (isOwn && isRecent) return;
  const hint = isOwn
    ? "More than an hour has passed since it ran: ask an operator to undo it."
    : "You did not approve this call: ask an operator to undo it.";
  throw new SallyportError("not_allowed", { id, hint });
}

export const operationRoutes = {
  "operations.list": jsonRoute({
    summary: "List the operations of a session, newest first.",
    ...access("read", "list"),
    input: z.strictObject({ sessionId: name, ...paging }),
    answer: pageOf(operation),
    async handle({ sessionId, cursor, limit = DEFAULT_PAGE }, call) {
      await narrowed(call, sessionId);
      const items: Operation[] = [];
      let before = cursor === undefined ? undefined : placeOf(cursor);
      for (let sent = 0; ; ) {
        const part = { ...definedFields({ before }), limit: Math.min(CHUNK, limit - items.length) };
        let found = await call.gate.operations.listNewest(sessionId, part);
        const count = fitting(found.operations, sent);
        const isFull = count < found.operations.length;
        // Only the store knows the place of each, so a shorter part is asked for again.
        if (isFull && count > 0) {
          found = await call.gate.operations.listNewest(sessionId, { ...part, limit: count });
        }
        if (count > 0 || !isFull) {
          items.push(...found.operations);
          sent += bytesOf(found.operations);
          before = found.next;
        }
        if (isFull || before === undefined || items.length >= limit) break;
      }
      return { items, next: before === undefined ? null : cursorOf(before) };
    },
  }),
  "operations.get": jsonRoute({
    summary: "Get an operation: intent, attempts, outcome, undo record.",
    ...access("read", "operation"),
    input: z.strictObject({ id: name }),
    answer: operation,
    handle: ({ id }, { gate }) => gate.operations.get(id),
  }),
  "operations.output": jsonRoute({
    summary:
      "Read what an operation put out, in parts: the whole, also where only its beginning is recorded.",
    ...access("read", "operation"),
    input: z.strictObject({
      id: name,
      /** In bytes. */
      offset: z.int().min(0).optional(),
      length: z.int().min(4).max(262_144).optional(),
    }),
    answer: z.object({ text: anyText, nextOffset: z.int(), totalBytes: z.int() }),
    handle: ({ id, ...range }, { gate }) => gate.outputOf(id, definedFields(range)),
  }),
  "operations.undo": jsonRoute({
    summary: "Undo one operation: an operator any, a reviewer one they approved in the last hour.",
    ...access("undoOwn", "operation"),
    input: z.strictObject({ id: name }),
    answer: rollbackReport,
    async handle({ id }, call) {
      const operation = await call.gate.operations.get(id);
      if (!call.identity.roles.includes("operator")) await checkOwnYes(operation, call);
      const { sessionId } = operation;
      if (isDelegated(sessionId)) {
        const [taken] = await call.gate.delegations.rollback(sessionId, call.by, { only: [id] });
        if (taken === undefined) throw notFound(id);
        return taken.report;
      }
      const opened = await gateSession(call, sessionId, "rollback");
      return opened.rollback(call.by, { operationId: id });
    },
  }),
};
