import { z } from "zod";
import type { Permit, PermitOutcome } from "../../gate/permit.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { access, jsonRoute } from "../route.ts";
import { anyText, instantText, json, list, name, texts } from "../wire.ts";
import { decision, plannedCall, wireDecision } from "./decisions.ts";

export const permit = z.object({
  ...texts("id", "decisionId", "sessionId", "idempotencyKey", "hash"),
  fence: z.int(),
  leaseUntil: instantText,
  /** The exact bytes that were approved. */
  base64: anyText,
  /** The same as calls; null for a payload staged by another platform. */
  calls: list(plannedCall).nullable(),
});

const held = { id: name, fence: z.int().min(1) };
export const leaseMs = z.int().min(1_000).max(3_600_000).optional();

export function wirePermit({ raw, calls, ...taken }: Permit): z.output<typeof permit> {
  const base64 = Buffer.from(raw).toString("base64");
  return { ...taken, base64, calls: calls === undefined ? null : [...calls] };
}

/** What came of a permit, as an executor sends it. */
export const outcome = {
  outcome: z.enum(["executed", "failed"]),
  proof: json.optional(),
  output: z.string().max(1_000_000).optional(),
  reason: z.string().max(10_000).optional(),
};
type SentOutcome = z.output<z.ZodObject<typeof outcome>>;

export function outcomeIn({ outcome, proof, output, reason = "" }: SentOutcome): PermitOutcome {
  return outcome === "failed"
    ? { outcome, reason }
    : { outcome, ...definedFields({ proof, output }) };
}

/** The executor is the subject of the token. */
export const permitRoutes = {
  "permits.waiting": jsonRoute({
    summary: "List approved decisions for external executors, oldest first.",
    ...access("findWork", "none"),
    input: z.strictObject({ after: name.optional(), limit: z.int().min(1).max(100).optional() }),
    answer: z.object({
      items: list(z.object({ ...texts("id", "sessionId", "sourceTool"), updatedAt: instantText })),
    }),
    async handle({ limit = 100, ...page }, { gate }) {
      const found = await gate.permits.waiting({ ...definedFields(page), limit });
      const items = found.map(({ id, sessionId, diff: { sourceTool }, updatedAt }) => {
        return { id, sessionId, sourceTool, updatedAt };
      });
      return { items };
    },
  }),
  "permits.take": jsonRoute({
    summary: "Take the permit to execute an approved decision outside, once.",
    ...access("execute", "decision"),
    input: z.strictObject({ id: name, hash: name.optional(), leaseMs }),
    answer: permit,
    status: 201,
    async handle({ id, ...how }, { gate, identity }) {
      const by = identity.subject;
      return wirePermit(await gate.permits.take(id, { ...definedFields(how), by }));
    },
  }),
  "permits.renew": jsonRoute({
    summary: "Renew a permit while the work continues.",
    ...access("execute", "operation"),
    input: z.strictObject({ ...held, leaseMs }),
    answer: z.object({ leaseUntil: instantText, stopped: z.boolean() }),
    handle: ({ id, ...how }, { gate, identity }) =>
      gate.permits.renew(id, { ...definedFields(how), by: identity.subject }),
  }),
  "permits.report": jsonRoute({
    summary: "Report what came of a permit: executed with proof, or failed with the reason.",
    ...access("execute", "operation"),
    input: z.strictObject({ ...held, ...outcome }),
    answer: decision,
    async handle({ id, fence, ...sent }, { gate, identity }) {
      const own = { by: identity.subject, fence };
      return wireDecision(await gate.permits.report(id, { ...own, ...outcomeIn(sent) }));
    },
  }),
  "permits.giveBack": jsonRoute({
    summary: "Give back a permit whose work was not started; another executor may take it.",
    ...access("execute", "operation"),
    input: z.strictObject(held),
    answer: z.object({ id: anyText }),
    async handle({ id, fence }, { gate, identity }) {
      await gate.permits.giveBack(id, { by: identity.subject, fence });
      return { id };
    },
  }),
};
