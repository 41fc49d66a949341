/**
 * What we need of a Standard Schema (standardschema.dev, version 1): zod, valibot, arktype and others bring it along. Kept
 * as a structural type, so that none of them is a dependency. Those that also speak Standard JSON Schema (zod from 4.2)
 * give the JSON Schema for the model by themselves.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: "draft-2020-12" }) => Record<string, unknown>;
    };
  };
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a checked input looks like to the tool. */
export type OutputOfSchema<Schema extends StandardSchema> = NonNullable<
  Schema["~standard"]["types"]
>["output"];

export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard = (value as Partial<StandardSchema>)["~standard"];
  return typeof standard === "object" && standard?.version === 1;
}
