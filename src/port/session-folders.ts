import path from "node:path";
import { isWithin, segmentsOf } from "../gate/path-pattern.ts";
import { SallyportError } from "../model/errors.ts";
import { resolveFolder } from "../tools/resolve-resources.ts";

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
