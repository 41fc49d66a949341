// Between answers of the gate and results of MCP. A result is stored as the text of its operation, so that a call that was
// approved and executed later returns everything that the upstream answered.

import type { CallAnswer } from "../model/operation.ts";
import { isJsonObject, type JsonObject } from "../util/json.ts";
import type { ResponseMessage } from "./message.ts";

/** What a live call hands through the gate: the response as it was on the wire. */
export interface WireData {
  readonly response: ResponseMessage;
}

export function isWireData(data: unknown): data is WireData {
  return typeof data === "object" && data !== null && "response" in data;
}

/** An upstream's response as a result of the gate. */
export function toolResultOf(response: ResponseMessage): {
  readonly text: string;
  readonly isError?: boolean;
  readonly data: WireData;
} {
  const { result, error } = response;
  if (result === undefined) {
    const { message = "The upstream refused the call." } = error ?? {};
    return { text: String(message), isError: true, data: { response } };
  }
  if (result["isError"] === true) {
    return { text: textIn(result) || "It failed.", isError: true, data: { response } };
  }
  return { text: encodeResult(result), data: { response } };
}

/** The text blocks of a result. */
export function textIn({ content }: JsonObject): string {
  if (!Array.isArray(content)) return "";
  const blocks = content.filter(isJsonObject).filter(({ type }) => type === "text");
  return blocks.map(({ text }) => String(text)).join("\n");
}

/** One block of plain text as itself, because people read it; everything else as JSON on one line. */
function encodeResult(result: JsonObject): string {
  const { content, resultType, ...rest } = result;
  const isPlain = Object.keys(rest).length === 0 && Array.isArray(content) && content.length === 1;
  const text = isPlain ? textIn(result) : "";
  return text !== "" && !text.startsWith("{") ? text : JSON.stringify(result);
}

/** The inverse. Lines after the JSON are notes of the gate and become a block of their own. */
function decodeResult(text: string): JsonObject {
  const [line = "", ...notes] = text.startsWith("{") ? text.split("\n") : [];
  const result = line === "" ? undefined : resultIn(line);
  if (result === undefined) return { content: [{ type: "text", text }] };
  if (notes.length === 0) return result;
  const content = Array.isArray(result["content"]) ? result["content"] : [];
  return { ...result, content: [...content, { type: "text", text: notes.join("\n") }] };
}

function resultIn(line: string): JsonObject | undefined {
  try {
    const value = JSON.parse(line);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The result for the client, from what the gate has on record. */
export function resultFor(answer: CallAnswer): JsonObject {
  if (answer.answer === "done") {
    const result = decodeResult(answer.text);
    const meta = isJsonObject(result["_meta"]) ? result["_meta"] : {};
    return { ...result, _meta: { ...meta, ...handleOf(answer) } };
  }
  const text = answer.answer === "pending" ? pendingText(answer) : answer.text;
  return { content: [{ type: "text", text }], isError: true, _meta: handleOf(answer) };
}

/** The handle for programs; a model reads the text. */
function handleOf(answer: CallAnswer): JsonObject {
  const meta: JsonObject = { "sallyport/answer": answer.answer };
  if ("decisionId" in answer && answer.decisionId !== "") {
    meta["sallyport/decision"] = answer.decisionId;
  }
  if ("operationId" in answer && typeof answer.operationId === "string") {
    meta["sallyport/operation"] = answer.operationId;
  }
  return meta;
}

function pendingText({ text }: CallAnswer): string {
  return `${text} Do not look for another way to do it. To learn the outcome, call this tool again later with exactly the same arguments: that returns what became of this call and does not execute it twice.`;
}
