import { deserialize, serialize } from "node:v8";
import { isPlainJson } from "./json.ts";

/** The only key of the wrapper around values that JSON cannot hold. */
const WRAPPED = "$v8";

/**
 * Encodes any value that a structured clone can copy as one JSON text: plain JSON stays readable, everything else
 * (undefined, -0, NaN, bigint, Date, Map, typed arrays, cycles) is wrapped as `{"$v8":"<base64>"}`. An object with its
 * own key `$v8` is wrapped too, so that data cannot be mistaken for a wrapper.
 *
 * As with any structured clone, class instances become plain objects. Throws TypeError for a function, a symbol or
 * another value that cannot be copied.
 */
export function encodeValue(value: unknown): string {
  if (isPlainJson(value) && !hasWrapperKey(value)) return JSON.stringify(value);
  try {
    return JSON.stringify({ [WRAPPED]: serialize(value).toString("base64") });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : "unknown reason";
    throw new TypeError(
      `This value cannot be kept, because it is not data: ${reason} Pass plain data, without functions and symbols.`,
      { cause },
    );
  }
}

/**
 * Decodes the output of `encodeValue`. Only for texts from the gate's own store: a wrapper is decoded by V8's
 * deserializer, which is not safe for untrusted bytes. Throws TypeError for a text that `encodeValue` did not write.
 */
export function decodeValue(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    if (!hasWrapperKey(value)) return value;
    return deserialize(Buffer.from(String(value[WRAPPED]), "base64"));
  } catch (cause) {
    throw new TypeError("This text was not written by encodeValue, or was changed since.", {
      cause,
    });
  }
}

function hasWrapperKey(value: unknown): value is { [WRAPPED]: unknown } {
  return typeof value === "object" && value !== null && Object.hasOwn(value, WRAPPED);
}
