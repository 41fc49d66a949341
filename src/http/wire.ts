import { z } from "zod";
import { imageOf } from "../gate/image-result.ts";
import { SallyportError } from "../model/errors.ts";
import { FINDING_SEVERITIES } from "../model/finding.ts";
import {
  INTERACTION_OUTCOMES,
  INTERACTIONS,
  type InteractionOutcome,
} from "../model/interaction.ts";
import type { CallAnswer } from "../model/operation.ts";
import { Field, type FieldKind, type RecordTable } from "../model/record.ts";
import { fromIso, toIso } from "../util/clock.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import type { Timers } from "../util/timers.ts";

/** Any JSON. The body was already parsed strictly; only absence is refused here. */
export const json = z.any().refine((value) => value !== undefined, {
  error: "must be given",
}) as unknown as z.ZodType<JsonValue, JsonValue>;

export const jsonObject = z.record(z.string(), z.any()) as unknown as z.ZodType<
  JsonObject,
  JsonObject
>;

/** Names that become part of keys and screens; invalid ones are refused where they are used. */
export const name = z.string().min(1).max(512);
export const anyText = z.string();
export const instantText = z.string().max(30);
export const reason = z.string().max(10_000);
/** What reviewers and agents say to each other. */
export const remark = reason.min(1);

/** Several fields of an answer that are text. */
export function texts<const Name extends string>(...names: Name[]) {
  return Object.fromEntries(names.map((one) => [one, anyText])) as Record<Name, typeof anyText>;
}

export const NO_INPUT = z.strictObject({});

export const paging = {
  limit: z.int().min(1).max(500).optional(),
  /** The `next` of the page before. */
  cursor: z.string().max(200).optional(),
};

interface Paging {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

export function list<Item extends z.ZodType>(item: Item) {
  return z.array(item).readonly();
}

export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: list(item),
    /** The `cursor` of the next page; null at the end. */
    next: z.string().nullable(),
  });
}

export const DEFAULT_PAGE = 100;

/** A place in a list. Opaque to clients; it names no record and means nothing in another tenant's list. */
export function cursorOf(place: number): string {
  return Buffer.from(`1:${place}`).toString("base64url");
}

/** The same for lists whose places are ids. */
export function idCursor(id: string): string {
  return Buffer.from(`2:${id}`).toString("base64url");
}

export function isIdCursor(cursor: string): boolean {
  return Buffer.from(cursor, "base64url").toString("latin1").startsWith("2:");
}

export function idOf(cursor: string): string {
  const text = Buffer.from(cursor, "base64url").toString("utf8");
  const id = text.slice(2);
  if (!text.startsWith("2:") || idCursor(id) !== cursor) throw noCursor();
  return id;
}

/** Where to continue a list ordered by id; undefined for its start. */
export function idAfter(cursor: string | undefined): string | undefined {
  return cursor === undefined ? undefined : idOf(cursor);
}

/** Throws invalid_input for a cursor that no page returned. */
export function placeOf(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  const text = Buffer.from(cursor, "base64url").toString("latin1");
  const place = /^1:(\d{1,15})$/.exec(text)?.[1];
  if (place === undefined || cursorOf(Number(place)) !== cursor) throw noCursor();
  return Number(place);
}

function noCursor(): SallyportError {
  const hint = "Pass the `next` of the previous page, unchanged.";
  return new SallyportError("invalid_input", { what: "cursor", hint });
}

/** An instant in ISO UTC format. Throws invalid_input. */
export function momentOf(text: string): string;
export function momentOf(text: string | undefined): string | undefined;
export function momentOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    return toIso(fromIso(text));
  } catch (error) {
    const hint = "Write a time like 2026-11-15T06:00:00.000Z.";
    throw new SallyportError("invalid_input", { what: "moment", hint }, error);
  }
}

/** One page of a list that was read with one item more than the limit. */
export function page<Item>(
  items: readonly Item[],
  limit: number,
  placeOfItem: (item: Item, index: number) => number,
): { items: readonly Item[]; next: string | null } {
  const shown = items.slice(0, limit);
  const last = shown.at(-1);
  const hasMore = items.length > limit && last !== undefined;
  return { items: shown, next: hasMore ? cursorOf(placeOfItem(last, shown.length - 1)) : null };
}

