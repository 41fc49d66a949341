import type { Decision } from "../model/decision.ts";
import type { Registry } from "../tools/registry.ts";
import { type ResolvedResource, resolveResources } from "../tools/resolve-resources.ts";
import { decodeAction } from "./action.ts";

/**
 * What each call of a decision would touch, resolved as it would be now: for people who look at it. The gate resolves anew
 * whenever it judges. Undefined for a call whose tool is gone or cannot tell.
 */
export async function targetsOf(
  decision: Pick<Decision, "id" | "diff">,
  registry: Registry,
): Promise<readonly (readonly ResolvedResource[] | undefined)[]> {
  const calls = decodeAction(decision);
  return Promise.all(
    calls.map(async ({ tool, input, workingDirectory }) => {
      try {
        const touched = registry.get(tool)?.resources?.(input, { workingDirectory });
        return touched && (await resolveResources(touched, workingDirectory));
      } catch {
        // The gate would have refused it; here there is nothing to show.
        return undefined;
      }
    }),
  );
}
