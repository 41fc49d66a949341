// Files as they were before an edit, kept in a private folder until the edit is reported. Then the undo record holds them.

import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { ABSENT, type FileState, readState, ToolRefusal } from "../tools/builtin/file-place.ts";
import { resolveResources } from "../tools/tool-call.ts";
import { PRIVATE_FILE, PRIVATE_FOLDER } from "../util/files.ts";
import { sha256Hex } from "../util/hash.ts";

/** One file of an undo record. */
export interface KeptFile {
  readonly path: string;
  /** Base64; null: there was no file. */
  readonly content: string | null;
  readonly mode?: number;
  /** What the edit made of it. Anything else means that it was changed since, and it is left alone. */
  readonly expectedSha256: string;
  /** Folders that did not exist before, deepest first. */
  readonly folders: readonly string[];
}

type Before = Omit<KeptFile, "expectedSha256">;

interface Kept {
  readonly files: readonly Before[];
  readonly tooLarge: readonly string[];
}

export interface Snapshots {
  readonly mostBytes: number;
  /** Absolute paths with all links resolved. */
  resolve(files: readonly string[]): Promise<readonly string[]>;
  keep(key: string, files: readonly string[]): Promise<void>;
  /** What was kept, with what became of each file. Throws when nothing was kept under this key. */
  compare(key: string): Promise<{
    readonly files: readonly KeptFile[];
    readonly tooLarge: readonly string[];
  }>;
}

const MOST_BYTES = 4 * 1024 * 1024;

export function snapshotsIn(folder: string): Snapshots {
  const place = (key: string) => path.join(folder, `${sha256Hex(key)}.json`);
  return {
    mostBytes: MOST_BYTES,
    resolve,
    async keep(key, files) {
      const kept: Before[] = [];
      const tooLarge: string[] = [];
      let left = MOST_BYTES;
      for (const file of await resolve(files)) {
        const state = await stateOf(file, left);
        if (state === undefined) tooLarge.push(file);
        else {
          left -= state.bytes?.byteLength ?? 0;
          kept.push(beforeOf(file, state));
        }
      }
      await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER });
      await writeFile(place(key), JSON.stringify({ files: kept, tooLarge }), {
        mode: PRIVATE_FILE,
      });
    },
    async compare(key) {
      const { files, tooLarge } = JSON.parse(await readFile(place(key), "utf8")) as Kept;
      const now = await Promise.all(
        files.map(async (before) => {
          const { sha256 } = await readState(before.path, 16 * MOST_BYTES);
          return { ...before, expectedSha256: sha256 };
        }),
      );
      await rm(place(key), { force: true });
      return { files: now, tooLarge };
    },
  };
}

async function resolve(files: readonly string[]): Promise<readonly string[]> {
  const named = files.map((file) => ({ kind: "file", path: file, access: "write" }) as const);
  return (await resolveResources(named, "")).map((found) => {
    if (found.kind === "file") return found.resolved;
    throw new Error("one of its files cannot be found out");
  });
}

/** Undefined for a file that is too large to be kept. */
async function stateOf(file: string, most: number): Promise<FileState | undefined> {
  try {
    return await readState(file, most);
  } catch (error) {
    if (error instanceof ToolRefusal && error.code === "too_large") return undefined;
    throw error;
  }
}

function beforeOf(file: string, state: FileState): Before {
  const { bytes, mode } = state;
  if (state.sha256 === ABSENT || bytes === undefined) {
    return { path: file, content: null, folders: missingAbove(file) };
  }
  return { path: file, content: bytes.toString("base64"), mode, folders: [] };
}

function missingAbove(file: string): readonly string[] {
  const missing: string[] = [];
  for (let at = path.dirname(file); !existsSync(at); at = path.dirname(at)) missing.push(at);
  return missing;
}
