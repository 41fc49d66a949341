import { realpathSync } from "node:fs";
import path from "node:path";
import { SallyportError } from "../model/errors.ts";

/** Each path as given and as the system opens it, because calls are compared by resolved paths. Throws invalid_input. */
export function resolvedPaths(paths: readonly string[]): readonly string[] {
  return [...new Set(paths.flatMap((one) => [path.normalize(checked(one)), realPath(one)]))];
}

function checked(one: string): string {
  if (path.isAbsolute(one)) return one;
  const hint = "protectedPaths must be absolute paths.";
  throw new SallyportError("invalid_input", { what: one, hint });
}

/** Of what does not exist yet: its nearest existing parent, resolved, and the names that follow. */
function realPath(one: string): string {
  try {
    return realpathSync(one);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    const parent = path.dirname(one);
    return parent === one ? one : path.join(realPath(parent), path.basename(one));
  }
}
