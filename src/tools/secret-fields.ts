import { isJsonObject, type JsonObject, type JsonValue } from "../util/json.ts";

const DEEPEST = 16;
const MOST_STEPS = 10_000;

/** Names from the top of the input; `*` matches any name or index. */
export type SecretField = readonly string[];

/**
 * The places of an input that its schema marks as secret (T22): `"secret": true` (in zod: `.meta({ secret: true })`),
 * `"writeOnly": true` or `"format": "password"`. The redactor takes them as `secretPaths`, so that they are never
 * stored. A recursive schema is followed 16 levels deep; if a schema is too complex to follow, all fields are secret.
 */
export function secretFieldsOf(tool: { readonly inputSchema: JsonObject }): readonly SecretField[] {
  const walk: Walk = { root: tool.inputSchema, found: new Map(), stepsLeft: MOST_STEPS };
  collect(tool.inputSchema, [], new Set(), walk);
  return walk.stepsLeft < 0 ? [["*"]] : [...walk.found.values()];
}

interface Walk {
  readonly root: JsonObject;
  readonly found: Map<string, SecretField>;
  stepsLeft: number;
}

function collect(
  schema: JsonValue | undefined,
  path: readonly string[],
  open: ReadonlySet<JsonValue>,
  walk: Walk,
): void {
  walk.stepsLeft -= 1;
  // A schema that is already being walked at this place adds nothing.
  if (walk.stepsLeft < 0 || !isJsonObject(schema) || path.length > DEEPEST || open.has(schema))
    return;
  if (isMarked(schema)) {
    walk.found.set(path.join("\n"), path);
    return;
  }
  const here = new Set([...open, schema]);
  for (const inner of samePlace(schema, walk.root)) collect(inner, path, here, walk);
  for (const [step, inner] of below(schema)) collect(inner, [...path, step], new Set(), walk);
}

function isMarked(schema: JsonObject): boolean {
  return (
    schema["secret"] === true || schema["writeOnly"] === true || schema["format"] === "password"
  );
}

/** Subschemas for the same value. */
function samePlace(schema: JsonObject, root: JsonObject): (JsonValue | undefined)[] {
  const {
    allOf,
    anyOf,
    oneOf,
    if: condition,
    then: onTrue,
    else: onFalse,
    $ref,
    dependentSchemas,
  } = schema;
  const lists = [allOf, anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? list : []));
  const dependent = isJsonObject(dependentSchemas) ? Object.values(dependentSchemas) : [];
  return [...lists, ...dependent, condition, onTrue, onFalse, target($ref, root)];
}

/** Subschemas for values inside the value. */
function below(schema: JsonObject): (readonly [string, JsonValue | undefined])[] {
  const { properties, patternProperties, additionalProperties, items, prefixItems, contains } =
    schema;
  const named = isJsonObject(properties) ? Object.entries(properties) : [];
  const patterns = isJsonObject(patternProperties) ? Object.values(patternProperties) : [];
  const list = Array.isArray(prefixItems) ? prefixItems : [];
  const any = [...patterns, additionalProperties, items, contains].map(
    (inner) => ["*", inner] as const,
  );
  return [...named, ...list.map((inner, index) => [String(index), inner] as const), ...any];
}

function target(reference: JsonValue | undefined, root: JsonObject): JsonValue | undefined {
  if (typeof reference !== "string" || !reference.startsWith("#")) return undefined;
  let place: JsonValue | undefined = root;
  for (const step of reference.split("/").slice(1)) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    place = typeof place === "object" && place !== null ? (place as JsonObject)[name] : undefined;
  }
  return place;
}