/** One page of a list that is read in the order of insertion. */
export async function pageByOrd<Item extends { readonly ord: number }, Shown = Item>(
  { cursor, limit = DEFAULT_PAGE }: Paging,
  read: (query: { after: number; limit: number }) => Promise<readonly Item[]>,
  show: (item: Item) => Shown,
) {
  const found = await read({ after: placeOf(cursor), limit: limit + 1 });
  const { items, next } = page(found, limit, ({ ord }) => ord);
  return { items: items.map(show), next };
}

/** One page of a complete list. */
export function pageFrom<Item>(all: readonly Item[], { cursor, limit = DEFAULT_PAGE }: Paging) {
  const start = placeOf(cursor);
  return page(all.slice(start, start + limit + 1), limit, (_, index) => start + index + 1);
}

export interface BytePage<Item, Shown, Place> {
  readonly limit: number;
  /** The place to begin after; undefined for the start of a list whose places are ids. */
  readonly after: Place | undefined;
  readonly timers: Timers;
  read(after: Place | undefined, count: number): Promise<readonly Item[]>;
  place(item: Item): Place;
  cursor(place: Place): string;
  /** Approximate size of the item in bytes. */
  weigh(item: Item): number;
  show(item: Item): Shown;
}

/** Most bytes that one page sends, and reads for that; at least one item is always returned. */
export const PAGE_BYTES = 1024 * 1024;
const READ_BYTES = 8 * 1024 * 1024;
const FIRST_CHUNK = 8;
const MOST_CHUNK = 32;

/**
 * One page of a list whose items may be large: limited by bytes as well as by number, and read in small parts, so that a
 * large list never blocks the process for long. `next` says where to continue, also after a page that is not full.
 */
export async function bytePage<Item, Shown, Place>(list: BytePage<Item, Shown, Place>) {
  const items: Shown[] = [];
  let { after } = list;
  let [sent, read, chunk] = [0, 0, FIRST_CHUNK];
  for (;;) {
    const count = Math.min(chunk, list.limit + 1 - items.length);
    const found = await list.read(after, count);
    for (const item of found) {
      const shown = list.show(item);
      const bytes = Buffer.byteLength(JSON.stringify(shown));
      const isFull = items.length >= list.limit || sent + bytes > PAGE_BYTES || read > READ_BYTES;
      if (after !== undefined && items.length > 0 && isFull) {
        return { items, next: list.cursor(after) };
      }
      items.push(shown);
      sent += bytes;
      read += list.weigh(item);
      after = list.place(item);
    }
    if (found.length < count) return { items, next: null };
    chunk = Math.min(MOST_CHUNK, 2 * chunk);
    // Yield to other work between parts.
    await new Promise<void>((resolve) => list.timers.soon(resolve));
  }
}

/** How many of these, from the first, one page may send that has so many bytes already; one at least in an empty page. */
export function fitting(items: readonly unknown[], before = 0): number {
  let sent = before;
  const tooMany = items.findIndex((item, index) => {
    sent += bytesOf([item]);
    return index + before > 0 && sent > PAGE_BYTES;
  });
  return tooMany < 0 ? items.length : tooMany;
}

/** Bytes of the items as sent, without separators. */
export function bytesOf(items: readonly unknown[]): number {
  return items.reduce<number>((sum, item) => sum + Buffer.byteLength(JSON.stringify(item)), 0);
}

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
 * The wire schema of a record. Only the fields that are named are shown, so that a new one stays internal until it
 * is named here. Structured fields bring the schema of what is in them.
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
  instant: instantText,
};

export const callRequest = z.strictObject({
  callId: name,
  tool: name,
  /** JSON text as the model wrote it, or a value. */
  input: json,
  messageId: name.optional(),
  turn: z.int().min(0).optional(),
  key: name.optional(),
  /** Facts for guards and validators, stored with the decision; some names are the gate's own. */
  metadata: jsonObject.optional(),
});

export const finding = z.object({
  severity: z.enum(FINDING_SEVERITIES),
  ...texts("policy", "message"),
});

export const recordedUndo = z.object({
  tool: anyText,
  input: json,
  description: anyText,
  irreversible: z.boolean(),
  manualGuide: anyText,
  versionBefore: anyText.optional(),
  alsoChanged: list(z.object(texts("id", "version"))).optional(),
});

/** What people changed in a call, and what of it counts. */
export const edited = z
  .object({ by: list(anyText), original: json, input: json, fields: list(anyText) })
  .optional();

