import { z } from "zod";
import { jsonRoute } from "../route.ts";
import { RULES } from "../rule.ts";
import { instant, list, NO_INPUT, name, reason } from "../wire/common.ts";

const count = z.int();
const reviewer = z.object({
  id: z.string(),
  status: z.enum(["trusted", "suspended"]),
  approved: count,
  rejected: count,
  caught: count,
  missed: count,
  hourCount: count,
  hourAt: instant,
});
const lane = "people" as const;

export const reviewerRoutes = {
  "reviewers.list": jsonRoute({
    summary: "How people decide: yeses, noes, decoys caught and decoys let through.",
    rule: RULES.checkAudit,
    of: "none",
    input: NO_INPUT,
    answer: z.object({ items: list(reviewer) }),
    lane,
    handle: async (_, { port }) => ({ items: await port.reviewers.list() }),
  }),
  "reviewers.restore": jsonRoute({
    summary: "Lets the yes of somebody count again who let decoys through; not one's own.",
    rule: RULES.restoreReviewer,
    of: "none",
    input: z.strictObject({ id: name, reason }),
    answer: reviewer,
    lane,
    handle: ({ id, reason: why }, { port, identity }) =>
      port.reviewers.restore(id, { by: identity.subject, reason: why }),
  }),
};
