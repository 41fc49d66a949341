import type { JsonValue } from "../util/json.ts";
import { isRedacted, type Tag, tagInText } from "./secret-tags.ts";

/** Secrets that were found in one piece of data, so that they can be taken out of the rest of it. */
export type KnownSecrets = Set<string>;

const MAX_KNOWN = 100;
const SHORTEST = 8;
const SHORTEST_WORD = 12;
const MARK = tagInText("hmac-sha256:");

/** Short texts and plain words are left out: `required` under `password` must not blacken a whole report. */
export function addKnown(known: KnownSecrets, value: JsonValue): void {
  if (known.size >= MAX_KNOWN) return;
  if (typeof value === "string") {
    const isWord = /^\p{L}*$/u.test(value);
    if (value.length >= (isWord ? SHORTEST_WORD : SHORTEST) && !MARK.includes(value))
      known.add(value);
  } else if (typeof value === "object" && value !== null) {
    for (const part of Object.values(value)) addKnown(known, part);
  }
}

/** The data with every known secret marked wherever a text or a name repeats it. */
export function withoutKnown(value: JsonValue, known: KnownSecrets, tag: Tag): JsonValue {
  // The longest first, or a secret that contains another one would be taken apart and its rest shown.
  const secrets = [...known].sort((a, b) => b.length - a.length);
  const clean = (text: string): string => {
    let result = text;
    for (const secret of secrets) {
      if (result.includes(secret)) result = result.replaceAll(secret, () => tagInText(tag(secret)));
    }
    return result;
  };
  const walk = (part: JsonValue): JsonValue => {
    if (typeof part === "string") return clean(part);
    if (typeof part !== "object" || part === null || isRedacted(part)) return part;
    if (Array.isArray(part)) return part.map(walk);
    return Object.fromEntries(
      Object.entries(part).map(([name, inner]) => [clean(name), walk(inner)]),
    );
  };
  return walk(value);
}
