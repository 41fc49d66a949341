import { z } from "zod";
import { OTHER_CALL } from "../../gate/keyed-calls.ts";
import { SallyportError } from "../../model/errors.ts";
import { SESSIONS } from "../../model/session.ts";
import { createIds } from "../../util/ids.ts";
import { type Call, jsonRoute, RULES } from "../route.ts";
import {
  askingSessions,
  findSession,
  notFound,
  openSession,
  SECOND_PART,
} from "../session-book.ts";
import { callAnswer, callRequest, callRequestOf, wireCallAnswer } from "../wire/call.ts";
import {
  DEFAULT_PAGE,
  fitting,
  idCursor,
  idOf,
  instant,
  isIdCursor,
  jsonObject,
  list,
  momentOf,
  name,
  page,
  pageOf,
  paging,
  placeOf,
} from "../wire/common.ts";

import { interaction, questionAnswer } from "../wire/interaction.ts";
import { wireOf } from "../wire/record.ts";
import { rollbackReport } from "./operations.ts";

const session = wireOf(SESSIONS, ["id", "agent", "owner", "workingDirectory", "createdAt"]);

const callResult = z.object({
  callId: z.string(),
  tool: z.string(),
  index: z.int(),
  answer: callAnswer,
});

/** A key for all is a key for each: the port makes each of them once. */
function keyed(calls: readonly z.output<typeof callRequest>[], { key }: Call) {
  return calls.map((one, index) =>
    callRequestOf(key === "" || one.key !== undefined ? one : { ...one, key: `${key}.${index}` }),
  );
}

