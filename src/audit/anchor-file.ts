import { constants, createReadStream } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import path from "node:path";
import { SallyportError } from "../model/errors.ts";
import { type AnchorSink, anchorLine, MAX_ANCHOR_BYTES, readAnchors } from "./anchor.ts";

/** Appended only, whatever other processes write; created with access for its owner alone. */
const APPEND = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT;
const OWNER_ONLY = 0o600;
const LINE_FEED = 0x0a;

/**
 * Anchors as lines of a file, which should be on another machine or disk than the database, or at least append-only
 * (`chattr +a`); only appending is needed.
 *
 * Any number of processes may share the file without a lock, which a crash could leave behind: a line is one write in
 * append mode, which the kernel does not interleave, and the format allows two lines to follow the same one. A partial
 * line left by a crash or a full disk is ended with a line feed before the next anchor and stays there, unreadable and
 * harmless; truncating it could hit a line of another process.
 */
export function fileAnchorSink({ file }: { readonly file: string }): AnchorSink {
  let seen = 0;
  return {
    async append(anchor) {
      // Opened each time: if the file is moved away, anchors must not continue unnoticed in the moved one.
      const handle = await open(file, APPEND, OWNER_ONLY);
      try {
        const { size } = await handle.stat();
        const line = `${anchorLine(anchor)}\n`;
        await writeAtOnce(handle, (await endsInsideLine(handle, size)) ? `\n${line}` : line);
        await handle.datasync();
        if (size === 0) await syncFolder(path.dirname(file));
      } finally {
        await handle.close();
      }
    },
    read: () => readAnchors(bytesFrom(file, 0)),
    async *news() {
      // After a truncation it continues from the new end. Starting over would make the cut chain look intact to the
      // next anchor.
      seen = Math.min(seen, await sizeOf(file));
      for await (const piece of wholeLines(bytesFrom(file, seen))) {
        seen += piece.length;
        yield* readAnchors([piece]);
      }
    },
  };
}

/**
 * A second write for the rest of a line could follow a line of another process; the whole line is written again
 * instead.
 */
async function writeAtOnce(handle: FileHandle, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  const { bytesWritten } = await handle.write(bytes);
  if (bytesWritten === bytes.length) return;
  const hint =
    "The disk of the anchor file is probably full; make room, it is tried again by itself.";
  throw new SallyportError("store_unavailable", {
    written: bytesWritten,
    wanted: bytes.length,
    hint,
  });
}

async function endsInsideLine(handle: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return false;
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return bytesRead === 1 && buffer[0] !== LINE_FEED;
}

/** A new file is durable only when its folder is. Windows does not support or need this. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** No file means no anchors yet. */
async function* bytesFrom(file: string, start: number): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of createReadStream(file, { start })) yield chunk as Buffer;
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if (isMissing(error)) return 0;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

/** Pieces that end with a line feed; the rest is still being written, unless it is too long for a line. */
async function* wholeLines(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of source) {
    const bytes = Buffer.concat([rest, chunk]);
    let end = bytes.lastIndexOf(LINE_FEED) + 1;
    if (end === 0 && bytes.length > MAX_ANCHOR_BYTES) end = bytes.length;
    if (end > 0) yield bytes.subarray(0, end);
    rest = bytes.subarray(end);
  }
}
