import { SallyportError } from "../model/errors.ts";
import { deepFreeze } from "../util/deep-freeze.ts";
import type { JsonValue } from "../util/json.ts";
import { inputError } from "./input-error.ts";
import { readDeclarations } from "./safety-sheet.ts";
import type { Tool, ToolCall } from "./tool.ts";
import { readToolInput, type ToolInput } from "./tool-input.ts";
import { nameProblem } from "./tool-name.ts";
import { type OutputOf, outputOf, toDryRun, toToolResult } from "./tool-result.ts";
import type { InputOf, SheetCall, ToolSheet } from "./tool-sheet.ts";
import type { UndoRecord } from "./undo.ts";

/**
 * Makes a tool from its data sheet:
 *
 *     export const refund = defineTool({
 *       name: "billing.refund",
 *       description: "Pays an invoice back, in full or in part.",
 *       input: z.object({ invoiceId: z.string(), cents: z.int().positive() }),
 *       safety: { effect: "external", reversible: true, confidenceMin: 80 },
 *       dryRun: ({ input }) => `would pay back ${input.cents} cents of ${input.invoiceId}`,
 *       execute: ({ input, idempotencyKey, signal }) => api.refund(input, { idempotencyKey, signal }),
 *       undo: ({ output }) => ({ tool: "billing.cancel_refund", input: { refundId: output.refundId } }),
 *     });
 *
 * Throws invalid_input when the sheet contradicts itself or cannot be kept to. The input is parsed again in front of every
 * callback, so that no path around the orchestrator brings in what does not fit.
 */
export function defineTool<const Input extends ToolInput, Answer>(
  sheet: ToolSheet<Input, Answer>,
): Tool {
  const { name, description, execute } = sheet;
  const hint = nameProblem(name) ?? sheetProblem(sheet);
  if (hint !== undefined) throw new SallyportError("invalid_input", { tool: String(name), hint });
  const { inputSchema, parseInput } = readToolInput(sheet.input, sheet.inputSchema);

  /** Throws invalid_input, for the callbacks that have no result to say it in. */
  const checkedInput = (input: unknown): InputOf<Input> => {
    const parsed = parseInput(input as JsonValue);
    if (parsed.ok) return parsed.value as InputOf<Input>;
    const hint = inputError(name, parsed.issues).text;
    throw new SallyportError("invalid_input", { tool: name, hint });
  };

  return Object.freeze({
    name,
    description: typeof description === "string" ? () => description : description,
    inputSchema,
    parseInput,
    async execute(call: ToolCall) {
      const parsed = parseInput(call.input as JsonValue);
      if (!parsed.ok) return inputError(name, parsed.issues);
      return toToolResult(await execute(sheetCall(call, parsed.value as InputOf<Input>)));
    },
    ...frozenParts(readDeclarations(name, sheet, { undo: sheet.undo !== undefined })),
    ...optionalContracts(sheet, checkedInput),
    ...(sheet.idempotency === undefined ? {} : { idempotency: sheet.idempotency }),
    ...(sheet.undoOnly === true ? { undoOnly: true as const } : {}),
    ...(sheet.version === undefined ? {} : { version: sheet.version }),
    ...(sheet.continues === undefined ? {} : { continues: Object.freeze([...sheet.continues]) }),
  });
}

/** What a person agreed to must not change behind their back. */
function frozenParts<Parts extends object>(parts: Parts): Parts {
  for (const part of Object.values(parts)) deepFreeze(part);
  return parts;
}

type Contracts = Pick<Tool, "dryRun" | "generateUndo" | "probe" | "stateVersion" | "resources">;

/** Only what the sheet has: whether a tool can do something is told by whether the function is there. */
function optionalContracts<Input extends ToolInput, Answer>(
  { dryRun, undo, probe, stateVersion, resources }: ToolSheet<Input, Answer>,
  checkedInput: (input: unknown) => InputOf<Input>,
): Contracts {
  const checked = (call: ToolCall) => sheetCall(call, checkedInput(call.input));
  return {
    ...(dryRun && { dryRun: async (call) => toDryRun(await dryRun(checked(call))) }),
    ...(undo && {
      generateUndo: async (call, result) => {
        const output = outputOf(result) as OutputOf<Answer>;
        // The short form is made a whole record, and checked, by `makeUndo`, which also knows whom to tell.
        return (await undo({ ...checked(call), output, result })) as UndoRecord;
      },
    }),
    ...(probe && {
      probe: async (call) => {
        const answer = await probe(checked(call));
        return answer.happened === true
          ? { ...answer, result: toToolResult(answer.result) }
          : answer;
      },
    }),
    ...(stateVersion && { stateVersion: async (call) => stateVersion(checked(call)) }),
    ...(resources && {
      resources: (input, { workingDirectory }) =>
        resources({ input: checkedInput(input), workingDirectory }),
    }),
  };
}

function sheetCall<Input>({ callId, context }: ToolCall, input: Input): SheetCall<Input> {
  const { tenant, sessionId, signal, workingDirectory, places, idempotencyKey, fence } = context;
  // Written out: a context may have more on it than tools should see, and `progress` may need its `this`.
  return {
    callId,
    input,
    tenant,
    sessionId,
    signal,
    workingDirectory,
    places,
    idempotencyKey,
    fence,
    progress: (report) => context.progress(report),
  };
}

type SheetFields = Partial<Readonly<Record<keyof ToolSheet<ToolInput, unknown>, unknown>>>;

const FUNCTIONS = ["dryRun", "undo", "probe", "stateVersion", "resources"] as const;

/** What TypeScript would have told; sheets are also written in JavaScript. */
function sheetProblem(sheet: SheetFields): string | undefined {
  const { description, execute, idempotency, version, continues } = sheet;
  const isDescribed =
    typeof description === "function" ||
    (typeof description === "string" && description.trim() !== "");
  if (!isDescribed) return "A tool needs a description: the model chooses by it.";
  if (typeof execute !== "function") return "A tool needs execute.";
  const wrong = FUNCTIONS.find(
    (field) => sheet[field] !== undefined && typeof sheet[field] !== "function",
  );
  if (wrong !== undefined) return `${wrong} must be a function.`;
  if (idempotency !== undefined && idempotency !== "keyed" && idempotency !== "none") {
    return 'idempotency must be "keyed" or "none".';
  }
  if (version !== undefined && typeof version !== "string") return "version must be a text.";
  if (continues !== undefined && !isListOfTexts(continues)) {
    return "continues must be a list of versions.";
  }
  return undefined;
}

function isListOfTexts(list: unknown): boolean {
  return Array.isArray(list) && list.every((item) => typeof item === "string");
}
