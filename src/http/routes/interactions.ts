import { z } from "zod";
import { INTERACTION_STATUSES, type Interaction } from "../../model/interaction.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { encodeValue } from "../../util/value-codec.ts";
import { checkFresh, checkFreshToApprove } from "../authenticate.ts";
import { jsonRoute, RULES } from "../route.ts";
import { narrowed } from "../session-book.ts";
import { callAnswer, wireCallAnswer } from "../wire/call.ts";
import {
  bytePage,
  DEFAULT_PAGE,
  json,
  list,
  name,
  pageOf,
  paging,
  placeOf,
  reason,
} from "../wire/common.ts";
import {
  approved,
  batchItem,
  edited,
  interaction,
  preview,
  wireApproved,
  wireBatchItem,
} from "../wire/interaction.ts";

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
  const text = (field: string, value: string) => {
    if (value.length <= MOST_TEXT) return value;
    cut.push({ field, bytes: Buffer.byteLength(value) });
    return value.slice(0, MOST_TEXT).toWellFormed();
  };
  const fits = (field: string, value: unknown) => {
    const bytes = Buffer.byteLength(encodeValue(value as never));
    if (bytes > MOST_JSON) cut.push({ field, bytes });
    return bytes <= MOST_JSON;
  };
  const { pendingTool, metadata, remarks, answer, ...rest } = whole;
  const head = {
    ...rest,
    displayText: text("displayText", whole.displayText),
    ...(pendingTool === undefined
      ? {}
      : {
          pendingTool: {
            tool_name: pendingTool.tool_name,
            args_json: text("pendingTool.args_json", pendingTool.args_json),
            summary: text("pendingTool.summary", pendingTool.summary),
          },
        }),
    metadata: fits("metadata", metadata) ? metadata : {},
    remarks: fits("remarks", remarks) ? remarks : [],
    ...(answer === undefined || !fits("answer", answer) ? {} : { answer }),
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
const lane = "people" as const;

export const interactionRoutes = {
  "interactions.list": jsonRoute({
    summary: "List what waits for a person, oldest first. Large fields are truncated; see `cut`.",
    rule: RULES.read,
    of: "list",
    input: z.strictObject({
      /** Open ones by default. */
      status: z.enum(INTERACTION_STATUSES).optional(),
      sessionId: name.optional(),
      assignedTo: name.optional(),
      ...paging,
    }),
    answer: pageOf(interaction),
    lane,
    async handle({ status = "open", sessionId, assignedTo, cursor, limit = DEFAULT_PAGE }, call) {
      const session = await narrowed(call, sessionId);
      const query = definedFields({ status, sessionId: session, assignedTo });
      return bytePage({
        limit,
        after: placeOf(cursor),
        timers: call.services.timers,
        read: (after, count) => call.gate.interactions.list({ ...query, after, limit: count }),
        place: ({ ord }) => ord,
        weigh: weightOf,
        show: headOf,
      });
    },
  }),
  "interactions.get": jsonRoute({
    summary: "Get an interaction and its outcome.",
    rule: RULES.read,
    of: "interaction",
    input: z.strictObject({ id: name }),
    answer: interaction,
    lane,
    handle: ({ id }, { gate }) => gate.interactions.get(id),
  }),
  "interactions.shown": jsonRoute({
    summary:
      "Get the preview of a confirmation: dry run, versions, safety class. Its hash is the interaction's.",
    rule: RULES.readAll,
    of: "interaction",
    input: z.strictObject({ id: name }),
    answer: z.object({ preview: preview.nullable() }),
    lane,
    async handle({ id }, { gate: { interactions } }) {
      const shown = await interactions.shown(id);
      // Throws not_found for an unknown id; the other types of interactions show nothing.
      if (shown === undefined) await interactions.get(id);
      return { preview: shown?.preview ?? null };
    },
  }),
  "interactions.answer": jsonRoute({
    summary: "Answer an agent's question.",
    rule: RULES.decide,
    of: "interaction",
    input: z.strictObject({ ...seen, answer: json }),
    answer: interaction,
    lane,
    handle: ({ id, ...given }, { gate, identity }) =>
      gate.interactions.answer(id, { ...withReason(given), by: identity.subject }),
  }),
  "interactions.approve": jsonRoute({
    summary:
      "Approve exactly what was shown. With the last required approval it is executed, once.",
    rule: RULES.decide,
    of: "interaction",
    input: z.strictObject({ ...seen, factor: name.optional() }),
    answer: approved,
    lane,
    async handle({ id, factor, ...given }, call) {
      const { gate, identity } = call;
      await checkFreshToApprove([id], call);
      const yes = { ...withReason(given), by: identity.subject };
      const named = factor === undefined ? yes : { ...yes, factor };
      return wireApproved(await gate.interactions.approve(id, named));
    },
  }),
  "interactions.reject": jsonRoute({
    summary: "Reject a decision: nothing of it runs.",
    rule: RULES.decide,
    of: "interaction",
    input: z.strictObject(seen),
    answer: interaction,
    lane,
    handle: ({ id, ...given }, { gate, identity }) =>
      gate.interactions.reject(id, { ...withReason(given), by: identity.subject }),
  }),
  "interactions.edit": jsonRoute({
    summary: "Change the input of some calls. They are checked, reviewed and shown again.",
    rule: RULES.decide,
    of: "interaction",
    input: z.strictObject({
      ...seen,
      /** By the place of the call, from 0. */
      inputs: z.record(z.string().regex(/^\d{1,3}$/), json),
    }),
    answer: edited,
    lane,
    handle: ({ id, ...given }, { gate, identity }) =>
      gate.interactions.edit(id, { ...withReason(given), by: identity.subject }),
  }),
  "interactions.approveBatch": jsonRoute({
    summary:
      "Approve exactly the listed items, each with the hash that was seen. Those in `veto` are rejected.",
    rule: RULES.decide,
    of: "list",
    input: z.strictObject({
      items: z
        .array(z.strictObject({ id: name, hash: z.string().max(128) }))
        .min(1)
        .max(500),
      veto: z.array(name).max(500).optional(),
      reason: reason.optional(),
    }),
    answer: z.object({ items: list(batchItem) }),
    lane,
    async handle({ items, veto = [], reason: why }, call) {
      const { gate, identity } = call;
      const yes = items.map(({ id }) => id).filter((id) => !veto.includes(id));
      await checkFreshToApprove(yes, call);
      const by = { by: identity.subject, veto };
      const done = await gate.interactions.approveAll(
        items,
        why === undefined ? by : { ...by, reason: why },
      );
      return { items: done.map(wireBatchItem) };
    },
  }),
  "interactions.settle": jsonRoute({
    summary: "Report what happened to a call with an unknown outcome.",
    rule: RULES.settle,
    of: "interaction",
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
    lane,
    async handle({ id, happened, output, resultData, otherwise = "give_up", ...given }, call) {
      const { gate, identity, signed, services } = call;
      if (!happened && otherwise === "repeat") checkFresh(signed, services);
      const answer = { ...withReason(given), by: identity.subject };
      const found = happened
        ? { ...answer, happened, ...definedFields({ output, resultData }) }
        : { ...answer, happened, otherwise };
      return wireCallAnswer(await gate.interactions.settle(id, found));
    },
  }),
  "interactions.handOver": jsonRoute({
    summary: "Reassign a question to another person.",
    rule: RULES.pass,
    of: "interaction",
    input: z.strictObject({ id: name, to: name, reason: reason.optional() }),
    answer: interaction,
    lane,
    handle: ({ id, to, reason: why }, { gate, identity }) =>
      gate.interactions.handOver(id, definedFields({ by: identity.subject, to, reason: why })),
  }),
  "interactions.askBack": jsonRoute({
    summary: "Ask the agent for more before deciding. The question stays open.",
    rule: RULES.decide,
    of: "interaction",
    input: z.strictObject({ id: name, text: z.string().min(1).max(10_000) }),
    answer: interaction,
    lane,
    handle: ({ id, text }, { gate, identity }) =>
      gate.interactions.askBack(id, { by: identity.subject, text }),
  }),
  "interactions.cancel": jsonRoute({
    summary: "Cancel a question. That counts as a rejection.",
    rule: RULES.pass,
    of: "interaction",
    input: z.strictObject({ id: name, reason }),
    answer: interaction,
    lane,
    handle: ({ id, reason: why }, { gate, identity }) =>
      gate.interactions.cancel(id, { by: identity.subject, reason: why }),
  }),
};

function withReason<Given extends { reason?: string | undefined }>({
  reason: why,
  ...rest
}: Given) {
  return why === undefined ? rest : { ...rest, reason: why };
}
