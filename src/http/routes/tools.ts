import { z } from "zod";
import { jsonRoute } from "../route.ts";
import { RULES } from "../rule.ts";
import { notFound } from "../session-book.ts";
import { list, NO_INPUT, name } from "../wire/common.ts";
import { tool, wireTool } from "../wire/tool.ts";

export const toolRoutes = {
  "tools.list": jsonRoute({
    summary: "All tools with their safety class and definition.",
    rule: RULES.everybody,
    of: "none",
    input: NO_INPUT,
    answer: z.object({ items: list(tool) }),
    handle: async (_, { port }) => ({ items: port.tools.all().map(wireTool) }),
  }),
  "tools.get": jsonRoute({
    summary: "One tool, by name or alias.",
    rule: RULES.everybody,
    of: "none",
    input: z.strictObject({ name }),
    answer: tool,
    async handle(input, { port }) {
      const found = port.tools.get(input.name);
      if (found === undefined) throw notFound(input.name);
      return wireTool(found);
    },
  }),
};
