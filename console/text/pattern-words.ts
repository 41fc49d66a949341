import { canonical, type Json } from "./canonical.ts";

/** One test of a standing rule in words; what is not known is shown as it is stored. */
export function testWords(test: { readonly [key: string]: Json }): string {
  const { optional, ...asked } = test;
  const may = optional === true ? " (or left out)" : "";
  return `${askedWords(asked)}${may}`;
}

function askedWords(asked: { readonly [key: string]: Json }): string {
  const { equals, oneOf, atLeast, atMost, like, any } = asked;
  switch (Object.keys(asked).sort().join()) {
    case "equals":
      return `is ${canonical(equals ?? null)}`;
    case "oneOf":
      return `is one of ${(Array.isArray(oneOf) ? oneOf : []).map((one) => canonical(one)).join(", ")}`;
    case "atLeast":
      return `is at least ${canonical(atLeast ?? null)}`;
    case "atMost":
      return `is at most ${canonical(atMost ?? null)}`;
    case "atLeast,atMost":
      return `is from ${canonical(atLeast ?? null)} to ${canonical(atMost ?? null)}`;
    case "like":
      return `looks like ${canonical(like ?? null)}`;
    case "any":
      return any === true ? "is anything" : canonical(asked);
    default:
      return canonical(asked);
  }
}

/** The narrowest rule that lets such an input through, to be loosened by hand. */
export function patternOf(input: Json): { readonly [key: string]: { readonly equals: Json } } {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return {};
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => [name, { equals: value as Json }]),
  );
}
