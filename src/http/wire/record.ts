import { z } from "zod";
import { Field, type FieldKind } from "../../model/field.ts";
import type { RecordTable } from "../../model/record.ts";
import { instant } from "./common.ts";

/** Kinds whose schema does not follow from the declaration. */
type Structured = "data" | "bytes";
type KindOf<Entry> = Entry extends Field<unknown, never, infer Kind, boolean> ? Kind : Structured;
type OutOf<Entry> = Entry extends Field<infer Out, never> ? Out : never;
type Given<F, Name extends keyof F> = {
  readonly [N in Name as KindOf<F[N]> extends Structured ? N : never]: z.ZodType;
};
type ShapeOf<F, Name extends keyof F, Schemas> = {
  [N in Name]: N extends keyof Schemas ? Schemas[N] : z.ZodType<OutOf<F[N]>>;
};

/**
 * The wire schema of a record. Only the fields that are named are shown, so that a new one stays inside until somebody
 * decides otherwise. Structured fields bring the schema of what is in them.
 */
export function wireOf<F, const Name extends keyof F & string, Schemas extends Given<F, Name>>(
  { fields }: RecordTable<F>,
  names: readonly Name[],
  ...[schemas]: keyof Given<F, Name> extends never ? [] : [Schemas]
): z.ZodObject<ShapeOf<F, Name, Schemas>> {
  const shape = names.map((name) => {
    const given = (schemas as Readonly<Record<string, z.ZodType>> | undefined)?.[name];
    const field = fields[name];
    if (given !== undefined) return [name, given];
    if (!(field instanceof Field)) throw new TypeError(`${name} needs a schema`);
    return [name, schemaOf(field)];
  });
  return z.object(Object.fromEntries(shape)) as unknown as z.ZodObject<ShapeOf<F, Name, Schemas>>;
}

function schemaOf(field: Field<unknown, never>): z.ZodType {
  const schema = field.codec.names === undefined ? KINDS[field.kind] : z.enum(field.codec.names);
  const plain = field.kind === "flag" ? z.boolean() : schema;
  if (plain === undefined) throw new TypeError(`a field of kind ${field.kind} needs a schema`);
  return field.isOptional && field.absent === undefined ? plain.optional() : plain;
}

const KINDS: Readonly<Partial<Record<FieldKind, z.ZodType>>> = {
  key: z.string(),
  text: z.string(),
  integer: z.int(),
  place: z.int(),
  instant,
};
