import { canonicalJson } from "../util/canonical-json.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";

/** One place where two definitions differ, for the person who has to agree to the new one. */
export interface DefinitionChange {
  /** Like `inputSchema.properties.cents.maximum`. */
  readonly path: string;
  /** As JSON, with everything invisible written out; empty when the place did not exist. */
  readonly before: string;
  readonly after: string;
}

/**
 * What changed between two definitions (see `definitionOf`), in the order of their names. Nothing is shortened: a change
 * that is cut off is a change that nobody agreed to. Empty exactly when their hashes are equal.
 */
export function definitionDifference(
  before: JsonObject,
  after: JsonObject,
): readonly DefinitionChange[] {
  return differences(before, after, "");
}

function differences(
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  path: string,
): readonly DefinitionChange[] {
  if (isContainer(before) && isContainer(after) && Array.isArray(before) === Array.isArray(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names]
      .toSorted()
      .flatMap((name) =>
        differences(
          entryOf(before, name),
          entryOf(after, name),
          `${path}${path && "."}${shown(name)}`,
        ),
      );
  }
  const [was, is] = [textOf(before), textOf(after)];
  return was === is ? [] : [{ path, before: was, after: is }];
}

function isContainer(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null;
}

function entryOf(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function textOf(value: JsonValue | undefined): string {
  return value === undefined ? "" : shown(canonicalJson(value));
}

/** Controls, marks that join or turn text, and look-alikes from other alphabets would hide a change (T13). */
function shown(text: string): string {
  return text.replace(/[^\x20-\x7e]/gu, (character) => {
    if (/^[\p{L}\p{N}\p{P}\p{S}]$/u.test(character) && isLatin(character)) return character;
    return `\\u{${(character.codePointAt(0) as number).toString(16)}}`;
  });
}

/** German or French words stay readable; a Cyrillic "а" among Latin letters does not pass for one. */
function isLatin(character: string): boolean {
  return /^[\p{Script=Latin}\p{Script=Common}]$/u.test(character);
}
