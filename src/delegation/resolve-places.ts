import { SallyportError } from "../model/errors.ts";
import { resolveResources } from "../tools/resolve-resources.ts";

/** Names of other resources have a word and a colon in front, such as `sql:shop/orders`; a drive has only one letter. */
const OTHER = /^[a-z][a-z0-9+.-]+:/i;

/**
 * Places of a scope as calls will be resolved later: absolute, links followed. A link that is bent afterwards therefore leads
 * out of the scope and not the scope along with it. Throws invalid_input for a place that nobody can resolve.
 */
export async function resolvePlaces(
  places: readonly string[],
  workingDirectory: string,
): Promise<readonly string[]> {
  return Promise.all(places.map((place) => resolvePlace(place, workingDirectory)));
}

export async function resolvePlace(place: string, workingDirectory: string): Promise<string> {
  if (place === "" || OTHER.test(place)) return place;
  const file = { kind: "file", path: place, access: "write" } as const;
  const [found] = await resolveResources([file], workingDirectory);
  if (found?.kind === "file") return found.resolved;
  const reason = found?.kind === "unresolved" ? found.reason : "it is no path";
  const hint = `Nobody can say where this place is: ${reason}. Use an absolute path.`;
  throw new SallyportError("invalid_input", { what: "place", hint });
}
