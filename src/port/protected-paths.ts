import path from "node:path";
import { SallyportError } from "../model/errors.ts";
import { realPath } from "../util/real-path.ts";

/** Each path as given and as the system opens it, because calls are compared by resolved paths. Throws invalid_input. */
export function resolvedPaths(paths: readonly string[]): readonly string[] {
  return [...new Set(paths.flatMap((one) => [path.normalize(checked(one)), realPath(one)]))];
}

function checked(one: string): string {
  if (path.isAbsolute(one)) return one;
  const hint = "protectedPaths must be absolute paths.";
  throw new SallyportError("invalid_input", { what: one, hint });
}
