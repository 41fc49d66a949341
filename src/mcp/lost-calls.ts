// How the gate finds out what came of a call whose answer was lost: by sending it again under the same key, or by asking a read
// tool. The operator declares both, because an upstream's own word about itself does not count.

import type { ProbeSheet } from "../tools/define-tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../util/json.ts";
import { textIn } from "./answers.ts";
import type { McpToolConfig, ProbeConfig } from "./config.ts";
import type { ResponseMessage } from "./message.ts";
import { fillTemplate, outputOfResult } from "./undo.ts";

/** The definition without the argument that the gateway fills in. Throws when it has none of that name. */
export function withoutKey(listed: JsonObject, key: string | undefined): JsonObject {
  if (key === undefined) return listed;
  const { inputSchema } = listed;
  const properties = isJsonObject(inputSchema) ? inputSchema["properties"] : undefined;
  if (!isJsonObject(inputSchema) || !isJsonObject(properties) || !Object.hasOwn(properties, key)) {
    throw new Error(`its schema has no argument "${key}", which is to be its idempotency key`);
  }
  const { [key]: _, ...others } = properties;
  const next: JsonObject = { ...inputSchema, properties: others };
  const { required } = inputSchema;
  if (Array.isArray(required)) next["required"] = required.filter((name) => name !== key);
  return { ...listed, inputSchema: next };
}

/** The arguments as they go to the upstream; undefined for a call with a key of its own, which could be that of another call. */
export function withKey(
  { input, idempotencyKey }: { readonly input: JsonObject; readonly idempotencyKey: string },
  key: string | undefined,
): JsonObject | undefined {
  if (key === undefined) return input;
  return Object.hasOwn(input, key) ? undefined : { ...input, [key]: idempotencyKey };
}

/** The input of the read tool. Throws when the call lacks a named place. */
export function probeInput(
  { input: template }: ProbeConfig,
  { input, key }: { readonly input: JsonObject; readonly key: string },
): JsonObject {
  return fillTemplate(template, { input, key }) as JsonObject;
}

/** What the read tool's answer says about the call. Whatever is not clear is left to a person. */
export function probeAnswerOf(
  { tool, happened, otherwise = "ask", missing = "ask" }: ProbeConfig,
  { input, key }: { readonly input: JsonObject; readonly key: string },
  { result, error }: ResponseMessage,
): ProbeSheet<string> {
  if (result === undefined) {
    // The server failed, which says nothing about the call, whatever the operator said of a refusal.
    return { happened: "unknown", reason: `${tool} failed: ${error?.["message"]}` };
  }
  if (result["isError"] === true) {
    if (missing === "repeat") return { happened: false };
    return { happened: "unknown", reason: `${tool} refused: ${textIn(result)}` };
  }
  const values: JsonObject = { input, key, output: outputOfResult(result) };
  if (holds(happened, values)) {
    return { happened: true, result: `Its answer was lost; ${tool} shows that it happened.` };
  }
  if (otherwise === "repeat") return { happened: false };
  return { happened: "unknown", reason: `${tool} does not show that it happened` };
}

function holds({ at, is, has }: ProbeConfig["happened"], values: JsonObject): boolean {
  let found: JsonValue;
  try {
    found = fillTemplate(at, values);
  } catch {
    // The answer lacks that place.
    return false;
  }
  if (has === undefined) return isEqual(found, fillTemplate(is ?? null, values));
  const items = typeof found === "string" ? found.split("\n") : found;
  const wanted = fillTemplate(has, values);
  return Array.isArray(items) && items.some((one) => isEqual(one, wanted));
}

function isEqual(one: JsonValue, other: JsonValue): boolean {
  return canonicalJson(one) === canonicalJson(other);
}

/** What the version of a tool has to name besides its definition: under another key a repeated call would be another one. */
export function lostTerms({ key, probe }: McpToolConfig): JsonObject {
  return JSON.parse(JSON.stringify({ key, probe }));
}
