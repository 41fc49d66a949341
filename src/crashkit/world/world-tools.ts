import { request } from "node:http";
import { SallyportError } from "../../model/errors.ts";
import { defineTool } from "../../tools/define-tool.ts";
import type { Tool } from "../../tools/tool.ts";
import { canonicalJson } from "../../util/canonical-json.ts";
import type { JsonObject } from "../../util/json.ts";
import type { Kind } from "../evidence.ts";
import { type Fault, KINDS, type Sent, type WorldAnswer } from "./world.ts";

export interface WorldLine {
  readonly port: number;
  /** What shall go wrong with the effect that is asked for now. */
  fault(): Fault;
  /** Points inside a call, which only the tool itself can come past. */
  at(point: "S6.request" | "S6.effect"): void;
}

const INPUT: JsonObject = {
  type: "object",
  properties: {
    run: { type: "string" },
    step: { type: "integer" },
    undo: { type: "boolean" },
    refuse: { type: "boolean" },
  },
  required: ["run", "step", "undo", "refuse"],
  additionalProperties: false,
};

/** What the policy of the built-in world lets through. */
export const FREE = "world.free_";

/** Of each kind one tool that people are asked about, one that the policy lets through, and one that takes both back. */
export function worldTools(line: WorldLine): readonly Tool[] {
  return KINDS.flatMap((kind) => [
    toolOf(kind, `world.${kind}`, line),
    toolOf(kind, `${FREE}${kind}`, line),
    toolOf(kind, `world.undo_${kind}`, line),
  ]);
}

function toolOf(kind: Kind, name: string, line: WorldLine): Tool {
  const isUndo = name.includes("undo");
  const sent = (input: unknown, ask: Sent["ask"], key = "", fence = 0): Sent => {
    return {
      ask,
      kind,
      key,
      fence,
      input: canonicalJson(input as JsonObject),
      fault: ask === "do" ? line.fault() : "none",
    };
  };
  return defineTool({
    name,
    description: `Changes something in production that is ${kind}.`,
    input: INPUT,
    safety: { effect: "external", reversible: !isUndo },
    idempotency: kind === "keyed" ? "keyed" : "none",
    dryRun: ({ input }) => `would do ${canonicalJson(input as JsonObject)}`,
    stateVersion: async ({ input }) => (await ask(line.port, sent(input, "version"))).text,
    async execute({ input, idempotencyKey, fence }) {
      line.at("S6.request");
      const { text, refused } = await ask(
        line.port,
        sent(input, "do", idempotencyKey, fence),
      ).catch((cause) => {
        line.at("S6.effect");
        throw new SallyportError("outcome_unknown", { tool: name }, cause);
      });
      return { text, isError: refused };
    },
    ...(isUndo
      ? {}
      : {
          undo: ({ input }) => ({
            tool: `world.undo_${kind}`,
            input: { ...(input as JsonObject), undo: true },
          }),
        }),
    ...(kind === "probed"
      ? {
          async probe({ input, idempotencyKey, fence }) {
            const asked = sent(input, "probe", idempotencyKey, fence);
            const { happened, text } = await ask(line.port, asked);
            return happened ? { happened, result: { text, isError: false } } : { happened: false };
          },
        }
      : {}),
  });
}

function ask(port: number, sent: Sent): Promise<WorldAnswer> {
  return new Promise((resolve, reject) => {
    // A connection for each question: a killed process leaves none behind that another would take for alive.
    const options = { host: "127.0.0.1", port, method: "POST", agent: false } as const;
    const asked = request(options, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      response.on("error", reject).on("end", () => resolve(JSON.parse(body)));
    });
    asked.on("error", reject).end(JSON.stringify(sent));
  });
}
