import { z } from "zod";
import { APPROVAL_OUTCOMES, type Approved } from "../../gate/inbox.ts";
import { INTERACTION_STATUSES, type Interaction } from "../../model/interaction.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { encodeValue } from "../../util/value-codec.ts";
import { checkFresh, checkFreshToApprove } from "../authenticate.ts";
import { access, jsonRoute, narrowed } from "../route.ts";
import {
  anyText,
  bytePage,
  callAnswer,
  cursorOf,
  DEFAULT_PAGE,
  interaction,
  json,
  list,
  name,
  pageOf,
  paging,
  placeOf,
  preview,
  reason,
  remark,
  requirement,
  texts,
  wireAnswer,
} from "../wire.ts";

const approved = z.object({
  interaction,
  outcome: z.enum(APPROVAL_OUTCOMES),
  missing: requirement,
  answers: list(callAnswer),
});

const edited = z.discriminatedUnion("edited", [
  z.object({ edited: z.literal(true), interaction, preview }),
  z.object({ edited: z.literal(false), text: anyText }),
]);

const batchItem = z.discriminatedUnion("outcome", [
  z.object({ id: anyText, outcome: z.literal("approved"), approved }),
  z.object({ id: anyText, outcome: z.literal("rejected") }),
  z.object({ id: anyText, outcome: z.literal("refused"), ...texts("code", "text") }),
]);

/** With the pictures that its calls have made. */
function wireApproved(given: Approved): z.output<typeof approved> {
  return { ...given, answers: given.answers.map(wireAnswer) } as z.output<typeof approved>;
}

type Wire = z.output<typeof interaction>;
type Cut = NonNullable<Wire["cut"]>[number];

/** Longer texts are truncated in lists. */
const MOST_TEXT = 4_096;
/** Longer metadata, remarks and answers are omitted in lists. */
const MOST_JSON = 16 * 1024;

/**
 * A question as lists show it: `cut` names truncated fields and their sizes. Everything that says whether and by whom it may
 * be decided is present; read the full interaction with `interactions.get` before deciding.
 */
function headOf(whole: Interaction): Wire {
  const cut: Cut[] = [];
  const short = (field: string, value: string) => {
    if (value.length <= MOST_TEXT) return value;
    cut.push({ field, bytes: Buffer.byteLength(value) });
    return value.slice(0, MOST_TEXT).toWellFormed();
  };
  const fits = (field: string, value: unknown) => {
    const bytes = Buffer.byteLength(encodeValue(value as never));
    if (bytes > MOST_JSON) cut.push({ field, bytes });
    return bytes <= MOST_JSON;
  };
  const { pendingTool, answer } = whole;
  const head = {
    ...whole,
    displayText: short("displayText", whole.displayText),
    pendingTool: pendingTool && {
      ...pendingTool,
      args_json: short("pendingTool.args_json", pendingTool.args_json),
      summary: short("pendingTool.summary", pendingTool.summary),
    },
    metadata: fits("metadata", whole.metadata) ? whole.metadata : {},
    remarks: fits("remarks", whole.remarks) ? whole.remarks : [],
    answer: answer === undefined || fits("answer", answer) ? answer : undefined,
  };
  return cut.length === 0 ? head : { ...head, cut };
}

/** Approximate size; fields that are always short are not counted. */
function weightOf({ pendingTool, metadata, answer, remarks }: Interaction): number {
  const texts = (pendingTool?.args_json.length ?? 0) + (pendingTool?.summary.length ?? 0);
  return texts + encodeValue([metadata, answer ?? null, remarks] as never).length;
}

/** Common fields of a person's answer; the person comes from the token. */
const seen = { id: name, hash: z.string().max(128), reason: reason.optional() };

