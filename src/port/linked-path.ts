import path from "node:path";
import { type ResolvedResource, resolveFolder } from "../tools/resolve-resources.ts";

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
