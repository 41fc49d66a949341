import { z } from "zod";
import { decodeProposal, targetsOf } from "../../gate/action.ts";
import { DECISION_STATES, type Decision } from "../../model/decision.ts";
import type { ResolvedResource } from "../../tools/resources.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { isPlainJson } from "../../util/json.ts";
import { jsonRoute, RULES } from "../route.ts";
import { narrowed } from "../session-book.ts";
import {
  DEFAULT_PAGE,
  fitting,
  idCursor,
  idOf,
  instant,
  json,
  jsonObject,
  list,
  name,
  pageOf,
  paging,
} from "../wire/common.ts";

const verdict = z.object({
  approved: z.boolean(),
  score: z.number(),
  reason: z.string(),
  severity: z.enum(["", "warn", "block"]),
  validator: z.string(),
  policyVersion: z.string(),
});

const plannedCall = z.object({
  tool: z.string(),
  definition: z.string(),
  input: json,
  workingDirectory: z.string(),
  /** The resolved paths of its files and folders; omitted if it has none. */
  places: list(z.string()).optional(),
  callId: z.string(),
  turn: z.number(),
});

const decision = z.object({
  id: z.string(),
  sessionId: z.string(),
  state: z.enum(DECISION_STATES),
  sourceTool: z.string(),
  /** Its calls; null for a payload staged by another platform, which only that can read. */
  calls: list(plannedCall).nullable(),
  /** The payload itself where it is not made of calls, as text if it is text. */
  raw: z.object({ text: z.string().nullable(), bytes: z.int(), base64: z.string() }).nullable(),
  metadata: jsonObject,
  techVerdict: verdict,
  bizVerdict: verdict,
  executionProof: json.nullable(),
  executionError: z.string(),
  createdAt: instant,
  updatedAt: instant,
});

export type WireDecision = z.output<typeof decision>;

/** What a call would touch, with links and relative paths resolved as they are now. */
const target = z.object({
  kind: z.enum(["file", "unresolved", "command", "url", "other"]),
  target: z.string(),
  access: z.enum(["read", "write"]).optional(),
  /** Why it could not be resolved. */
  reason: z.string().optional(),
});

export const decisionInFull = decision.extend({
  /** For each call; null where its tool does not tell. */
  targets: list(list(target).nullable()),
});

function wireTargets(
  targets: readonly (readonly ResolvedResource[] | undefined)[],
): z.output<typeof decisionInFull>["targets"] {
  return targets.map((resources) => resources?.map(wireTarget) ?? null);
}

function wireTarget(resource: ResolvedResource): z.output<typeof target> {
  switch (resource.kind) {
    case "file":
      return { kind: "file", target: resource.resolved, access: resource.access };
    case "unresolved": {
      const { path, access, reason } = resource;
      return { kind: "unresolved", target: path, access, reason };
    }
    case "command":
      return { kind: "command", target: resource.command };
    case "url":
      return { kind: "url", target: resource.url };
    case "other":
      return { kind: "other", target: resource.id, access: resource.access };
  }
}

function wireDecision(record: Decision): WireDecision {
  const { id, sessionId, state, diff, techVerdict, bizVerdict, executionError } = record;
  const calls = callsOf(record);
  return {
    id,
    sessionId,
    state,
    sourceTool: diff.sourceTool,
    calls,
    raw: calls === null ? rawOf(diff.raw) : null,
    metadata: Object.fromEntries(
      Object.entries(record.metadata).map(([key, value]) => [key, shown(value)]),
    ),
    techVerdict,
    bizVerdict,
    executionProof: record.executionProof === undefined ? null : shown(record.executionProof),
    executionError,
    createdAt: record.createdAt,
    updatedAt: record.updatedAt,
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

/** Reads one more than requested, to know whether there are more. */
function shownPage(found: readonly Decision[], limit: number) {
  const whole = found.slice(0, limit).map(wireDecision);
  const items = whole.slice(0, fitting(whole));
  const last = items.at(-1);
  return { items, next: found.length > items.length && last ? idCursor(last.id) : null };
}

export const decisionRoutes = {
  "decisions.list": jsonRoute({
    summary: "List decisions, oldest first.",
    rule: RULES.read,
    of: "list",
    input: z.strictObject({
      sessionId: name.optional(),
      state: z.array(state).max(7).optional(),
      /** Updated at this moment or later. */
      since: instant.optional(),
      ...paging,
    }),
    answer: pageOf(decision),
    async handle({ sessionId, state: states, since, cursor, limit = DEFAULT_PAGE }, call) {
      const session = await narrowed(call, sessionId);
      const found = await call.gate.decisions.list({
        ...definedFields({ sessionId: session, states, since, after: idAfter(cursor) }),
        limit: limit + 1,
      });
      return shownPage(found, limit);
    },
  }),
  "decisions.stuck": jsonRoute({
    summary: "List decisions that have been in a state for a given time, oldest first.",
    rule: RULES.readAll,
    of: "list",
    input: z.strictObject({ state, forAtLeastMs: z.int().min(0), ...paging }),
    answer: pageOf(decision),
    async handle({ state: inState, forAtLeastMs, cursor, limit = DEFAULT_PAGE }, { gate }) {
      const found = await gate.decisions.listStuck(inState, forAtLeastMs, {
        ...definedFields({ after: idAfter(cursor) }),
        limit: limit + 1,
      });
      return shownPage(found, limit);
    },
  }),
  "decisions.get": jsonRoute({
    summary: "Get a decision with its verdicts and what its calls would touch.",
    rule: RULES.read,
    of: "decision",
    input: z.strictObject({ id: name }),
    answer: decisionInFull,
    async handle({ id }, { gate }) {
      const record = await gate.decisions.get(id);
      const shown = wireDecision(record);
      // A payload staged by another platform has no calls.
      const targets = shown.calls === null ? [] : await targetsOf(record, gate.tools);
      return { ...shown, targets: wireTargets(targets) };
    },
  }),
};

function idAfter(cursor: string | undefined): string | undefined {
  return cursor === undefined ? undefined : idOf(cursor);
}
