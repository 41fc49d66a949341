import { z } from "zod";
import { APPROVAL_OUTCOMES, type Approved, type BatchItem } from "../../gate/inbox.ts";
import {
  INTERACTION_OUTCOMES,
  INTERACTION_STATUSES,
  INTERACTION_TYPES,
  type InteractionOutcome,
} from "../../model/interaction.ts";
import { callAnswer, wireCallAnswer } from "./call.ts";
import { instant, json, jsonObject, list } from "./common.ts";

export const requirement = list(
  z.object({ name: z.string(), count: z.int(), from: list(z.string()).optional() }),
);

const OUTCOMES = Object.keys(INTERACTION_OUTCOMES) as [InteractionOutcome, ...InteractionOutcome[]];

export const interaction = z.object({
  id: z.string(),
  type: z.enum(INTERACTION_TYPES),
  status: z.enum(INTERACTION_STATUSES),
  sessionId: z.string(),
  callId: z.string(),
  displayText: z.string(),
  hash: z.string(),
  decisionId: z.string(),
  operationId: z.string(),
  chain: list(z.string()),
  choices: list(z.string()),
  pendingTool: z
    .object({ tool_name: z.string(), args_json: z.string(), summary: z.string() })
    .optional(),
  metadata: jsonObject,
  requires: requirement,
  votes: list(z.object({ by: z.string(), factor: z.string() })),
  remarks: list(z.object({ by: z.string(), text: z.string() })),
  waitsFor: z.enum(["people", "agent"]),
  assignedTo: z.string(),
  deadline: instant,
  escalation: z.object({ at: instant, to: z.string() }).optional(),
  escalated: z.boolean(),
  outcome: z.enum(OUTCOMES).optional(),
  answer: json.optional(),
  answeredBy: z.string(),
  reason: z.string(),
  supersededBy: z.string(),
  createdAt: instant,
  updatedAt: instant,
  version: z.int(),
  ord: z.int(),
  /** In lists: truncated fields and their sizes. Read them in full with `interactions.get`. */
  cut: list(z.object({ field: z.string(), bytes: z.int() })).optional(),
});

/** The state of an agent's question. */
export const questionAnswer = z.discriminatedUnion("answer", [
  z.object({ answer: z.literal("pending"), interactionId: z.string(), text: z.string() }),
  z.object({
    answer: z.literal("answered"),
    interactionId: z.string(),
    value: json,
    by: z.string(),
  }),
  z.object({
    answer: z.literal("unanswered"),
    interactionId: z.string(),
    outcome: z.enum(OUTCOMES).optional(),
    text: z.string(),
  }),
]);

/** What a confirmation is bound to. */
export const preview = z.object({
  decisionId: z.string(),
  tenant: z.string(),
  sessionId: z.string(),
  askers: list(z.string()),
  actionHash: z.string(),
  dryRun: json,
  stateVersion: json,
  safetyClass: z.string(),
  policyHash: z.string(),
  requires: requirement,
  expiresAt: instant,
  nonce: z.string(),
  epoch: z.string(),
});

export const approved = z.object({
  interaction,
  outcome: z.enum(APPROVAL_OUTCOMES),
  missing: requirement,
  answers: list(callAnswer),
});

export const edited = z.discriminatedUnion("edited", [
  z.object({ edited: z.literal(true), interaction, preview }),
  z.object({ edited: z.literal(false), text: z.string() }),
]);

export const batchItem = z.discriminatedUnion("outcome", [
  z.object({ id: z.string(), outcome: z.literal("approved"), approved }),
  z.object({ id: z.string(), outcome: z.literal("rejected") }),
  z.object({ id: z.string(), outcome: z.literal("refused"), code: z.string(), text: z.string() }),
]);

export function wireApproved(value: Approved): z.output<typeof approved> {
  return { ...value, answers: value.answers.map(wireCallAnswer) };
}

export function wireBatchItem(item: BatchItem): z.output<typeof batchItem> {
  return item.outcome === "approved" ? { ...item, approved: wireApproved(item.approved) } : item;
}
