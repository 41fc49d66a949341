import { defineTool } from "../define-tool.ts";
import type { Tool } from "../tool.ts";

export const PAYLOAD_TOOL = "outside.payload";

/** What another platform stages: bytes that only it can read. */
export interface StagedPayload {
  /** Which tool of the platform it is for. */
  readonly source: string;
  readonly payload: string;
  readonly encoding: "text" | "base64";
  /** Of the platform; the gate shows it and reads none of it. */
  readonly metadata: object;
}

const INPUT = {
  type: "object",
  properties: {
    source: { type: "string", minLength: 1, maxLength: 200 },
    payload: { type: "string", maxLength: 700_000 },
    encoding: { enum: ["text", "base64"] },
    metadata: { type: "object" },
  },
  required: ["source", "payload", "encoding", "metadata"],
  additionalProperties: false,
};

/**
 * For platforms that execute by themselves: register it, and `decisions.stage` puts their payloads through both reviews and
 * before a person. What is approved waits for their executor, which takes a permit and reports.
 */
export function payloadTool(): Tool {
  return defineTool({
    name: PAYLOAD_TOOL,
    description:
      "Stages a payload of another platform, which carries it out itself once it is approved.",
    input: INPUT,
    safety: { effect: "external" },
    execution: "external",
    dryRun({ input }) {
      const { source, payload, encoding } = input as unknown as StagedPayload;
      const bytes = Buffer.byteLength(payload, encoding === "text" ? "utf8" : "base64");
      return `${source} carries out a payload of ${bytes} bytes, which the gate cannot read.`;
    },
  });
}
