import { z } from "zod";
import { DECISION_STATES, type Decision } from "../../model/decision.ts";
import { decodeAction } from "../../port/action.ts";
import type { ResolvedResource } from "../../tools/resolve-resources.ts";
import { isPlainJson } from "../../util/plain-json.ts";
import { instant, json, jsonObject, list } from "./common.ts";

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
  /** Where the gate found the files and folders that it names; left out when it names none. */
  places: list(z.string()).optional(),
  callId: z.string(),
  turn: z.number(),
});

export const decision = z.object({
  id: z.string(),
  sessionId: z.string(),
  state: z.enum(DECISION_STATES),
  sourceTool: z.string(),
  /** The calls it is made of; null for a payload that somebody else staged, which only they can read. */
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

export function wireTargets(
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

export function wireDecision(record: Decision): WireDecision {
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
    return decodeAction(record);
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

/** Metadata and proofs may be anything a program can keep; what JSON cannot say is named instead of being guessed at. */
function shown(value: unknown) {
  return isPlainJson(value) ? value : `(not JSON: ${Object.prototype.toString.call(value)})`;
}
