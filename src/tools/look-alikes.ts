import { nameProblem, nameSkeleton, qualifierOf } from "./tool-name.ts";

/** The names a tool goes by, its own first, and the remote server it belongs to, if any. */
export interface TakenName {
  readonly names: readonly string[];
  readonly server: string | undefined;
}

/**
 * Why a tool may not come in beside those that are there (T11), as a sentence; undefined when it may. A tool's own aliases
 * may look like its name, since they lead to the same tool.
 */
export function lookAlikeProblem(
  newcomer: TakenName,
  present: readonly TakenName[],
): string | undefined {
  const problem = serverProblem(newcomer);
  if (problem !== undefined) return problem;
  for (const name of newcomer.names) {
    const skeleton = nameSkeleton(name);
    for (const other of present.flatMap((tool) => tool.names)) {
      if (other === name)
        return `The name "${name}" is taken. Unregister that tool first, or choose another name.`;
      if (nameSkeleton(other) === skeleton) {
        return `"${name}" looks like "${other}", which is registered. Choose a name that people can tell apart from it.`;
      }
    }
  }
  return prefixProblem(newcomer, present);
}

/** A remote server has its own part of the names and brings no others along. */
function serverProblem({ names, server }: TakenName): string | undefined {
  if (server === undefined) return undefined;
  if (nameProblem(server) !== undefined || server.includes(".")) {
    return "A server's name is one part of a tool's name: ASCII letters, digits, hyphens and underscores.";
  }
  const [name = "", ...aliases] = names;
  if (aliases.length > 0)
    return "A tool of another server has no aliases: they could take the place of our own tools.";
  if (!name.startsWith(`${server}.`))
    return `The tools of the server "${server}" are named "${server}.…".`;
  return undefined;
}

/** `glthub.merge` is no tool of `github`, though no tool of that very name is there. */
function prefixProblem(newcomer: TakenName, present: readonly TakenName[]): string | undefined {
  const prefixes = newcomer.names.map(qualifierOf).filter((prefix) => prefix !== "");
  for (const prefix of prefixes) {
    for (const tool of present) {
      for (const other of tool.names.map(qualifierOf)) {
        if (other === prefix && tool.server !== newcomer.server) {
          return `Names that start with "${prefix}." belong to ${ownerOf(tool)}. Choose another prefix.`;
        }
        if (other !== prefix && nameSkeleton(other) === nameSkeleton(prefix)) {
          return `"${prefix}." looks like "${other}.", which is in use. Choose a prefix that people can tell apart from it.`;
        }
      }
    }
  }
  return undefined;
}

function ownerOf({ server }: TakenName): string {
  return server === undefined ? "tools of our own" : `the server "${server}"`;
}
