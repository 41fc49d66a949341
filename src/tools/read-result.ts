import { defineTool } from "./define-tool.ts";
import type { ResultStore } from "./result-store.ts";
import type { Tool } from "./tool.ts";

export const READ_RESULT = "read_result";
const DEFAULT_LENGTH = 20_000;

/** The tool with which a model reads the rest of an output that was too long. It sees results of its own session only. */
export function createReadResult(store: Pick<ResultStore, "read">): Tool {
  return defineTool({
    name: READ_RESULT,
    description:
      "Reads a part of an earlier output that was too long to show. The id stands in that output.",
    input: {
      type: "object",
      properties: {
        id: { type: "string", maxLength: 64 },
        offset: {
          type: "integer",
          minimum: 0,
          description: "Where to begin, in bytes; 0 when left out.",
        },
        length: {
          type: "integer",
          minimum: 1,
          maximum: 100_000,
          description: "How many bytes; 20,000 when left out.",
        },
      },
      required: ["id"],
      additionalProperties: false,
    },
    safety: { effect: "read", concurrencySafe: true },
    permissionClass: "readonly",
    auditOperation: "read",
    async execute({ input, tenant, sessionId }) {
      const { id, offset = 0, length = DEFAULT_LENGTH } = input;
      const range = { offset: Number(offset), length: Number(length) };
      const part = await store.read({ tenant, sessionId }, String(id), range);
      if (part === undefined) {
        return {
          text: "There is no stored output with this id in this session. Check the id.",
          isError: true,
        };
      }
      const { text, nextOffset, totalBytes } = part;
      const isEnd = nextOffset >= totalBytes;
      const next = JSON.stringify({ id: String(id), offset: nextOffset });
      const note = isEnd
        ? "[End of the output.]"
        : `[To read on, call "${READ_RESULT}" with ${next}.]`;
      return { text: `${text}\n${note}`, data: { nextOffset, totalBytes } };
    },
  });
}
