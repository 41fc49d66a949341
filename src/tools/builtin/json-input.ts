import type { JsonObject } from "../../util/json.ts";
import type { StandardSchema } from "../standard-schema.ts";

/**
 * A plain JSON Schema with a type beside it. At run time it stays the JSON Schema that `defineTool` enforces; the claim of
 * being a Standard Schema exists for the compiler alone, which cannot read a type out of a JSON Schema.
 */
export function jsonInput<Value>(
  properties: JsonObject,
  required: readonly (keyof Value & string)[],
): StandardSchema<Value> {
  const schema = { type: "object", properties, required, additionalProperties: false };
  return schema as unknown as StandardSchema<Value>;
}