export const sessionRoutes = {
  "sessions.open": jsonRoute({
    summary: "Opens a session of one's own; opened again it is the same one.",
    rule: RULES.propose,
    of: "none",
    input: z.strictObject({
      /** A name for it, unique among one's own; the answer has the whole id. Made when left out. */
      id: name.max(200).optional(),
      /** Where its calls work: one of the folders that the operator listed as `sessionFolders`, or below one. */
      workingDirectory: z.string().max(4_096).optional(),
    }),
    answer: session,
    status: 201,
    async handle({ id, workingDirectory: asked = "" }, { store, gate, identity, services }) {
      const workingDirectory = await gate.sessions.folderFor(asked);
      const { subject: agent, owner } = identity;
      // Under one's own name, so that nobody can name a session that somebody else works in.
      const own = id === undefined ? createIds(services).next() : `${agent}:${id}`;
      return store.sessions.open({ id: own, agent, owner, workingDirectory });
    },
  }),
  "sessions.list": jsonRoute({
    summary:
      "Sessions: those opened through this server, then those that programs opened by themselves.",
    rule: RULES.read,
    of: "list",
    input: z.strictObject({
      /** Of those that programs opened, only the ones that asked for something since then. */
      since: instant.optional(),
      ...paging,
    }),
    answer: pageOf(session),
    async handle({ since, cursor, limit = DEFAULT_PAGE }, call) {
      const { store, own } = call;
      const window = since === undefined ? {} : { since: momentOf(since) };
      if (cursor !== undefined && own === undefined && isIdCursor(cursor)) {
        return askingSessions(call, { after: idOf(cursor), ...window, limit });
      }
      const query = { after: placeOf(cursor), limit: limit + 1 };
      const found = await store.sessions.list(own === undefined ? query : { ...query, agent: own });
      const { items, next } = page(found, limit, ({ ord }) => ord);
      if (next !== null || own !== undefined) return { items, next };
      const room = limit - items.length;
      if (room === 0) return { items, next: idCursor(SECOND_PART) };
      const rest = await askingSessions(call, { after: SECOND_PART, ...window, limit: room });
      return { items: [...items, ...rest.items], next: rest.next };
    },
  }),
  "sessions.get": jsonRoute({
    summary: "One session.",
    rule: RULES.read,
    of: "session",
    input: z.strictObject({ id: name }),
    answer: session,
    async handle({ id }, call) {
      const known = await findSession(call, id);
      if (known === undefined) throw notFound(id);
      return known;
    },
  }),
  "sessions.call": jsonRoute({
    summary: "One tool call, from gate to answer.",
    rule: RULES.propose,
    of: "session",
    input: callRequest.extend({ id: name }),
    answer: callAnswer,
    keys: "passed",
    async handle({ id, ...request }, call) {
      const opened = await openSession(call, id);
      const key = request.key ?? (call.key === "" ? undefined : call.key);
      const answer = await opened.call(callRequestOf({ ...request, key }));
      if (answer === OTHER_CALL) {
        throw new SallyportError("key_reused", { hint: "Use a new key for a new request." });
      }
      return wireCallAnswer(answer);
    },
  }),
  "sessions.callAll": jsonRoute({
    summary: "Several calls of one message: safe neighbours together, order kept around writes.",
    rule: RULES.propose,
    of: "session",
    input: z.strictObject({ id: name, calls: z.array(callRequest).min(1).max(100) }),
    answer: z.object({ results: list(callResult) }),
    keys: "passed",
    async handle({ id, calls }, call) {
      const opened = await openSession(call, id);
      const results: z.output<typeof callResult>[] = [];
      for await (const { answer, ...rest } of opened.callAll(keyed(calls, call))) {
        results.push({ ...rest, answer: wireCallAnswer(answer) });
      }
      return { results: results.toSorted((a, b) => a.index - b.index) };
    },
  }),
  "sessions.stage": jsonRoute({
    summary: "Several calls as one decision: approved, rejected and executed as a whole.",
    rule: RULES.propose,
    of: "session",
    input: z.strictObject({ id: name, calls: z.array(callRequest).min(1).max(100) }),
    answer: callAnswer,
    keys: "passed",
    async handle({ id, calls }, call) {
      const opened = await openSession(call, id);
      return wireCallAnswer(await opened.stage(keyed(calls, call)));
    },
  }),
  "sessions.ask": jsonRoute({
    summary: "Asks a person; asked again with the same id it answers what became of the question.",
    rule: RULES.propose,
    of: "session",
    input: z.strictObject({
      id: name,
      callId: name,
      text: z.string().min(1).max(10_000),
      choices: z.array(z.string().max(500)).max(50).optional(),
      deadlineMs: z.int().min(1).optional(),
      assignedTo: name.optional(),
      escalation: z.strictObject({ afterMs: z.int().min(1), to: name }).optional(),
      metadata: jsonObject.optional(),
    }),
    answer: questionAnswer,
    async handle({ id, ...question }, call) {
      const { choices, deadlineMs, assignedTo, escalation, metadata, ...rest } = question;
      return (await openSession(call, id)).ask({
        ...rest,
        ...(choices === undefined ? {} : { choices }),
        ...(deadlineMs === undefined ? {} : { deadlineMs }),
        ...(assignedTo === undefined ? {} : { assignedTo }),
        ...(escalation === undefined ? {} : { escalation }),
        ...(metadata === undefined ? {} : { metadata }),
      });
    },
  }),
  "sessions.resultOf": jsonRoute({
    summary:
      "What became of a keyed call, or of a question by its call id; null when there was none.",
    rule: RULES.propose,
    of: "session",
    input: z.strictObject({ id: name, key: name }),
    answer: z.object({ result: callAnswer.nullable() }),
    async handle({ id, key }, call) {
      const result = await (await openSession(call, id)).resultOf(key);
      return { result: result === undefined ? null : wireCallAnswer(result) };
    },
  }),
  "sessions.askedBack": jsonRoute({
    summary: "What reviewers want to know from this agent before they decide.",
    rule: RULES.propose,
    of: "session",
    input: z.strictObject({ id: name }),
    answer: z.object({ items: list(interaction) }),
    // What does not fit is there once the first ones have their reply.
    async handle({ id }, call) {
      const items = await (await openSession(call, id)).askedBack();
      return { items: items.slice(0, fitting(items)) };
    },
  }),
  "sessions.reply": jsonRoute({
    summary: "The agent's reply to what a reviewer asked back.",
    rule: RULES.propose,
    of: "session",
    input: z.strictObject({ id: name, interactionId: name, text: z.string().min(1).max(10_000) }),
    answer: interaction,
    handle: async ({ id, interactionId, text }, call) =>
      (await openSession(call, id)).reply(interactionId, text),
  }),
  "sessions.rollback": jsonRoute({
    summary: "Takes back what a session did, or one message or one operation of it, newest first.",
    rule: RULES.undo,
    of: "session",
    input: z.strictObject({ id: name, messageId: name.optional(), operationId: name.optional() }),
    answer: rollbackReport,
    lane: "people",
    async handle({ id, messageId, operationId }, call) {
      const isKnown = (await call.services.sessions.peek(call, id)) !== undefined;
      // Sessions of programs that use the library are known by what they did.
      if (!isKnown) {
        const { operations } = await call.gate.operations.listNewest(id, { limit: 1 });
        if (operations.length === 0) throw notFound(id);
      }
      const opened = await openSession(call, id, "rollback");
      return opened.rollback(call.identity.subject, {
        ...(messageId === undefined ? {} : { messageId }),
        ...(operationId === undefined ? {} : { operationId }),
      });
    },
  }),
};
