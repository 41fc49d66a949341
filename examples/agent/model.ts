import { type LanguageModel, simulateReadableStream } from "ai";
import { MockLanguageModelV4 } from "ai/test";

/** Optional packages: used when they are installed and their key is set. */
const PROVIDERS = [
  {
    key: "ANTHROPIC_API_KEY",
    name: "@ai-sdk/anthropic",
    make: "anthropic",
    model: "claude-sonnet-4-5",
  },
  { key: "OPENAI_API_KEY", name: "@ai-sdk/openai", make: "openai", model: "gpt-5.1" },
] as const;

/** A real model when a key is in the environment (`AGENT_MODEL` names another), otherwise a scripted one. */
export async function chooseModel(): Promise<{ model: LanguageModel; isScripted: boolean }> {
  const wanted = process.env["AGENT_MODEL"];
  // The AI SDK includes this provider: the name of a model is enough.
  if (process.env["AI_GATEWAY_API_KEY"]) {
    return { model: wanted ?? "anthropic/claude-sonnet-4.5", isScripted: false };
  }
  for (const { key, name, make, model } of PROVIDERS) {
    if (!process.env[key]) continue;
    try {
      const provider = await import(name);
      return { model: provider[make](wanted ?? model), isScripted: false };
    } catch {
      console.log(`${key} is set, but ${name} is not installed: npm install ${name}`);
    }
  }
  return { model: scripted(), isScripted: true };
}

const REFUND = (invoice: string) => ({
  action: "call_tool",
  tool: "invoices.refund",
  input: { invoice, reason: "charged twice" },
  summary: `refunds one charge of ${invoice}`,
});

const SCRIPT: readonly object[] = [
  { action: "plan" },
  {
    action: "plan",
    steps: [
      { text: "find invoices charged twice", done_when: "their numbers are known" },
      { text: "refund each once", done_when: "each refund is confirmed" },
    ],
  },
  { action: "call_tool", tool: "invoices.list", input: {}, summary: "lists all invoices" },
  { action: "next_step", goal_check: "INV-7 and INV-9 were charged twice" },
  { action: "ask_user", question: "Refund INV-7 and INV-9?", choices: ["both", "none"] },
  REFUND("INV-7"),
  REFUND("INV-9"),
  { action: "done", goal_check: "both refunds were answered with refunded" },
];

function scripted(): LanguageModel {
  const rest = [...SCRIPT];
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 1, text: 1, reasoning: undefined },
  };
  const finishReason = { unified: "stop", raw: undefined } as const;
  return new MockLanguageModelV4({
    doGenerate: async () => ({
      content: [{ type: "text", text: JSON.stringify(rest.shift()) }],
      finishReason,
      usage,
      warnings: [],
    }),
    doStream: async () => ({
      stream: simulateReadableStream({
        chunks: [
          { type: "text-start", id: "1" },
          { type: "text-delta", id: "1", delta: "agent: INV-7 and INV-9 were charged twice. " },
          { type: "text-delta", id: "1", delta: "Both were refunded once." },
          { type: "text-end", id: "1" },
          { type: "finish", finishReason, usage },
        ],
      }),
    }),
  });
}
