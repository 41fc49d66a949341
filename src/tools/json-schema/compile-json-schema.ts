import { SallyportError } from "../../model/errors.ts";
import { canonicalJson } from "../../util/canonical-json.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../util/json.ts";
import { formatPath, type JsonPath } from "../../util/json-error.ts";
import type { InputIssue } from "../tool.ts";
import {
  type Check,
  CONTAINER_KEYWORDS,
  type Keyword,
  LOGIC_KEYWORDS,
  OverBudget,
  SchemaRun,
  type Site,
  VALUE_KEYWORDS,
} from "./keywords.ts";

/** Returns the issues of a value, none when it is valid. Never throws for a JSON value. */
export type JsonSchemaCheck = (value: JsonValue) => readonly InputIssue[];

/**
 * Compiles a JSON Schema (2020-12) into a check. Schemas may come from untrusted tool servers, so a keyword that
 * restricts but is not supported is rejected instead of ignored, references stay inside the schema, and every check has
 * a budget (T27). docs/decisions/2026-11-17-json-schema.md says why no library does this. Throws invalid_input with the
 * place in the schema.
 */
export function compileJsonSchema(schema: JsonValue): JsonSchemaCheck {
  if (canonicalJson(schema).length > LARGEST_SCHEMA) {
    throw badSchema([], `is larger than ${LARGEST_SCHEMA} characters`);
  }
  const root = new Compiler(schema).compile(schema, []);
  return (value) => {
    const run = new SchemaRun();
    try {
      root(value, run);
      return run.issues;
    } catch (error) {
      if (!(error instanceof OverBudget)) throw error;
      return [{ path: formatPath(run.path), message: error.message }];
    }
  };
}

const LARGEST_SCHEMA = 256 * 1024;
const MOST_SUBSCHEMAS = 2_000;

const KEYWORDS: ReadonlyMap<string, Keyword> = new Map([
  ...LOGIC_KEYWORDS,
  ...Object.entries({ ...VALUE_KEYWORDS, ...CONTAINER_KEYWORDS }),
]);

/**
 * Keywords that restrict nothing. The standard makes `format` an annotation. `nullable` only widens, so ignoring it is
 * the stricter reading. `secret` marks secret fields (secret-fields.ts). Names that start with `x-` are free.
 */
const ANNOTATIONS: ReadonlySet<string> = new Set(
  (
    "$schema $id $comment title description default example examples deprecated readOnly writeOnly format nullable " +
    "contentEncoding contentMediaType contentSchema enumNames enumDescriptions markdownDescription discriminator propertyOrdering externalDocs xml secret id"
  ).split(" "),
);

class Compiler {
  readonly #root: JsonValue;
  /** By identity: each schema is compiled once and may refer to itself. */
  readonly #compiled = new Map<JsonObject, { check: Check }>();

  constructor(root: JsonValue) {
    this.#root = root;
  }

  compile(schema: JsonValue | undefined, at: JsonPath): Check {
    if (schema === true) return () => true;
    if (schema === false) return (_value, run) => run.fail("is not allowed");
    if (!isJsonObject(schema)) throw badSchema(at, "must be an object, true or false");
    const known = this.#compiled.get(schema);
    if (known !== undefined) return (value, run) => known.check(value, run);
    if (this.#compiled.size >= MOST_SUBSCHEMAS) {
      throw badSchema(at, `is one of more than ${MOST_SUBSCHEMAS} schemas`);
    }
    const holder = { check: unset };
    this.#compiled.set(schema, holder);
    const checks = Object.keys(schema)
      .map((name) => this.#keyword(name, schema, at))
      .filter((check) => check !== undefined);
    holder.check = (value, run) => run.every(checks, value);
    return holder.check;
  }

  #keyword(name: string, schema: JsonObject, at: JsonPath): Check | undefined {
    const place = [...at, name];
    if (name === "$id" && at.length > 0) {
      throw badSchema(place, "is accepted at the top only, as it would move references");
    }
    const keyword = KEYWORDS.get(name);
    if (keyword !== undefined) return keyword(schema[name] as JsonValue, this.#site(schema, place));
    if (ANNOTATIONS.has(name) || name.startsWith("x-")) return undefined;
    throw badSchema(place, "is not a keyword this validator knows, so it could not be enforced");
  }

  #site(schema: JsonObject, place: JsonPath): Site {
    return {
      schema,
      compile: (inner, ...steps) => this.compile(inner, [...place, ...steps]),
      resolve: (reference) => this.#resolve(reference, place),
      refuse: (problem) => {
        throw badSchema(place, problem);
      },
    };
  }

  #resolve(reference: string, place: JsonPath): Check {
    const steps = reference
      .split("/")
      .slice(1)
      .map((step) => decodeStep(step, place));
    let target: JsonValue | undefined = this.#root;
    for (const step of steps) target = entryOf(target, step);
    if (target === undefined) throw badSchema(place, "points to a place that does not exist");
    return this.compile(target, steps);
  }
}

const unset: Check = () => {
  throw new OverBudget("the schema is not complete yet");
};

function decodeStep(step: string, place: JsonPath): string {
  try {
    return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    throw badSchema(place, "is not a JSON pointer");
  }
}

function entryOf(value: JsonValue | undefined, name: string): JsonValue | undefined {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as JsonObject)[name];
}

function badSchema(at: JsonPath, problem: string): SallyportError {
  const hint = `The JSON Schema cannot be used: ${formatPath(at)} ${problem}.`;
  return new SallyportError("invalid_input", { what: "JSON Schema", at: formatPath(at), hint });
}
