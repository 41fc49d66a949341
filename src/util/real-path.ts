import { realpathSync } from "node:fs";
import path from "node:path";

/** Links resolved. Of what does not exist yet: its nearest existing parent, resolved, and the names that follow. */
export function realPath(given: string): string {
  try {
    return realpathSync(given);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    const parent = path.dirname(given);
    return parent === given ? given : path.join(realPath(parent), path.basename(given));
  }
}