export const interactionRoutes = {
  "interactions.list": jsonRoute({
    summary: "List what waits for a person, oldest first. Large fields are truncated; see `cut`.",
    ...access("read", "list", "people"),
    input: z.strictObject({
      /** Open ones by default. */
      status: z.enum(INTERACTION_STATUSES).optional(),
      sessionId: name.optional(),
      assignedTo: name.optional(),
      ...paging,
    }),
    answer: pageOf(interaction),
    async handle({ status = "open", sessionId, assignedTo, cursor, limit = DEFAULT_PAGE }, call) {
      const session = await narrowed(call, sessionId);
      const query = definedFields({ status, sessionId: session, assignedTo });
      return bytePage({
        limit,
        after: placeOf(cursor),
        timers: call.services.timers,
        read: (after = 0, count) => call.gate.interactions.list({ ...query, after, limit: count }),
        place: ({ ord }) => ord,
        cursor: cursorOf,
        weigh: weightOf,
        show: headOf,
      });
    },
  }),
  "interactions.get": jsonRoute({
    summary: "Get an interaction and its outcome.",
    ...access("read", "interaction", "people"),
    input: z.strictObject({ id: name }),
    answer: interaction,
    handle: ({ id }, { gate }) => gate.interactions.get(id),
  }),
  "interactions.shown": jsonRoute({
    summary:
      "Get the preview of a confirmation: dry run, versions, safety class. Its hash is the interaction's.",
    ...access("readAll", "interaction", "people"),
    input: z.strictObject({ id: name }),
    answer: z.object({ preview: preview.nullable() }),
    async handle({ id }, { gate: { interactions } }) {
      const shown = await interactions.shown(id);
      // Throws not_found for an unknown id; the other types of interactions show nothing.
      if (shown === undefined) await interactions.get(id);
      return { preview: shown?.preview ?? null };
    },
  }),
  "interactions.answer": jsonRoute({
    summary: "Answer an agent's question.",
    ...access("decide", "interaction", "people"),
    input: z.strictObject({ ...seen, answer: json }),
    answer: interaction,
    handle: ({ id, ...given }, { gate, by }) =>
      gate.interactions.answer(id, { ...definedFields(given), by }),
  }),
  "interactions.approve": jsonRoute({
    summary:
      "Approve exactly what was shown. With the last required approval it is executed, once.",
    ...access("decide", "interaction", "people"),
    input: z.strictObject({ ...seen, factor: name.optional() }),
    answer: approved,
    async handle({ id, factor, ...given }, call) {
      await checkFreshToApprove([id], call);
      const yes = { ...definedFields({ ...given, factor }), by: call.by };
      return wireApproved(await call.gate.interactions.approve(id, yes));
    },
  }),
  "interactions.reject": jsonRoute({
    summary: "Reject a decision: nothing of it runs.",
    ...access("decide", "interaction", "people"),
    input: z.strictObject(seen),
    answer: interaction,
    handle: ({ id, ...given }, { gate, by }) =>
      gate.interactions.reject(id, { ...definedFields(given), by }),
  }),
  "interactions.edit": jsonRoute({
    summary: "Change the input of some calls. They are checked, reviewed and shown again.",
    ...access("decide", "interaction", "people"),
    input: z.strictObject({
      ...seen,
      /** By the place of the call, from 0. */
      inputs: z.record(z.string().regex(/^\d{1,3}$/), json),
    }),
    answer: edited,
    handle: ({ id, ...given }, { gate, by }) =>
      gate.interactions.edit(id, { ...definedFields(given), by }),
  }),
  "interactions.approveBatch": jsonRoute({
    summary:
      "Approve exactly the listed items, each with the hash that was seen. Those in `veto` are rejected.",
    ...access("decide", "list", "people"),
    input: z.strictObject({
      items: z
        .array(z.strictObject({ id: name, hash: z.string().max(128) }))
        .min(1)
        .max(500),
      veto: z.array(name).max(500).optional(),
      reason: reason.optional(),
    }),
    answer: z.object({ items: list(batchItem) }),
    async handle({ items, veto = [], reason: why }, call) {
      const yes = items.map(({ id }) => id).filter((id) => !veto.includes(id));
      await checkFreshToApprove(yes, call);
      const answer = definedFields({ by: call.by, veto, reason: why });
      const answered = await call.gate.interactions.approveAll(items, answer);
      return {
        items: answered.map((one) =>
          one.outcome === "approved" ? { ...one, approved: wireApproved(one.approved) } : one,
        ),
      };
    },
  }),
  "interactions.settle": jsonRoute({
    summary: "Report what happened to a call with an unknown outcome.",
    ...access("settle", "interaction", "people"),
    input: z.strictObject({
      ...seen,
      happened: z.boolean(),
      /** Its result, if it happened. */
      output: z.string().max(1_000_000).optional(),
      /** What the tool would have returned as data, when it happened: from it the tool makes its undo. */
      resultData: json.optional(),
      /** What to do if it did not happen. */
      otherwise: z.enum(["repeat", "give_up"]).optional(),
    }),
    answer: callAnswer,
    async handle({ id, happened, output, resultData, otherwise = "give_up", ...given }, call) {
      const { gate, by, signed, services } = call;
      if (!happened && otherwise === "repeat") checkFresh(signed, services);
      const answer = { ...definedFields(given), by };
      const found = happened
        ? { ...answer, happened, ...definedFields({ output, resultData }) }
        : { ...answer, happened, otherwise };
      return wireAnswer(await gate.interactions.settle(id, found));
    },
  }),
  "interactions.handOver": jsonRoute({
    summary: "Reassign a question to another person.",
    ...access("pass", "interaction", "people"),
    input: z.strictObject({ id: name, to: name, reason: reason.optional() }),
    answer: interaction,
    handle: ({ id, to, reason: why }, { gate, by }) =>
      gate.interactions.handOver(id, definedFields({ by, to, reason: why })),
  }),
  "interactions.askBack": jsonRoute({
    summary: "Ask the agent for more before deciding. The question stays open.",
    ...access("decide", "interaction", "people"),
    input: z.strictObject({ id: name, text: remark }),
    answer: interaction,
    handle: ({ id, text: asked }, { gate, by }) =>
      gate.interactions.askBack(id, { by, text: asked }),
  }),
  "interactions.cancel": jsonRoute({
    summary: "Cancel a question. That counts as a rejection.",
    ...access("pass", "interaction", "people"),
    input: z.strictObject({ id: name, reason }),
    answer: interaction,
    handle: ({ id, reason: why }, { gate, by }) =>
      gate.interactions.cancel(id, { by, reason: why }),
  }),
};
