import { z } from "zod";
import { LOOP_STAGES, PHASES, type Phase, type Run, type RunId } from "../../model/run.ts";
import { jsonRoute } from "../route.ts";
import { RULES } from "../rule.ts";
import { DEFAULT_PAGE, list, name, pageFrom, pageOf, paging } from "../wire/common.ts";
import { evidence, promise } from "../wire/promise.ts";

const STATUSES = ["open", "done", "stopped"] as const satisfies readonly Run["status"][];
const phase = z.enum(PHASES as readonly [Phase, ...Phase[]]);

const run = z.object({
  id: z.string(),
  feature: z.string(),
  lead: z.string(),
  phase,
  status: z.enum(STATUSES),
  artefacts: z.partialRecord(phase, z.string()),
  documents: z.string(),
  evidenceFolder: z.string(),
  planFiles: list(z.string()),
  promises: list(promise),
  evidence: list(evidence),
  budget: z.int(),
  rounds: z.int(),
  stage: z.enum(["", ...LOOP_STAGES]),
  reason: z.string(),
  version: z.int(),
});

export const runRoutes = {
  "runs.list": jsonRoute({
    summary: "Features that lead agents work on: phase, promise, budget.",
    rule: RULES.readAll,
    of: "none",
    input: z.strictObject({
      /** All unless told. */
      status: z.enum(STATUSES).optional(),
      ...paging,
    }),
    answer: pageOf(run),
    async handle({ status, cursor, limit = DEFAULT_PAGE }, { store }) {
      const asked = status === undefined ? STATUSES : [status];
      const found = await Promise.all(asked.map((one) => store.runs.list(one)));
      return pageFrom(found.flat(), cursor, limit);
    },
  }),
  "runs.get": jsonRoute({
    summary: "One run: plan, promises and what proves them.",
    rule: RULES.readAll,
    of: "none",
    input: z.strictObject({ id: name }),
    answer: run,
    handle: ({ id }, { port }) => port.runs.get(id as RunId),
  }),
};
