import { generateText, type LanguageModel, type ModelMessage, streamText } from "ai";
import { type Timers, withDeadline } from "../util/timers.ts";

export interface Prompt {
  readonly instructions: string;
  readonly messages: readonly ModelMessage[];
}

/** A model of the AI SDK as the nodes use it. Both throw when there is no whole answer in time. */
export interface FlowModel {
  ask(prompt: Prompt, signal: AbortSignal | undefined): Promise<string>;
  /** Hands on each piece of text as it comes and gives back the whole. */
  stream(
    prompt: Prompt,
    piece: (text: string) => Promise<void>,
    signal: AbortSignal | undefined,
  ): Promise<string>;
}

export interface FlowModelOptions {
  readonly model: LanguageModel;
  readonly timers: Timers;
  readonly timeoutMs: number;
  /** How often the AI SDK may repeat a failed request within the time. */
  readonly maxRetries: number;
}

export function flowModel({ model, timers, timeoutMs, maxRetries }: FlowModelOptions): FlowModel {
  const settings = ({ instructions, messages }: Prompt, abortSignal: AbortSignal) => ({
    model,
    instructions,
    messages: [...messages],
    abortSignal,
    maxRetries,
    // What people and tools say may hold secrets, and traces are kept by others for longer than anybody remembers.
    telemetry: { recordInputs: false, recordOutputs: false },
  });
  return {
    ask(prompt, signal) {
      const ask = async (abort: AbortSignal) => (await generateText(settings(prompt, abort))).text;
      return withDeadline(ask, timeoutMs, timers, signal);
    },
    stream(prompt, piece, signal) {
      const read = async (abort: AbortSignal): Promise<string> => {
        let text = "";
        let finish = "";
        // Errors come as parts below; the SDK's own handler would print them.
        const result = streamText({ ...settings(prompt, abort), onError: () => {} });
        for await (const part of result.stream) {
          // A caller that has given up must not be sent more.
          abort.throwIfAborted();
          if (part.type === "error") throw part.error;
          if (part.type === "finish") finish = part.finishReason;
          if (part.type !== "text-delta") continue;
          text += part.text;
          await piece(part.text);
        }
        if (finish !== "stop") throw new Error(`the model did not finish (${finish})`);
        return text;
      };
      return withDeadline(read, timeoutMs, timers, signal);
    },
  };
}
