import { z } from "zod";
import type { Decision } from "../../model/decision.ts";
import type { DelegationId } from "../../model/delegation.ts";
import type { Operation, OperationId } from "../../model/operation.ts";
import type { IndexedCall } from "../../store/call-index.ts";
import { access, type Call, jsonRoute } from "../route.ts";
import { anyText, fitting, list, name, pageOf, paging, texts } from "../wire.ts";
import { cursorAfter, findCalls, indexedCall } from "./calls.ts";
import { operation } from "./decisions.ts";
import { plannedUndo } from "./sessions.ts";

// What an agent did, as people read it: one line per call, with what decided it and what came of it.

const door = z.object({ passed: z.boolean(), ...texts("by", "reason") });

const sessionCall = indexedCall.extend({
  /** What the two reviews said; null where none was asked. */
  tech: door.nullable(),
  business: door.nullable(),
  /** Who approved. */
  votes: list(anyText),
  /** Its attempts and effects, the oldest first; long outputs are cut and marked as truncated. */
  operations: list(operation),
});
type SessionCall = z.output<typeof sessionCall>;

/** Enough to recognise an output; all of it is read with `operations.output`. */
const MOST_OUTPUT = 2_000;

function cut(one: Operation): SessionCall["operations"][number] {
  if (one.output.length <= MOST_OUTPUT) return one;
  return { ...one, output: one.output.slice(0, MOST_OUTPUT).toWellFormed(), truncated: true };
}

function doorOf({ validator, approved, reason }: Decision["techVerdict"]) {
  return validator === "" ? null : { passed: approved, by: validator, reason };
}

/** Decisions of earlier versions have the machine's verdict in the facts of their question. */
function businessOf({ machineVerdict, bizVerdict }: Decision, earlier: unknown) {
  if (machineVerdict.validator !== "") return machineVerdict;
  return (earlier as Decision["bizVerdict"] | undefined) ?? bizVerdict;
}

async function joined(one: IndexedCall, { gate, store }: Call): Promise<SessionCall> {
  const bare = { ...one, tech: null, business: null, votes: [], operations: [] };
  if (one.kind === "refusal") return bare;
  if (one.kind === "operation") {
    return { ...bare, operations: [cut(await gate.operations.get(one.id as OperationId))] };
  }
  const decision = await gate.decisions.get(one.id);
  const { id, sessionId, techVerdict } = decision;
  const [question, operations] = await Promise.all([
    store.interactions.peek(id),
    store.operations.listBySession(sessionId, { decisionId: id }),
  ]);
  return {
    ...bare,
    tech: doorOf(techVerdict),
    business: doorOf(businessOf(decision, question?.metadata["machine"])),
    votes: (question?.votes ?? []).map(({ by }) => by),
    operations: operations.map(cut),
  };
}

export const sessionCallRoutes = {
  "sessions.calls": jsonRoute({
    summary:
      "List the calls of a session, newest first: sentence, reviews, people, outcome, operations.",
    ...access("read", "session"),
    input: z.strictObject({ id: name, ...paging }),
    answer: pageOf(sessionCall),
    async handle({ id: sessionId, ...paged }, call) {
      const { items: found, next } = await findCalls(call.gate, { sessionId }, paged);
      const whole = await Promise.all(found.map((one) => joined(one, call)));
      const items = whole.slice(0, fitting(whole));
      const last = items.at(-1);
      return { items, next: items.length === whole.length || !last ? next : cursorAfter(last) };
    },
  }),
  "delegations.rollbackPlan": jsonRoute({
    summary:
      "Show what rolling back a delegation and everything below it would do as things are now. Changes nothing.",
    ...access("read", "delegation"),
    input: z.strictObject({ id: name }),
    answer: z.object({ items: list(plannedUndo) }),
    handle: async ({ id }, { gate }) => ({
      items: [...(await gate.delegations.rollbackPlan(id as DelegationId))],
    }),
  }),
};
