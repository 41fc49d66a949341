import { isJsonObject, type JsonObject, type JsonValue } from "../../util/json.ts";
import {
  atLeast,
  atMost,
  canonicalText,
  type Keyword,
  readCount,
  readNames,
  readObject,
  readPattern,
  readSchemaMap,
  readSchemas,
} from "./keyword.ts";
import type { Check, Run } from "./run.ts";

const properties: Keyword = (value, site) => {
  const checks = readSchemaMap(value, site);
  return eachEntry((name, found, run) => {
    const check = checks.get(name);
    return check === undefined || run.below(name, check, found);
  });
};

const patternProperties: Keyword = (value, site) => {
  const rules = [...readSchemaMap(value, site)].map(
    ([source, check]) => [readPattern(source, site), check] as const,
  );
  return eachEntry((name, found, run) => {
    let fits = true;
    for (const [pattern, check] of rules) {
      if (pattern.test(name, run.spend) && !run.below(name, check, found)) fits = false;
    }
    return fits;
  });
};

/** Applies to names that neither `properties` nor `patternProperties` beside it cover. */
const additionalProperties: Keyword = (value, site) => {
  const known = new Set(Object.keys(readObject(site.schema["properties"] ?? {}, site)));
  const sources = Object.keys(readObject(site.schema["patternProperties"] ?? {}, site));
  const patterns = sources.map((source) => readPattern(source, site));
  const check = value === false ? unknownName : site.compile(value);
  return eachEntry((name, found, run) => {
    if (known.has(name) || patterns.some((pattern) => pattern.test(name, run.spend))) return true;
    return run.below(name, check, found);
  });
};

const unknownName: Check = (_value, run) => run.fail("is not a known name here; leave it out");

const propertyNames: Keyword = (value, site) => {
  const check = site.compile(value);
  return eachEntry((name, _found, run) => run.below(name, check, name));
};

const required: Keyword = (value, site) => {
  const names = readNames(value, site);
  return ofObject((object, run) => hasAll(object, names, run));
};

const dependentRequired: Keyword = (value, site) =>
  dependent(
    Object.entries(readObject(value, site)).map(([name, list]) => {
      const names = readNames(list, site);
      return [name, ofObject((object, run) => hasAll(object, names, run))];
    }),
  );

const dependentSchemas: Keyword = (value, site) => dependent([...readSchemaMap(value, site)]);

/** Applies each check to objects that have a property of its name. */
function dependent(rules: readonly (readonly [name: string, check: Check])[]): Check {
  return ofObject((object, run) => {
    let fits = true;
    for (const [name, check] of rules) {
      if (Object.hasOwn(object, name) && !check(object, run)) fits = false;
    }
    return fits;
  });
}

function hasAll(object: JsonObject, names: readonly string[], run: Run): boolean {
  let fits = true;
  for (const name of names) {
    run.spend(1);
    if (!Object.hasOwn(object, name)) fits = run.below(name, missing, null);
  }
  return fits;
}

const missing: Check = (_value, run) => run.fail("is missing");

const prefixItems: Keyword = (value, site) => {
  const checks = readSchemas(value, site);
  return ofArray((list, run) => {
    let fits = true;
    for (const [index, check] of checks.entries()) {
      if (index >= list.length) break;
      if (!run.below(index, check, list[index] as JsonValue)) fits = false;
    }
    return fits;
  });
};

/** Applies to the entries after those that `prefixItems` beside it covers. */
const items: Keyword = (value, site) => {
  if (Array.isArray(value)) {
    site.refuse('must be one schema; a list of schemas is written as "prefixItems" since 2020-12');
  }
  const prefix = site.schema["prefixItems"];
  const first = Array.isArray(prefix) ? prefix.length : 0;
  const check = value === false ? surplusEntry : site.compile(value);
  return ofArray((list, run) => {
    let fits = true;
    for (let index = first; index < list.length; index += 1) {
      run.spend(4);
      if (!run.below(index, check, list[index] as JsonValue)) fits = false;
    }
    return fits;
  });
};

const surplusEntry: Check = (_value, run) => run.fail("is one entry too many; leave it out");

/** `minContains` and `maxContains` restrict nothing without it. */
const contains: Keyword = (value, site) => {
  const check = site.compile(value);
  const { minContains = 1, maxContains = Number.MAX_SAFE_INTEGER } = site.schema;
  const [least, most] = [readCount(minContains, site), readCount(maxContains, site)];
  return ofArray((list, run) => {
    const fitting = list.filter((entry) => run.attempt(check, entry) === undefined).length;
    if (fitting < least) return run.fail(`must contain ${least} or more entries of a certain kind`);
    if (fitting > most) return run.fail(`must contain at most ${most} entries of a certain kind`);
    return true;
  });
};

const checkedByContains: Keyword = (value, site) => {
  readCount(value, site);
  return undefined;
};

/** Uses a set of canonical texts: comparing all pairs of 8,000 small objects takes 1.7 s in ajv. */
const uniqueItems: Keyword = (value, site) => {
  if (typeof value !== "boolean") site.refuse("must be true or false");
  if (value === false) return undefined;
  return ofArray((list, run) => {
    const seen = new Set<string>();
    for (const entry of list) seen.add(canonicalText(entry, run));
    return seen.size === list.length || run.fail("must not have two equal entries");
  });
};

/** Checks objects only; every other value fits. */
function ofObject(check: (object: JsonObject, run: Run) => boolean): Check {
  return (value, run) => !isJsonObject(value) || check(value, run);
}

/** Checks all entries of an object, without stopping at the first issue. */
function eachEntry(check: (name: string, value: JsonValue, run: Run) => boolean): Check {
  return ofObject((object, run) => {
    let fits = true;
    for (const name of Object.keys(object)) {
      run.spend(4);
      if (!check(name, object[name] as JsonValue, run)) fits = false;
    }
    return fits;
  });
}

/** Checks arrays only; every other value fits. */
function ofArray(check: (list: readonly JsonValue[], run: Run) => boolean): Check {
  return (value, run) => !Array.isArray(value) || check(value, run);
}

function countProperties(value: JsonValue, run: Run): number | undefined {
  if (!isJsonObject(value)) return undefined;
  const count = Object.keys(value).length;
  run.spend(count);
  return count;
}

function countItems(value: JsonValue): number | undefined {
  return Array.isArray(value) ? value.length : undefined;
}

export const CONTAINER_KEYWORDS: Readonly<Record<string, Keyword>> = {
  properties,
  patternProperties,
  additionalProperties,
  required,
  propertyNames,
  dependentRequired,
  dependentSchemas,
  minProperties: atLeast(countProperties, "properties"),
  maxProperties: atMost(countProperties, "properties"),
  prefixItems,
  items,
  contains,
  minContains: checkedByContains,
  maxContains: checkedByContains,
  minItems: atLeast(countItems, "entries"),
  maxItems: atMost(countItems, "entries"),
  uniqueItems,
};
