/**
 * Construction checks. A missing or impossible part is a mistake of whoever wires the system up, so it is reported when
 * the part is made and not at the first review, where it could only show up as a refusal. Throws TypeError.
 */
export function need(holds: boolean, sentence: string): asserts holds {
  if (!holds) throw new TypeError(sentence);
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** A name that can stand in an audit entry. */
export function isFilledText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

/** True for anything with a usable name and a method of that name: a validator, an evaluator, a tool, a listener. */
export function isNamedPart(part: unknown, method: string): boolean {
  return isObject(part) && isFilledText(part["name"]) && typeof part[method] === "function";
}
