import { z } from "zod";
import type { CallAnswer, CallRequest } from "../../model/call.ts";
import { FINDING_SEVERITIES } from "../../model/finding.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { json, list, name } from "./common.ts";

export const callRequest = z.strictObject({
  callId: name,
  tool: name,
  /** JSON text as the model wrote it, or a value. */
  input: json,
  messageId: name.optional(),
  turn: z.int().min(0).optional(),
  key: name.optional(),
});

export const finding = z.object({
  severity: z.enum(FINDING_SEVERITIES),
  policy: z.string(),
  message: z.string(),
});

export const recordedUndo = z.object({
  tool: z.string(),
  input: json,
  description: z.string(),
  irreversible: z.boolean(),
  manualGuide: z.string(),
  versionBefore: z.string().optional(),
  alsoChanged: list(z.object({ id: z.string(), version: z.string() })).optional(),
});

/** The result of a call. A tool's `data` is an object of the program and is not sent. */
export const callAnswer = z.discriminatedUnion("answer", [
  z.object({
    answer: z.literal("done"),
    text: z.string(),
    operationId: z.string(),
    undo: recordedUndo.optional(),
    truncated: z.boolean(),
    storedPath: z.string(),
  }),
  z.object({
    answer: z.literal("pending"),
    text: z.string(),
    decisionId: z.string(),
    interactionId: z.string(),
  }),
  z.object({ answer: z.literal("denied"), text: z.string(), findings: list(finding) }),
  z.object({ answer: z.literal("failed"), text: z.string(), operationId: z.string().optional() }),
  z.object({
    answer: z.literal("unknown"),
    text: z.string(),
    operationId: z.string(),
    interactionId: z.string().optional(),
  }),
]);

export type WireCallAnswer = z.output<typeof callAnswer>;

export function wireCallAnswer(answer: CallAnswer): WireCallAnswer {
  if (!("data" in answer)) return answer;
  const { data, ...rest } = answer;
  return rest;
}

/** The request as the gate takes it. */
export function callRequestOf(request: z.output<typeof callRequest>): CallRequest {
  return definedFields(request);
}
