import { simulateReadableStream } from "ai";
import { MockLanguageModelV4 } from "ai/test";

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};
const STOP = { unified: "stop", raw: undefined } as const;

/** What the model is shown, as one text per part. */
export interface Shown {
  readonly instructions: string;
  readonly messages: readonly { readonly role: string; readonly text: string }[];
}

/** The AI SDK's mock model with a script: `answer` for every question, `summary` in the pieces in which it is streamed. */
export function scriptedModel(script: {
  readonly answer: (shown: Shown) => string | Promise<string>;
  readonly summary?: (shown: Shown) => readonly string[];
}): MockLanguageModelV4 {
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => ({
      content: [{ type: "text", text: await script.answer(shownIn(prompt)) }],
      finishReason: STOP,
      usage: USAGE,
      warnings: [],
    }),
    doStream: async ({ prompt }) => {
      const pieces = script.summary?.(shownIn(prompt)) ?? ["All is done."];
      return {
        stream: simulateReadableStream({
          chunks: [
            { type: "text-start" as const, id: "1" },
            ...pieces.map((delta) => ({ type: "text-delta" as const, id: "1", delta })),
            { type: "text-end" as const, id: "1" },
            { type: "finish" as const, finishReason: STOP, usage: USAGE },
          ],
          initialDelayInMs: null,
          chunkDelayInMs: null,
        }),
      };
    },
  });
}

/** Says these one after the other, and fails the run when it is asked once more than that. */
export function modelSaying(...answers: readonly (string | object)[]): MockLanguageModelV4 {
  const rest = [...answers];
  return scriptedModel({
    answer() {
      const next = rest.shift();
      if (next === undefined) throw new Error("the model was asked once too often");
      return typeof next === "string" ? next : JSON.stringify(next);
    },
  });
}

type PromptOf = Parameters<MockLanguageModelV4["doGenerate"]>[0]["prompt"];

function shownIn(prompt: PromptOf): Shown {
  const texts = prompt.map(({ role, content }) => ({
    role,
    text:
      typeof content === "string"
        ? content
        : content.map((part) => ("text" in part ? part.text : "")).join(""),
  }));
  return {
    instructions: texts
      .filter(({ role }) => role === "system")
      .map(({ text }) => text)
      .join("\n"),
    messages: texts.filter(({ role }) => role !== "system"),
  };
}
