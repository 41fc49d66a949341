import { z } from "zod";
import { SallyportError } from "../../model/errors.ts";
import type { FlowSnapshot } from "../../model/flow-state.ts";
import { INTERACTION_TYPES, type InteractionSnapshot } from "../../model/interaction.ts";
import { isName } from "../../model/names.ts";
import { createIds } from "../../util/ids.ts";
import { access, type Call, jsonRoute, notFound } from "../route.ts";
import {
  anyText,
  DEFAULT_PAGE,
  instantText,
  jsonObject,
  list,
  name,
  page,
  pageOf,
  paging,
  placeOf,
  texts,
} from "../wire.ts";

/** What the routes need of a flow; `createFlow` of `sallyport/flow` makes one. Shape: callback. */
export interface ServedFlow {
  handle(request: {
    readonly conversationId: string;
    readonly userId: string;
    readonly message: string;
    readonly signal?: AbortSignal;
  }): Promise<ServedOutcome>;
  reply(answer: AnsweredQuestion): Promise<ServedOutcome>;
  confirm(answer: AnsweredQuestion): Promise<ServedOutcome>;
  resume(conversationId: string, signal?: AbortSignal): Promise<ServedOutcome>;
}

interface AnsweredQuestion {
  readonly conversationId: string;
  readonly interactionId: string;
  readonly version: number;
  readonly signal?: AbortSignal;
}

interface ServedOutcome {
  readonly outcome: (typeof OUTCOMES)[number];
  readonly text?: string;
  readonly summary?: string;
  readonly interaction?: InteractionSnapshot;
}

const OUTCOMES = [
  "replied",
  "waiting",
  "delivered",
  "stopped",
  "nothing_stored",
  "refused",
  "taken_over",
] as const;

/** The question that a conversation waits for. The answer to it is given in the inbox. */
const waiting = z.object({
  version: z.int(),
  interaction_id: anyText,
  type: z.enum(INTERACTION_TYPES),
  status: anyText,
  display_text: anyText,
  pending_tool: z.object(texts("tool_name", "args_json", "summary")).optional(),
  metadata: jsonObject.optional(),
});

const outcome = z.object({
  id: name,
  outcome: z.enum(OUTCOMES),
  /** What the agent replied, or why nothing was done. */
  text: anyText.optional(),
  summary: anyText.optional(),
  interaction: waiting.optional(),
});

const conversation = z.object({
  ...texts("id", "user", "sessionId", "phase"),
  steps: list(z.object({ text: anyText, done: z.boolean() })),
  rounds: z.int(),
  roundLimit: z.int(),
  waitsFor: waiting.nullable(),
  updatedAt: instantText,
});

function flowOf({ services, identity }: Call): ServedFlow {
  const flow = services.flows[identity.tenant];
  if (flow !== undefined) return flow;
  const hint = "This server holds no conversations: give it a flow (`flow` in its config).";
  throw new SallyportError("not_found", { id: "flow", hint });
}

/** What the ids of a caller's conversations begin with. No name with its end is the beginning of another name with its end. */
function prefixOf(subject: string): string {
  return `${subject.replaceAll("~", "~0")}~.`;
}

/** Conversations of others are reported as missing. */
function checkOwn(call: Call, id: string): void {
  const isOwn = call.own === undefined || id.startsWith(prefixOf(call.own));
  if (!isOwn || !isName(id)) throw notFound(id);
}

function shownSnapshot(
  { conversation_id: id, session_id: sessionId, state }: FlowSnapshot,
  updatedAt: string,
): z.output<typeof conversation> {
  const { common_state: common, pending_interaction: open } = state;
  return {
    id,
    user: common.user_id,
    sessionId,
    phase: common.phase,
    steps: common.plan_steps.map(({ text }, at) => ({ text, done: at < common.current_step })),
    rounds: common.rounds_used,
    roundLimit: common.round_limit,
    waitsFor: open?.status === "open" ? open : null,
    updatedAt,
  };
}

const answered = z.strictObject({ id: name, interactionId: name, version: z.int().min(1) });

export const conversationRoutes = {
  "conversations.list": jsonRoute({
    summary: "List conversations with an agent that have not ended, oldest first.",
    ...access("read", "list"),
    input: z.strictObject({ ...paging }),
    answer: pageOf(conversation),
    async handle({ cursor, limit = DEFAULT_PAGE }, { store, own }) {
      const query = { after: placeOf(cursor), limit: limit + 1 };
      const { items: found, next } = page(
        await store.flowStates.unfinished(query),
        limit,
        ({ ord }) => ord,
      );
      const items = [];
      for (const { conversationId, updatedAt } of found) {
        if (own !== undefined && !conversationId.startsWith(prefixOf(own))) continue;
        const loaded = await store.flowStates.load(conversationId);
        if (loaded.found) items.push(shownSnapshot(loaded.snapshot, updatedAt));
      }
      return { items, next };
    },
  }),
  "conversations.get": jsonRoute({
    summary: "Get a conversation: its plan, how far it is, and what it waits for.",
    ...access("read", "none"),
    input: z.strictObject({ id: name }),
    answer: conversation.omit({ updatedAt: true }),
    async handle({ id }, call) {
      checkOwn(call, id);
      const loaded = await call.store.flowStates.load(id);
      if (!loaded.found) throw notFound(id);
      return shownSnapshot(loaded.snapshot, "");
    },
  }),
  "conversations.send": jsonRoute({
    summary: "Begin a conversation with the agent of this server, or say more in one of your own.",
    ...access("propose", "none"),
    input: z.strictObject({
      /** As the first answer gave it, or a name of your own; generated by default. */
      id: name.max(200).optional(),
      message: z.string().min(1).max(100_000),
    }),
    answer: outcome,
    ifCutOff: "ask",
    async handle({ id: asked, message }, call) {
      const flow = flowOf(call);
      const { by, services } = call;
      const own = asked ?? createIds(services).next();
      // Prefixed with the caller's name, so that no one can name another caller's conversation.
      const prefix = prefixOf(by);
      const id = own.startsWith(prefix) ? own : `${prefix}${own}`;
      return {
        id,
        ...(await flow.handle({ conversationId: id, userId: by, message, signal: call.gone })),
      };
    },
  }),
  "conversations.reply": jsonRoute({
    summary: "Continue a conversation whose question was answered in the inbox.",
    ...access("propose", "none"),
    input: answered,
    answer: outcome,
    async handle({ id, interactionId, version }, call) {
      checkOwn(call, id);
      const answer = { conversationId: id, interactionId, version, signal: call.gone };
      return { id, ...(await flowOf(call).reply(answer)) };
    },
  }),
  "conversations.confirm": jsonRoute({
    summary: "Continue a conversation whose confirmation was decided in the inbox.",
    ...access("propose", "none"),
    input: answered,
    answer: outcome,
    async handle({ id, interactionId, version }, call) {
      checkOwn(call, id);
      const answer = { conversationId: id, interactionId, version, signal: call.gone };
      return { id, ...(await flowOf(call).confirm(answer)) };
    },
  }),
  "conversations.resume": jsonRoute({
    summary: "Continue a conversation from where it was saved last.",
    ...access("propose", "none"),
    input: z.strictObject({ id: name }),
    answer: outcome,
    async handle({ id }, call) {
      checkOwn(call, id);
      return { id, ...(await flowOf(call).resume(id, call.gone)) };
    },
  }),
};
