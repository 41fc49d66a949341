import { createTwoFilesPatch } from "diff";
import type { FileState } from "./file-state.ts";
import { visibleText } from "./visible-text.ts";

/** Finding the shortest diff takes time with the square of this, and the process waits meanwhile. */
const MOST_EDITS = 250;
/** Of both texts together: splitting and comparing more would hold up the process as well. */
const MOST_LINES = 20_000;
/** Longer than any reviewer reads. */
const LONGEST_SHOWN = 256 * 1024;

/** What a reviewer sees of a change. With `unavailable` the content is not on the screen, and that is why. */
export interface ShownChange {
  readonly preview: string;
  readonly unavailable?: string;
}

/**
 * Of a file and what would stand in its place; undefined for "no file". A diff where that is quick to find, otherwise the
 * whole new text. The same input always gives the same text.
 */
export function showChange(
  place: string,
  before: Uint8Array | undefined,
  after: Uint8Array | undefined,
): ShownChange {
  const sizes = `${sizeOf(before)} before, ${sizeOf(after)} after`;
  const newText = after === undefined ? "" : visibleText(after);
  if (newText === undefined) {
    return notShown("it is not text", `Binary content: ${sizes}.`);
  }
  const oldText = before === undefined ? "" : visibleText(before);
  const preview =
    diffOf(place, { before, oldText }, { after, newText }) ??
    wholeOf(place, { before, oldText }, { after, newText }, sizes);
  if (preview.length <= LONGEST_SHOWN) return { preview };
  // What is deleted is kept for the undo, and nothing of it is run or read afterwards.
  if (after === undefined) return { preview: `The whole file goes: ${sizes}.` };
  return notShown("it is too long", `Too long to be shown: ${sizes}.`);
}

interface Old {
  readonly before: Uint8Array | undefined;
  readonly oldText: string | undefined;
}

interface New {
  readonly after: Uint8Array | undefined;
  readonly newText: string;
}

function notShown(why: string, preview: string): ShownChange {
  return { preview, unavailable: `the new content cannot be inspected here: ${why}` };
}

/** Undefined when there is none, or finding it takes too long. */
function diffOf(place: string, { before, oldText }: Old, { after, newText }: New) {
  if (oldText === undefined) return undefined;
  if (linesOf(before) + linesOf(after) > MOST_LINES) return undefined;
  const [oldName, newName] = namesOf(place, before, after);
  return createTwoFilesPatch(oldName, newName, oldText, newText, undefined, undefined, {
    context: 3,
    maxEditLength: MOST_EDITS,
  });
}

function wholeOf(place: string, old: Old, { after, newText }: New, sizes: string): string {
  const [oldName, newName] = namesOf(place, old.before, after);
  const what = after === undefined ? "the whole old text" : "the whole new text";
  const text = after === undefined ? (old.oldText ?? "") : newText;
  const sign = after === undefined ? "-" : "+";
  const lines = text.length > LONGEST_SHOWN ? text : signed(text, sign);
  return `--- ${oldName}\n+++ ${newName}\nToo much differs for a diff (${sizes}); this is ${what}:\n${lines}`;
}

function signed(text: string, sign: string): string {
  const isWhole = text.endsWith("\n");
  const lines = (isWhole ? text.slice(0, -1) : text).split("\n");
  const end = isWhole ? "\n" : "\n\\ No newline at end of file\n";
  return lines.map((line) => `${sign}${line}`).join("\n") + end;
}

function namesOf(
  place: string,
  before: Uint8Array | undefined,
  after: Uint8Array | undefined,
): readonly [string, string] {
  return [before === undefined ? "/dev/null" : place, after === undefined ? "/dev/null" : place];
}

function linesOf(bytes: Uint8Array = new Uint8Array()): number {
  let lines = 1;
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines += 1;
  return lines;
}

/** Undefined for what is not UTF-8 text. A byte order mark is kept, so that nothing is lost on the way back. */
export function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

export function sizeOf(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? "no file" : `${bytes.byteLength} bytes`;
}

/** Numbers for a preview. */
export function fileImpact(before: FileState, after: Uint8Array | undefined) {
  return {
    files: 1,
    bytesBefore: before.bytes?.byteLength ?? 0,
    bytesAfter: after?.byteLength ?? 0,
    creates: before.bytes === undefined,
    deletes: after === undefined,
  };
}
