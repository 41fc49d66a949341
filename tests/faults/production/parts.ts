// What a host brings to a port in these tests: tools that reach production, reviews and rules.

import { request } from "node:http";
import type { ServedParts } from "../../../src/cli/serve.ts";
import { allowAlways } from "../../../src/gate/review.ts";
import { SallyportError } from "../../../src/model/errors.ts";
import type { CallRequest } from "../../../src/model/operation.ts";
import { defineTool } from "../../../src/tools/define-tool.ts";
import type { Tool } from "../../../src/tools/tool.ts";
import { sampleVerdictValidator } from "../../support/validators.ts";
import { KINDS, type Kind, type Mode, type ProductionAnswer, type Sent } from "./production.ts";

/** `ask`: a person decides. `free`: the policy lets it through. `never`: the policy refuses it. */
export const LANES = ["ask", "free", "never"] as const;
export type Lane = (typeof LANES)[number];

/** One thing that an agent wants done. */
export interface Wanted {
  readonly id: string;
  readonly kind: Kind;
  readonly lane: Lane;
  readonly mode: Mode;
  /** Asked for without a key: nothing but the caller's own care makes it happen once. */
  readonly unkeyed?: boolean;
}

/** `reversible`: plain tools that a person is asked about can be undone, by another call that changes production. */
export function partsFor(
  productionPort: number,
  leaseMs: number,
  { reversible = false } = {},
): ServedParts {
  return {
    tools: KINDS.flatMap((kind) =>
      LANES.map((lane) => {
        const isReversible = reversible && kind === "plain" && lane === "ask";
        return toolOf(kind, lane, productionPort, isReversible);
      }),
    ),
    validators: {
      tech: sampleVerdictValidator("schema"),
      business: sampleVerdictValidator("limits"),
    },
    guard: allowAlways,
    policy: {
      version: "1",
      rules: [
        { id: "free", effect: "allow", tool: "free.*", reason: "a test" },
        { id: "never", effect: "deny", tool: "never.*", reason: "a test" },
      ],
    },
    leaseMs,
  };
}

/** The key is the thing's id: a repeated request is for the same thing. */
export function requestOf({ id, kind, lane, mode, unkeyed = false }: Wanted): CallRequest {
  const request = { callId: id, tool: `${lane}.${kind}`, input: { id, mode } };
  return unkeyed ? request : { ...request, key: id };
}

/** What undoing a thing is called in the ledger. */
export function undoOf(id: string): string {
  return `undo-${id}`;
}

/** What a person finds who looks at production. */
export async function look(productionPort: number, id: string): Promise<boolean> {
  const sent: Sent = { ask: "look", kind: "plain", id, mode: "ok", key: "", fence: 0 };
  return (await post(productionPort, sent)).happened;
}

function toolOf(kind: Kind, lane: Lane, port: number, reversible: boolean): Tool {
  const sent = (input: unknown, ask: Sent["ask"], key: string, fence: number): Sent => {
    const { id, mode } = input as { id: string; mode: Mode };
    return { ask, kind, id, mode, key, fence };
  };
  return defineTool({
    name: `${lane}.${kind}`,
    description: `Changes something in production that is ${kind}.`,
    input: {
      type: "object",
      properties: { id: { type: "string" }, mode: { enum: ["ok", "refuse", "cut"] } },
      required: ["id", "mode"],
      additionalProperties: false,
    },
    safety: { effect: "external", ...(reversible ? { reversible } : {}) },
    idempotency: kind === "keyed" ? "keyed" : "none",
    dryRun: ({ input }) => `would do ${sent(input, "do", "", 0).id}`,
    async execute({ input, idempotencyKey, fence }) {
      const asked = post(port, sent(input, "do", idempotencyKey, fence));
      const { text, refused } = await asked.catch((cause) => {
        throw new SallyportError("outcome_unknown", { tool: `${lane}.${kind}` }, cause);
      });
      return { text, isError: refused };
    },
    ...(reversible
      ? {
          undo: ({ input }: { readonly input: unknown }) => ({
            tool: `free.${kind}`,
            input: { id: undoOf(sent(input, "do", "", 0).id), mode: "ok" },
          }),
        }
      : {}),
    ...(kind === "probed"
      ? {
          async probe({ input, idempotencyKey, fence }) {
            const asked = sent(input, "probe", idempotencyKey, fence);
            const { happened, text } = await post(port, asked);
            return happened ? { happened, result: { text, isError: false } } : { happened: false };
          },
        }
      : {}),
  });
}

function post(port: number, sent: Sent): Promise<ProductionAnswer> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, method: "POST", agent: false } as const;
    const asked = request(options, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      response.on("error", reject).on("end", () => resolve(JSON.parse(body)));
    });
    asked.on("error", reject).end(JSON.stringify(sent));
  });
}
