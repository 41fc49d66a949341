import { z } from "zod";
import type { Gate } from "../../gate/create-gate.ts";
import {
  CALL_OUTCOMES,
  type CallFilter,
  COUNT_BY,
  INDEXED_KINDS,
  type IndexedCall,
} from "../../store/call-index.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { access, jsonRoute } from "../route.ts";
import {
  anyText,
  DEFAULT_PAGE,
  idCursor,
  idOf,
  instantText,
  list,
  name,
  pageOf,
  paging,
  texts,
} from "../wire.ts";

export const indexedCall = z.object({
  id: anyText,
  kind: z.enum(INDEXED_KINDS),
  at: instantText,
  ...texts("sessionId", "agent", "tool", "title"),
  outcome: z.enum(CALL_OUTCOMES),
  ...texts("by", "reason"),
  waitMs: z.number().nullable(),
});

const filter = {
  /** Every word of it begins a word of the call: its sentence, input, result, reason, names and ids. */
  text: z.string().max(400).optional(),
  agent: name.optional(),
  tool: name.optional(),
  /** Who decided: a person, or the check that refused. */
  by: name.optional(),
  sessionId: name.optional(),
  outcome: z.array(z.enum(CALL_OUTCOMES)).max(CALL_OUTCOMES.length).optional(),
  from: instantText.optional(),
  /** Not included. */
  to: instantText.optional(),
};

interface Asked extends Omit<CallFilter, "outcomes"> {
  readonly outcome?: CallFilter["outcomes"] | undefined;
}

function filterOf({
  outcome,
  ...rest
}: { readonly [Name in keyof Asked]: Asked[Name] | undefined }): CallFilter {
  return definedFields({ ...rest, outcomes: outcome }) as CallFilter;
}

/** Between the time and the id of the last one of a page. */
const SPLIT = "|";

export function cursorAfter({ at, id }: Pick<IndexedCall, "at" | "id">): string {
  return idCursor(`${at}${SPLIT}${id}`);
}

/** One page of calls, newest first. */
export async function findCalls(
  gate: Gate,
  wanted: CallFilter,
  {
    cursor,
    limit = DEFAULT_PAGE,
  }: { readonly cursor?: string | undefined; readonly limit?: number | undefined },
) {
  const [at = "", id = ""] = cursor === undefined ? [] : idOf(cursor).split(SPLIT);
  const after = at === "" ? {} : { after: { at, id } };
  const found = await gate.calls.find(wanted, { limit: limit + 1, ...after });
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const isEnd = found.length <= limit || last === undefined;
  return { items, next: isEnd ? null : cursorAfter(last) };
}

export const callRoutes = {
  "calls.list": jsonRoute({
    summary: "Find calls by words and filters, newest first: asked, refused, run alone, undone.",
    ...access("readAll", "none"),
    input: z.strictObject({ ...filter, ...paging }),
    answer: pageOf(indexedCall),
    handle: ({ cursor, limit, ...asked }, { gate }) =>
      findCalls(gate, filterOf(asked), { cursor, limit }),
  }),
  "calls.stats": jsonRoute({
    summary:
      "Count what came of calls, by hour, day, agent, tool or decider, and how long people took.",
    ...access("readAll", "none"),
    input: z.strictObject({ ...filter, count: z.enum(COUNT_BY) }),
    answer: z.object({
      items: list(z.object({ key: anyText, outcome: z.enum(CALL_OUTCOMES), count: z.int() })),
      /** Decided by people. */
      decided: z.int(),
      medianMs: z.number().nullable(),
      p90Ms: z.number().nullable(),
    }),
    async handle({ count, ...asked }, { gate }) {
      const wanted = filterOf(asked);
      const [items, waits] = await Promise.all([
        gate.calls.count(wanted, count),
        gate.calls.waits(wanted),
      ]);
      const at = (share: number) => waits[Math.ceil(share * waits.length) - 1] ?? null;
      return { items, decided: waits.length, medianMs: at(0.5), p90Ms: at(0.9) };
    },
  }),
};
