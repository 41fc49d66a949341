// Images as tool results: how one is recognised, checked and sent to a model.

import type { CallAnswer } from "../model/operation.ts";

/** What a tool gives as its data when the model should see a picture. Further fields are allowed and not sent. */
export interface ImageResult {
  readonly kind: "image";
  readonly mediaType: ImageMediaType;
  /** Standard alphabet, padded, without line breaks; at most 5 MiB of it. */
  readonly base64: string;
}

/**
 * The formats that vision models take, each with how its bytes begin, in hexadecimal. A picture under a wrong name makes a
 * model's API refuse the whole conversation and not only this result, so the name must fit the bytes. SVG is missing on
 * purpose: models do not accept it, and it can carry scripts to the reader of a log.
 */
const BEGINNINGS = {
  "image/png": /^89504e470d0a1a0a/,
  "image/jpeg": /^ffd8ff/,
  "image/gif": /^474946383[79]61/,
  "image/webp": /^52494646.{8}57454250/,
} as const;
const BEGINNING_BASE64 = 16;

/** The stricter reading of the limits of the models' APIs, which count the base64 and not the picture. */
const LONGEST_BASE64 = 5 * 1024 * 1024;

export type ImageMediaType = keyof typeof BEGINNINGS;

export interface TextPart {
  readonly type: "text";
  readonly text: string;
}

export interface ImagePart {
  readonly type: "image";
  readonly mediaType: ImageMediaType;
  readonly base64: string;
}

/**
 * Callback: turns data of one kind into what the model gets. A sentence instead of a part says why it cannot be shown;
 * undefined says that this is something else which happens to have the same kind.
 */
export type PartReader<Part extends object> = (
  data: Readonly<Record<string, unknown>>,
) => Part | string | undefined;

/** Whether this can be shown to a model as it stands. Never throws, whatever the data is. */
export function isImageResult(data: unknown): data is ImageResult {
  return typeof readData(data, { image: readImage }) === "object";
}

/**
 * An answer as a vision-capable model gets it: its text, or the array form of a tool result when its data can be shown.
 * To a model that cannot see, send `answer.text`. `more` adds kinds of data, or replaces how one is read.
 *
 *     const content = toModelContent(await session.call(request));
 */
export function toModelContent<More extends object = never>(
  answer: CallAnswer,
  more: Readonly<Record<string, PartReader<More>>> = {},
): string | readonly (TextPart | ImagePart | More)[] {
  const { text } = answer;
  if (!("data" in answer)) return text;
  const part = readData<ImagePart | More>(answer.data, { image: readImage, ...more });
  if (part === undefined) return text;
  if (typeof part === "string") return `${text}\n[${part}]`.trimStart();
  // Models' APIs refuse a text part without text.
  return text.trim() === "" ? [part] : [{ type: "text", text }, part];
}

/** The picture that comes with an answer, if there is one that can be shown. */
export function imageOf(answer: CallAnswer): ImagePart | undefined {
  return "data" in answer ? imageIn(answer.data) : undefined;
}

/** The same of the data alone. */
export function imageIn(data: unknown): ImagePart | undefined {
  const part = readData(data, { image: readImage });
  return typeof part === "object" ? part : undefined;
}

/** Data comes as the tool gave it, so looking at it may run the tool's code, which may throw. Then there is the text. */
function readData<Part extends object>(
  data: unknown,
  readers: Readonly<Record<string, PartReader<Part>>>,
): Part | string | undefined {
  if (typeof data !== "object" || data === null) return undefined;
  try {
    const { kind } = data as { readonly kind?: unknown };
    if (typeof kind !== "string" || !Object.hasOwn(readers, kind)) return undefined;
    return readers[kind]?.(data as Readonly<Record<string, unknown>>);
  } catch {
    return undefined;
  }
}

/** A container image, say, may be of kind "image" too: only what has the other two fields means to be shown. */
function readImage(data: Readonly<Record<string, unknown>>): ImagePart | string | undefined {
  const { mediaType, base64 } = data;
  if (typeof mediaType !== "string" || typeof base64 !== "string") return undefined;
  if (!isMediaType(mediaType)) return cannotShow("it is neither PNG, JPEG, GIF nor WebP");
  // Checks the length first, so that a gigabyte is not decoded to find that it is too long.
  if (base64.length > LONGEST_BASE64) return cannotShow("it is larger than 5 MiB");
  if (!isBase64(base64)) return cannotShow("it is not proper base64");
  const beginning = Buffer.from(base64.slice(0, BEGINNING_BASE64), "base64").toString("hex");
  if (!BEGINNINGS[mediaType].test(beginning)) return cannotShow(`it is not ${mediaType}`);
  return { type: "image", mediaType, base64 };
}

function isMediaType(name: string): name is ImageMediaType {
  return Object.hasOwn(BEGINNINGS, name);
}

function isBase64(text: string): boolean {
  if (text === "" || text.length % 4 !== 0) return false;
  // Looks for what does not belong: a greedy search through 5 MiB can run out of stack, and then it throws.
  return (
    !/[^A-Za-z0-9+/]/.test(text.slice(0, -2)) &&
    /^(?:[A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|==)$/.test(text.slice(-2))
  );
}

function cannotShow(why: string): string {
  return `The image that came with this result cannot be shown: ${why}.`;
}
