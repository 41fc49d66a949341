import { z } from "zod";
import { DECISION_STATES, type Decision } from "../../model/decision.ts";
import { targetsOf } from "../../port/call-targets.ts";
import { fitting } from "../byte-page.ts";
import { jsonRoute } from "../route.ts";
import { RULES } from "../rule.ts";
import { narrowed } from "../session-book.ts";
import { DEFAULT_PAGE, idCursor, idOf, instant, name, pageOf, paging } from "../wire/common.ts";
import { decision, decisionInFull, wireDecision, wireTargets } from "../wire/decision.ts";

const state = z.enum(DECISION_STATES);

/** Of one more than was asked for: whether there are more is known without another look. */
function shownPage(found: readonly Decision[], limit: number) {
  const whole = found.slice(0, limit).map(wireDecision);
  const items = whole.slice(0, fitting(whole));
  const last = items.at(-1);
  return { items, next: found.length > items.length && last ? idCursor(last.id) : null };
}

export const decisionRoutes = {
  "decisions.list": jsonRoute({
    summary: "Decisions, oldest first.",
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
      const found = await call.port.decisions.list({
        ...(session === undefined ? {} : { sessionId: session }),
        ...(states === undefined ? {} : { states }),
        ...(since === undefined ? {} : { since }),
        ...(cursor === undefined ? {} : { after: idOf(cursor) }),
        limit: limit + 1,
      });
      return shownPage(found, limit);
    },
  }),
  "decisions.stuck": jsonRoute({
    summary: "Decisions that have been in a state for at least so long, oldest first.",
    rule: RULES.readAll,
    of: "list",
    input: z.strictObject({ state, forAtLeastMs: z.int().min(0), ...paging }),
    answer: pageOf(decision),
    async handle({ state: inState, forAtLeastMs, cursor, limit = DEFAULT_PAGE }, { port }) {
      const found = await port.decisions.listStuck(inState, forAtLeastMs, {
        ...(cursor === undefined ? {} : { after: idOf(cursor) }),
        limit: limit + 1,
      });
      return shownPage(found, limit);
    },
  }),
  "decisions.get": jsonRoute({
    summary: "One decision with its verdicts and what its calls would touch.",
    rule: RULES.read,
    of: "decision",
    input: z.strictObject({ id: name }),
    answer: decisionInFull,
    async handle({ id }, { port }) {
      const record = await port.decisions.get(id);
      const shown = wireDecision(record);
      // What was staged from outside holds no calls of ours.
      const targets = shown.calls === null ? [] : await targetsOf(record, port.tools);
      return { ...shown, targets: wireTargets(targets) };
    },
  }),
};
