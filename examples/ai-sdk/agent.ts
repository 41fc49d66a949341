// The agent that you already have: a model and two tools of the AI SDK. The model is scripted, so the story needs no key.

import { appendFileSync } from "node:fs";
import { tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { z } from "zod";

export const lookupInvoice = tool({
  description: "Reads an invoice.",
  inputSchema: z.object({ invoice: z.string() }),
  execute: ({ invoice }) => ({ invoice, cents: 12_900, state: "paid" }),
});

export const refund = tool({
  description: "Pays an invoice back.",
  inputSchema: z.object({ invoice: z.string(), cents: z.int().positive() }),
  execute: ({ invoice, cents }) => {
    appendFileSync("ledger.txt", `${invoice} ${cents}\n`);
    return { refunded: invoice, cents };
  },
});

/** Asks for a refund, then repeats the result. */
export const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const told = prompt.flatMap(({ role, content }) => (role === "tool" ? content : []));
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    const input = JSON.stringify({ invoice: "2041", cents: 12_900 });
    const ask = { type: "tool-call", toolCallId: "call-1", toolName: "refund", input };
    const say = { type: "text", text: `I was told: ${JSON.stringify(told)}` };
    const isOver = told.length > 0;
    return {
      content: [isOver ? say : ask],
      finishReason: { unified: isOver ? "stop" : "tool-calls" },
      usage,
      warnings: [],
    } as never;
  },
});
