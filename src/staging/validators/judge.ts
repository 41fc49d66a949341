import { generateText, type LanguageModel } from "ai";
import type { Validator } from "../../model/validator.ts";
import type { Verdict } from "../../model/verdict.ts";
import { errorText } from "../../util/error-text.ts";
import { systemRandom } from "../../util/random.ts";
import { systemTimers, type Timers, withDeadline } from "../../util/timers.ts";
import { isFilledText, isObject, need } from "../need.ts";
import { blockVerdict } from "./ask-validator.ts";
import { readJudgeAnswer } from "./judge-answer.ts";
import { type JudgePrompt, type JudgePromptOptions, judgePrompt } from "./judge-prompt.ts";

export interface JudgeOptions extends Partial<JudgePromptOptions> {
  readonly name: string;
  readonly policyVersion: string;
  /** Any model of the AI SDK. */
  readonly model: LanguageModel;
  readonly criteria: string;
  /** How long the model may take, 30 s when left out; over time means block. */
  readonly timeoutMs?: number;
  /** Room for the answer and for a reasoning model's thoughts; an answer that is cut off means block. */
  readonly maxOutputTokens?: number;
  /** How often the AI SDK may repeat a failed request within the time. None when left out. */
  readonly maxRetries?: number;
  readonly timers?: Timers;
}

/**
 * A model as judge. It never throws: whatever goes wrong is a block verdict whose reason tells the three cases apart.
 * "payload not shown" (the model was not asked), "judge backend failed" (no answer: error, time-out, abort) and "judge
 * answer unreadable" (an answer that cannot be relied on). It is a second pair of eyes and can be talked into a yes;
 * put it behind rules, not in place of them.
 */
export function judgeValidator(options: JudgeOptions): Validator {
  const { name, policyVersion, model, criteria } = options;
  const { timeoutMs = 30_000, maxOutputTokens = 4096, maxRetries = 0 } = options;
  const { timers = systemTimers, random = systemRandom } = options;
  const { maxPayloadBytes = 64 * 1024, uninspectable = "block", metadataKeys = [] } = options;
  need(isFilledText(name), "judgeValidator needs a name for the audit trail.");
  need(isFilledText(policyVersion), `judgeValidator "${name}" needs a policyVersion.`);
  need(isObject(model) || isFilledText(model), `judgeValidator "${name}" needs a model.`);
  need(isFilledText(criteria), `judgeValidator "${name}" needs criteria to judge by.`);
  need(
    isObject(random) && typeof random.bytes === "function",
    `judgeValidator "${name}" needs a source of randomness.`,
  );
  for (const [what, value] of Object.entries({ timeoutMs, maxOutputTokens, maxPayloadBytes })) {
    need(Number.isFinite(value) && value > 0, `${what} of judge "${name}" is a number above 0.`);
  }
  const shape = { criteria, random, maxPayloadBytes, uninspectable, metadataKeys };

  const block = (what: string, error: unknown): Verdict =>
    blockVerdict({ validator: name, policyVersion, reason: `${what}: ${errorText(error)}` });

  return {
    name,
    async review(diff, { signal }) {
      let prompt: JudgePrompt;
      let text: string;
      try {
        prompt = judgePrompt(diff, shape);
      } catch (error) {
        return block("payload not shown", error);
      }
      let finish: string;
      try {
        const ask = (abortSignal: AbortSignal) => askModel(prompt, abortSignal);
        ({ text, finish } = await withDeadline(ask, timeoutMs, timers, signal));
      } catch (error) {
        return block("judge backend failed", error);
      }
      try {
        // Cut off, filtered or interrupted: what was left out may have been the other half of the sentence.
        need(finish === "stop", `the model did not finish (${finish})`);
        return { ...readJudgeAnswer(text, prompt.shown), validator: name, policyVersion };
      } catch (error) {
        return block("judge answer unreadable", error);
      }
    },
  };

  async function askModel(
    { instructions, message }: JudgePrompt,
    abortSignal: AbortSignal,
  ): Promise<{ text: string; finish: string }> {
    const { text, finishReason } = await generateText({
      model,
      instructions,
      prompt: message,
      abortSignal,
      maxOutputTokens,
      maxRetries,
      // Payloads may hold secrets, and traces are kept by others for longer than anybody remembers.
      telemetry: { recordInputs: false, recordOutputs: false },
    });
    return { text, finish: finishReason };
  }
}
