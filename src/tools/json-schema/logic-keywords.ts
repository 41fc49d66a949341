import type { InputIssue } from "../tool.ts";
import { type Keyword, readSchemaMap, readSchemas } from "./keyword.ts";
import type { Run } from "./run.ts";

const allOf: Keyword = (value, site) => {
  const branches = readSchemas(value, site);
  return (found, run) => run.every(branches, found);
};

const anyOf: Keyword = (value, site) => {
  const branches = readSchemas(value, site);
  return (found, run) => {
    const tries: (readonly InputIssue[])[] = [];
    for (const branch of branches) {
      const issues = run.attempt(branch, found);
      if (issues === undefined) return true;
      tries.push(issues);
    }
    return fitsNone(tries, run);
  };
};

const oneOf: Keyword = (value, site) => {
  const branches = readSchemas(value, site);
  return (found, run) => {
    const tries = branches.map((branch) => run.attempt(branch, found));
    const failed = tries.filter((issues) => issues !== undefined);
    const fitting = tries.length - failed.length;
    if (fitting === 1) return true;
    if (fitting === 0) return fitsNone(failed, run);
    return run.fail(`must fit exactly one of ${tries.length} forms, but fits ${fitting}`);
  };
};

/** Reports the issues of the form with the fewest: most likely the sender meant that one. */
function fitsNone(tries: readonly (readonly InputIssue[])[], run: Run): false {
  run.fail(`fits none of the ${tries.length} allowed forms`);
  return run.report(tries.reduce((best, issues) => (issues.length < best.length ? issues : best)));
}

const not: Keyword = (value, site) => {
  const check = site.compile(value);
  return (found, run) =>
    run.attempt(check, found) !== undefined || run.fail("has a form that is not allowed");
};

const condition: Keyword = (value, site) => {
  const check = site.compile(value);
  const { then = true, else: otherwise = true } = site.schema;
  const [onTrue, onFalse] = [site.compile(then, "then"), site.compile(otherwise, "else")];
  return (found, run) =>
    run.attempt(check, found) === undefined ? onTrue(found, run) : onFalse(found, run);
};

/** Compiled here so that unsupported keywords in it are found; applied by `if` beside it. */
const compiledOnly: Keyword = (value, site) => {
  site.compile(value);
  return undefined;
};

const definitions: Keyword = (value, site) => {
  readSchemaMap(value, site);
  return undefined;
};

/** References stay inside the schema: nothing is fetched, and no name selects what is loaded (T18). */
const reference: Keyword = (value, site) => {
  if (typeof value !== "string") return site.refuse("must be a text");
  if (value !== "#" && !value.startsWith("#/")) {
    return site.refuse('may only point into the same schema, like "#/$defs/name"');
  }
  return site.resolve(value);
};

/** Pairs, because an object with a `then` would be treated as a promise. */
export const LOGIC_KEYWORDS: readonly (readonly [string, Keyword])[] = [
  ["$ref", reference],
  ["$defs", definitions],
  ["definitions", definitions],
  ["allOf", allOf],
  ["anyOf", anyOf],
  ["oneOf", oneOf],
  ["not", not],
  ["if", condition],
  ["then", compiledOnly],
  ["else", compiledOnly],
];
