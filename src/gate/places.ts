import path from "node:path";
import { SallyportError } from "../model/errors.ts";
import { isWithin, segmentsOf } from "../policy/patterns.ts";
import { type ResolvedResource, resolveFolder } from "../tools/resources.ts";
import { realPath } from "../util/files.ts";

/** The folders in which callers from outside the host program may open sessions. */
export interface SessionFolders {
  /** The folder with its links resolved. Throws not_allowed when it is neither a listed folder nor below one. */
  check(folder: string): Promise<string>;
}

/** Throws invalid_input for a folder that is not an absolute path. */
export function sessionFoldersOf(listed: readonly string[]): SessionFolders {
  const wrong = listed.find((folder) => typeof folder !== "string" || !path.isAbsolute(folder));
  if (wrong !== undefined) {
    const hint = `sessionFolders takes absolute paths, not ${JSON.stringify(wrong)}.`;
    throw new SallyportError("invalid_input", { what: "sessionFolders", hint });
  }
  return {
    async check(folder) {
      const found = await resolveFolder(folder);
      for (const one of found === undefined ? [] : listed) {
        if (found !== undefined && isBelow(found, await resolveFolder(one))) return found;
      }
      throw new SallyportError("not_allowed", { workingDirectory: folder, hint: NOT_LISTED });
    },
  };
}

function isBelow(folder: string, above: string | undefined): boolean {
  const [inner, outer] = [segmentsOf(folder), segmentsOf(above ?? "")];
  return inner !== undefined && outer !== undefined && isWithin(inner, outer);
}

const NOT_LISTED =
  "Sessions open only in folders that the operator listed as `sessionFolders`. Leave `workingDirectory` out, name a listed folder or one below it, or ask the operator to list this one.";

/** Each path as given and as the system opens it, because calls are compared by resolved paths. Throws invalid_input. */
export function resolvedPaths(paths: readonly string[]): readonly string[] {
  return [...new Set(paths.flatMap((one) => [path.normalize(checked(one)), realPath(one)]))];
}

function checked(one: string): string {
  if (path.isAbsolute(one)) return one;
  const hint = "protectedPaths must be absolute paths.";
  throw new SallyportError("invalid_input", { what: one, hint });
}

/**
 * True when a file of the call is reached through a link below its working directory, or anywhere if it lies outside. Who
 * consented beforehand (by a standing rule, or by asking for an undo) consented to the path they read; a link can be turned
 * after that. Links above the working directory do not count: those are the operator's.
 */
export async function goesThroughLink(
  resources: readonly ResolvedResource[],
  workingDirectory: string,
): Promise<boolean> {
  const folder = await resolveFolder(workingDirectory);
  return resources.some((resource) => {
    if (resource.kind !== "file") return false;
    const plain = path.resolve(workingDirectory || path.sep, resource.path);
    if (resource.resolved === plain) return false;
    const below = path.relative(workingDirectory || path.sep, plain);
    const isBelow = below !== ".." && !below.startsWith(`..${path.sep}`) && !path.isAbsolute(below);
    if (folder === undefined || !isBelow) return true;
    return resource.resolved !== path.join(folder, below);
  });
}