/** The result of a call. A tool's `data` is an object of the program and is not sent, except for a picture. */
export const callAnswer = z.discriminatedUnion("answer", [
  z.object({
    answer: z.literal("done"),
    ...texts("text", "operationId"),
    undo: recordedUndo.optional(),
    warnings: list(anyText).optional(),
    /** A picture for a model that can see. It is stored for calls that waited; others have it in their first answer only. */
    image: z.object({ mediaType: anyText, base64: anyText }).optional(),
    truncated: z.boolean(),
    storedPath: anyText,
    edited,
  }),
  z.object({
    answer: z.literal("pending"),
    ...texts("text", "decisionId", "interactionId"),
    edited,
  }),
  z.object({ answer: z.literal("denied"), text: anyText, findings: list(finding), edited }),
  z.object({
    answer: z.literal("failed"),
    text: anyText,
    operationId: anyText.optional(),
    /** Set when the text is a part; the whole is read with `operations.output`. */
    truncated: z.boolean().optional(),
    storedPath: anyText.optional(),
    edited,
  }),
  z.object({
    answer: z.literal("unknown"),
    ...texts("text", "operationId"),
    interactionId: anyText.optional(),
    edited,
  }),
]);

export type WireCallAnswer = z.output<typeof callAnswer>;

/** An answer with its picture, if it has one. */
export function wireAnswer(answer: CallAnswer): WireCallAnswer {
  // Only what a tool returned beside its text can be a picture.
  const image = answer.answer === "done" && answer.data !== undefined && imageOf(answer);
  if (!image) return answer;
  const { mediaType, base64 } = image;
  return { ...answer, image: { mediaType, base64 } } as WireCallAnswer;
}

export const requirement = list(
  z.object({ name: anyText, count: z.int(), from: list(anyText).optional() }),
);

export const interaction = wireOf(
  INTERACTIONS,
  // biome-ignore format: a list
  [
    "id", "type", "status", "sessionId", "callId", "displayText", "hash", "decisionId", "operationId",
    "chain", "choices", "pendingTool", "metadata", "requires", "votes", "remarks", "waitsFor",
    "assignedTo", "deadline", "escalation", "escalated", "outcome", "answer", "answeredBy", "reason",
    "supersededBy", "createdAt", "updatedAt", "version", "ord",
  ],
  {
    chain: list(anyText),
    choices: list(anyText),
    pendingTool: z.object(texts("tool_name", "args_json", "summary")).optional(),
    metadata: jsonObject,
    requires: requirement,
    votes: list(z.object(texts("by", "factor"))),
    remarks: list(z.object(texts("by", "text"))),
    escalation: z.object({ at: instantText, to: anyText }).optional(),
    answer: json.optional(),
  },
).extend({
  /** In lists: truncated fields and their sizes. Read them in full with `interactions.get`. */
  cut: list(z.object({ field: anyText, bytes: z.int() })).optional(),
});

/** What a confirmation is bound to. */
export const preview = z.object({
  ...texts("decisionId", "tenant", "sessionId"),
  askers: list(anyText),
  actionHash: anyText,
  dryRun: json,
  stateVersion: json,
  ...texts("safetyClass", "policyHash"),
  requires: requirement,
  expiresAt: instantText,
  ...texts("nonce", "epoch"),
  machine: jsonObject.optional(),
  lane: z.literal("review").optional(),
  warnings: list(anyText).optional(),
  deliverables: json.optional(),
});

/** A question to a person. */
export const questionRequest = z.strictObject({
  callId: name,
  text: remark,
  choices: z.array(z.string().max(500)).max(50).optional(),
  deadlineMs: z.int().min(1).optional(),
  assignedTo: name.optional(),
  escalation: z.strictObject({ afterMs: z.int().min(1), to: name }).optional(),
  metadata: jsonObject.optional(),
});

const OUTCOMES = Object.keys(INTERACTION_OUTCOMES) as [InteractionOutcome, ...InteractionOutcome[]];

/** The state of an agent's question. */
export const questionAnswer = z.discriminatedUnion("answer", [
  z.object({ answer: z.literal("pending"), ...texts("interactionId", "text") }),
  z.object({ answer: z.literal("answered"), interactionId: anyText, value: json, by: anyText }),
  z.object({
    answer: z.literal("unanswered"),
    interactionId: anyText,
    outcome: z.enum(OUTCOMES).optional(),
    text: anyText,
  }),
]);
