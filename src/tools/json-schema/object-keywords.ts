import type { JsonObject, JsonValue } from "../../util/json.ts";
import {
  count,
  isJsonObject,
  type Keyword,
  nameList,
  pattern,
  type Site,
  schemaMap,
  schemaObject,
} from "./keyword.ts";
import type { Pattern } from "./pattern.ts";
import type { Check, Run } from "./run.ts";

/** A check that concerns objects only; every other value fits. */
function ofObject(check: (object: JsonObject, run: Run) => boolean): Check {
  return (value, run) => !isJsonObject(value) || check(value, run);
}

/** True when the check holds for each entry. Not `Array.every`, which stops at the first problem. */
function eachEntry(
  object: JsonObject,
  run: Run,
  check: (name: string, value: JsonValue) => boolean,
): boolean {
  let fits = true;
  for (const name of Object.keys(object)) {
    run.spend(4);
    if (!check(name, object[name] as JsonValue)) fits = false;
  }
  return fits;
}

const properties: Keyword = (value, site) => {
  const checks = schemaMap(value, site);
  return ofObject((object, run) =>
    eachEntry(object, run, (name, found) => {
      const check = checks.get(name);
      return check === undefined || run.below(name, check, found);
    }),
  );
};

const patternProperties: Keyword = (value, site) => {
  const rules = [...patternMap(value, site)];
  return ofObject((object, run) =>
    eachEntry(object, run, (name, found) => {
      let fits = true;
      for (const [matcher, check] of rules) {
        if (matcher.test(name, run.spend) && !run.below(name, check, found)) fits = false;
      }
      return fits;
    }),
  );
};

function patternMap(value: JsonValue | undefined, site: Site): Map<Pattern, Check> {
  if (value === undefined) return new Map();
  const entries = Object.entries(schemaObject(value, site));
  return new Map(
    entries.map(([source, schema]) => [pattern(source, site), site.compile(schema, source)]),
  );
}

/** Concerns the names that neither `properties` nor `patternProperties` beside it know. */
const additionalProperties: Keyword = (value, site) => {
  const known = new Set(Object.keys(schemaObject(site.schema["properties"] ?? {}, site)));
  const sources = Object.keys(schemaObject(site.schema["patternProperties"] ?? {}, site));
  const patterns = sources.map((source) => pattern(source, site));
  const check = value === false ? unknownName : site.compile(value);
  return ofObject((object, run) =>
    eachEntry(object, run, (name, found) => {
      if (known.has(name) || patterns.some((matcher) => matcher.test(name, run.spend))) return true;
      return run.below(name, check, found);
    }),
  );
};

const unknownName: Check = (_value, run) => run.fail("is not a known name here; leave it out");

const required: Keyword = (value, site) => {
  const names = nameList(value, site);
  return ofObject((object, run) => hasAll(object, names, run));
};

function hasAll(object: JsonObject, names: readonly string[], run: Run): boolean {
  let fits = true;
  for (const name of names) {
    run.spend(1);
    if (!Object.hasOwn(object, name)) fits = run.below(name, missing, null);
  }
  return fits;
}

const missing: Check = (_value, run) => run.fail("is missing");

const propertyNames: Keyword = (value, site) => {
  const check = site.compile(value);
  return ofObject((object, run) => eachEntry(object, run, (name) => run.below(name, check, name)));
};

const dependentRequired: Keyword = (value, site) => {
  const rules = Object.entries(schemaObject(value, site)).map(
    ([name, names]) => [name, nameList(names, site)] as const,
  );
  return ofObject((object, run) =>
    rules.reduce((fits, [name, names]) => {
      return (!Object.hasOwn(object, name) || hasAll(object, names, run)) && fits;
    }, true),
  );
};

const dependentSchemas: Keyword = (value, site) => {
  const rules = [...schemaMap(value, site)];
  return ofObject((object, run) =>
    rules.reduce((fits, [name, check]) => {
      return (!Object.hasOwn(object, name) || check(object, run)) && fits;
    }, true),
  );
};

const minProperties: Keyword = (value, site) => {
  const least = count(value, site);
  return ofObject(
    (object, run) =>
      sizeOf(object, run) >= least || run.fail(`must have ${least} properties or more`),
  );
};

const maxProperties: Keyword = (value, site) => {
  const most = count(value, site);
  return ofObject(
    (object, run) =>
      sizeOf(object, run) <= most || run.fail(`must have at most ${most} properties`),
  );
};

function sizeOf(object: JsonObject, run: Run): number {
  const size = Object.keys(object).length;
  run.spend(size);
  return size;
}

export const OBJECT_KEYWORDS: Readonly<Record<string, Keyword>> = {
  properties,
  patternProperties,
  additionalProperties,
  required,
  propertyNames,
  dependentRequired,
  dependentSchemas,
  minProperties,
  maxProperties,
};
