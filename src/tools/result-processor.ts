import { cutText, errorText } from "../util/error-text.ts";
import { defineTool } from "./define-tool.ts";
import type { ResultOwner, ResultStore } from "./result-store.ts";
import type { Tool } from "./tool.ts";

/** Shortens long outputs. Shape: callback; the orchestrator waits for it before it returns a result. */
export interface ResultProcessor {
  process(owner: ResultOwner, text: string): Promise<ProcessedResult>;
}

export interface ProcessedResult {
  readonly text: string;
  /** True exactly when the text is a summary and the full output is stored. */
  readonly truncated: boolean;
  /** The stored path; empty otherwise. Caller-specific and untrusted: see `forSharedUse`. */
  readonly storedPath: string;
}

export interface ResultProcessorOptions {
  readonly store: Pick<ResultStore, "save">;
  /** Outputs up to this many characters are unchanged. Default 30,000. */
  readonly maxCharacters?: number;
  /** How much of a long output the summary shows. Default 2,000. */
  readonly headCharacters?: number;
  /** Removes secrets before anything is stored or shown; when it fails, the output is dropped. Shape: callback. */
  readonly redact?: (text: string) => string;
  /** The tool that reads the rest. */
  readonly readTool?: string;
}

export function createResultProcessor(options: ResultProcessorOptions): ResultProcessor {
  const { store, redact, readTool = READ_RESULT } = options;
  const { maxCharacters = 30_000, headCharacters = 2_000 } = options;
  return {
    async process(owner, output) {
      let text = output;
      try {
        text = redact?.(output) ?? output;
      } catch (error) {
        return shown(
          `[The output is withheld: secrets could not be taken out of it (${errorText(error)}).]`,
        );
      }
      if (text.length <= maxCharacters) return shown(text);
      try {
        const { id, path } = await store.save(owner, text);
        const head = cutText(text, headCharacters);
        return { text: summary(text, head, id, readTool), truncated: true, storedPath: path };
      } catch (error) {
        return shown(cutVisibly(text, maxCharacters, errorText(error)));
      }
    },
  };
}

/** Without a processor the output is unchanged. */
export function processResult(
  processor: ResultProcessor | undefined,
  owner: ResultOwner,
  text: string,
): ProcessedResult | Promise<ProcessedResult> {
  return processor === undefined ? shown(text) : processor.process(owner, text);
}

/**
 * The result for a shared destination: logs, events, screens. The stored path reveals a location on someone's disk, and
 * the producer of the result may have chosen it.
 */
export function forSharedUse(result: ProcessedResult): ProcessedResult {
  return { ...result, storedPath: "" };
}

function shown(text: string): ProcessedResult {
  return { text, truncated: false, storedPath: "" };
}

/** Contains the id and never the path, because the text may be shared. */
function summary(text: string, head: string, id: string, readTool: string): string {
  const offset = Buffer.byteLength(head.toWellFormed());
  const next = JSON.stringify({ id, offset });
  return (
    `[The output has ${text.length} characters and is stored; its first ${head.length} follow. ` +
    `To read on, call "${readTool}" with ${next}.]\n${head}\n[Not shown: ${text.length - head.length} characters.]`
  );
}

function cutVisibly(text: string, maxCharacters: number, problem: string): string {
  const kept = cutText(text, maxCharacters);
  return (
    `${kept}\n[Cut here: ${text.length - kept.length} more characters could not be stored (${problem}) and are lost. ` +
    "Ask for less at a time if you need them.]"
  );
}

export const READ_RESULT = "read_result";
const DEFAULT_LENGTH = 20_000;

/** The tool with which a model reads the rest of a long output. It sees only results of its own session. */
export function createReadResult(store: Pick<ResultStore, "read">): Tool {
  return defineTool({
    name: READ_RESULT,
    description:
      "Reads a part of an earlier output that was too long to show. That output contains the id.",
    input: {
      type: "object",
      properties: {
        id: { type: "string", maxLength: 64 },
        offset: {
          type: "integer",
          minimum: 0,
          description: "First byte to read; default 0.",
        },
        length: {
          type: "integer",
          minimum: 1,
          maximum: 100_000,
          description: "Number of bytes; default 20,000.",
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
