import { constants } from "node:fs";
import { type FileHandle, open, readlink, realpath } from "node:fs/promises";
import path from "node:path";
import { resolveResources } from "../resolve-resources.ts";
import { directoryFor } from "../working-directory.ts";
import { errorCodeOf, Refusal } from "./refusal.ts";

/** What all file tools share; `fileTools` fills in what was left out. */
export interface FileToolOptions {
  /** Where relative paths begin when the call's context has no working directory. */
  readonly directory?: string;
  /** Largest file that may be changed, since its old content is kept for undo. 512 KiB when left out. */
  readonly maxBytes?: number;
  /** Largest file that may be read. 16 MiB when left out. */
  readonly maxReadBytes?: number;
}

const DIRECTORY = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0);

/** What a tool knows about where its call may go. */
export interface PlaceContext {
  readonly workingDirectory: string;
  readonly places?: readonly string[] | undefined;
}

/**
 * Absolute, with every link and parent step resolved. Of a call that came through the gate it is the place that was judged:
 * `index` counts the files of the tool's `resources`. Throws a Refusal when the path leads elsewhere by now (T29).
 */
export async function findPlace(
  given: string,
  context: PlaceContext,
  { directory = "" }: FileToolOptions,
  index = 0,
): Promise<string> {
  const from = directoryFor(context, directory);
  const [found] = await resolveResources([{ kind: "file", path: given, access: "write" }], from);
  if (found?.kind === "file") return asJudged(found.resolved, given, context.places, index);
  const reason = found?.kind === "unresolved" ? found.reason : "it names no file";
  throw new Refusal(
    "unusable",
    `The path ${JSON.stringify(given)} cannot be used: ${reason}. Nothing was done. Give an absolute path, or one below the working directory.`,
  );
}

/**
 * Holds the folder open while `work` uses its files by `base`. The place was resolved a moment ago; should somebody have
 * put a link into it since, at any level, the folder that is open now has another name and nothing is done (T29).
 */
export async function withFolder<Result>(
  folder: string,
  work: (base: string, handle: FileHandle) => Promise<Result>,
): Promise<Result> {
  const handle = await openFolder(folder);
  try {
    const isLinux = process.platform === "linux";
    const base = isLinux ? `/proc/self/fd/${handle.fd}` : folder;
    const real = isLinux ? await readlink(base) : await realpath(folder);
    if (real !== folder) throw swapped(folder);
    return await work(base, handle);
  } finally {
    await handle.close();
  }
}

function asJudged(
  found: string,
  given: string,
  places: readonly string[] | undefined,
  index: number,
): string {
  if (places === undefined || places[index] === found) return found;
  throw new Refusal(
    "conflict",
    `The path ${JSON.stringify(given)} leads to another place than the one that was allowed, because a link in it was changed. Nothing was done. Look at the folder again before repeating the call.`,
  );
}

/** The folder and the name in it. */
export function splitPlace(place: string): { readonly folder: string; readonly name: string } {
  const name = path.basename(place);
  if (name === "") throw new Refusal("unusable", "The root folder is not a file. Name a file.");
  return { folder: path.dirname(place), name };
}

async function openFolder(folder: string): Promise<FileHandle> {
  try {
    return await open(folder, DIRECTORY);
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === "ELOOP") throw swapped(folder);
    if (code === "ENOENT" || code === "ENOTDIR") {
      throw new Refusal("not_found", `There is no folder ${folder}. Check the path.`);
    }
    throw new Refusal("unusable", `The folder ${folder} cannot be opened (${code}).`);
  }
}

function swapped(folder: string): Refusal {
  return new Refusal(
    "conflict",
    `A link was put in the way of ${folder} while the call was running, so nothing was done. Look at the folder again before repeating the call.`,
  );
}
