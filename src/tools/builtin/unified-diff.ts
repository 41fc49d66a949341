import { createTwoFilesPatch } from "diff";
import type { FileState } from "./file-state.ts";

/** More different lines than this are not worth reading, and finding the shortest diff would hold up the process. */
const MOST_EDITS = 1000;

/** Of a file and what would stand in its place; undefined for "no file". The same input always gives the same text. */
export function unifiedDiff(
  place: string,
  before: Uint8Array | undefined,
  after: Uint8Array | undefined,
): string {
  const [oldText, newText] = [
    textOf(before ?? new Uint8Array()),
    textOf(after ?? new Uint8Array()),
  ];
  if (oldText === undefined || newText === undefined) {
    return `Binary content: ${sizeOf(before)} before, ${sizeOf(after)} after.`;
  }
  const oldName = before === undefined ? "/dev/null" : place;
  const newName = after === undefined ? "/dev/null" : place;
  const patch = createTwoFilesPatch(oldName, newName, oldText, newText, undefined, undefined, {
    context: 3,
    maxEditLength: MOST_EDITS,
  });
  return (
    patch ??
    `More than ${MOST_EDITS} lines differ: ${sizeOf(before)} before, ${sizeOf(after)} after.`
  );
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
