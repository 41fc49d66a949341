// A run of ten steps with everything that can wait in it, as data: what the model does is decided by what it is shown, so any
// process can go on with it. The ledger is what production has seen, apart from the store and synced line by line.

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { SallyportError } from "../../src/model/errors.ts";
import type { Policy } from "../../src/policy/policy.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { type Shown, scriptedModel } from "./scripted-model.ts";

export const STEPS = 10;
/** The step before which a person is asked something. */
export const QUESTION_AT = 5;
/** Which tool each step uses: those with `ask` need a person's yes. */
const TOOL_OF = [
  ...["world.keyed", "world.probed", "world.plain", "world.ask_keyed", "world.keyed"],
  ...["world.probed", "world.plain", "world.ask_plain", "world.keyed", "world.probed"],
] as const;

export const POLICY: Policy = {
  version: "1",
  rules: ["keyed", "probed", "plain"].map((kind) => ({
    id: kind,
    effect: "allow",
    tool: `world.${kind}`,
    reason: "a test",
  })),
};

export interface LedgerLine {
  readonly key: string;
  readonly step: number;
}

export function ledgerLines(file: string): readonly LedgerLine[] {
  return linesOf(file);
}

/** The last line of a killed process may be incomplete: it was not synced, so nothing relies on it. */
export function linesOf<Line>(file: string): readonly Line[] {
  if (!existsSync(file)) return [];
  const text = readFileSync(file, "utf8");
  const whole = text.slice(0, text.lastIndexOf("\n") + 1);
  return whole
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

export function appendLine(file: string, line: unknown): void {
  const handle = openSync(file, "a");
  writeSync(handle, `${JSON.stringify(line)}\n`);
  fsyncSync(handle);
  closeSync(handle);
}

export function textOfStep(step: number): string {
  return `did step ${step}`;
}

/** `tick` is called right before and right after every effect. */
export function worldTools(ledger: string, tick: (what: string) => void): readonly Tool[] {
  return [...new Set(TOOL_OF)].map((name) => toolOf(name, ledger, tick));
}

function toolOf(name: string, ledger: string, tick: (what: string) => void): Tool {
  const kind = name.replace(/^world\.(ask_)?/, "");
  const known = (key: string) => ledgerLines(ledger).some((line) => line.key === key);
  return defineTool({
    name,
    description: `Changes something in production that is ${kind}.`,
    input: {
      type: "object",
      properties: { step: { type: "integer" }, note: { type: "string" } },
      required: ["step", "note"],
      additionalProperties: false,
    },
    safety: { effect: "external" },
    idempotency: kind === "keyed" ? "keyed" : "none",
    dryRun: ({ input }) => `would do step ${stepIn(input)}`,
    execute({ input, idempotencyKey: key }) {
      const step = stepIn(input);
      tick(`before effect ${step}`);
      if (kind !== "keyed" || !known(key)) appendLine(ledger, { key, step });
      tick(`after effect ${step}`);
      return { text: textOfStep(step) };
    },
    ...(kind === "probed"
      ? {
          async probe({ input, idempotencyKey }) {
            if (!known(idempotencyKey)) return { happened: false };
            return { happened: true, result: { text: textOfStep(stepIn(input)) } };
          },
        }
      : {}),
  });
}

function stepIn(input: unknown): number {
  const { step } = input as { step?: unknown };
  if (typeof step === "number") return step;
  throw new SallyportError("invalid_input", { what: "step", hint: "Give the step." });
}

/**
 * Its answers depend on what it is shown and on nothing else, but for a note in every call that is new each time it is asked:
 * a run that asked twice for the same thing and then ran both would leave two lines in the ledger.
 */
export function worldModel(note: () => string, tick: (what: string) => void) {
  return scriptedModel({
    answer(shown) {
      const answer = JSON.stringify(answerTo(shown, note()));
      tick(`model: ${answer.slice(0, 40)}`);
      return answer;
    },
    summary: summaryOf,
  });
}

function answerTo({ instructions, messages }: Shown, note: string): object {
  if (instructions.startsWith("You talk")) return { action: "plan" };
  if (instructions.startsWith("Make a plan")) {
    const steps = Array.from({ length: STEPS }, (_, at) => ({
      text: `step ${at + 1}`,
      done_when: `step ${at + 1} is in the ledger`,
    }));
    return { action: "plan", steps };
  }
  const step = Number(/at step (\d+) of/.exec(instructions)?.[1]);
  const since = messages.slice(messages.findLastIndex(({ text }) => text === "Continue.") + 1);
  if (since.some(({ text }) => text === `Result (done): ${textOfStep(step)}`)) {
    return { action: "next_step", goal_check: `step ${step} was done` };
  }
  const isAnswered = messages.some(({ text }) => text.startsWith("Answer: "));
  if (step === QUESTION_AT && !isAnswered) {
    return { action: "ask_user", question: "Which color?", choices: ["red", "blue"] };
  }
  const tool = TOOL_OF[step - 1];
  return { action: "call_tool", tool, input: { step, note }, summary: `does step ${step}` };
}

/** All results and answers of the run, in order: a missing or duplicate one changes it. */
function summaryOf({ messages }: Shown): readonly string[] {
  const told = messages.map(({ text }) => text).filter((text) => /^(Result|Answer)/.test(text));
  return [`${STEPS} steps.`, ...told.map((text) => `\n${text}`)];
}
