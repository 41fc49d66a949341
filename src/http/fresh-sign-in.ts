import { isSallyportError, SallyportError } from "../model/errors.ts";
import { fromIso } from "../util/clock.ts";
import type { Signed } from "./authenticate.ts";
import type { Call } from "./route.ts";
import type { Services } from "./services.ts";

/**
 * A browser that was left open may look and decide what can be undone, but not do what cannot. Throws unauthenticated with
 * `what: "freshness"`, so that a client can ask for another sign-in and keep its place.
 */
export function checkFresh(signed: Signed, services: Services): void {
  if (isFresh(signed, services)) return;
  const minutes = Math.ceil(services.signIn.freshMs / 60_000);
  const hint = `Sign in again: this needs a sign-in of the last ${minutes} minutes.`;
  throw new SallyportError("unauthenticated", { what: "freshness", hint });
}

/** Approving what can be undone needs a live session; anything else a recent sign-in. */
export async function checkFreshToApprove(ids: readonly string[], call: Call): Promise<void> {
  const { signed, services, port } = call;
  if (isFresh(signed, services)) return;
  for (const id of ids) {
    const preview = await port.interactions.shown(id).catch((error: unknown) => {
      // Refused by the approval itself.
      if (isSallyportError(error, "not_found")) return undefined;
      throw error;
    });
    if (preview !== undefined && !UNDOABLE.includes(preview.safetyClass)) {
      checkFresh(signed, services);
    }
  }
}

/** Every other class, also one that is not known here, counts as irreversible. */
const UNDOABLE: readonly string[] = ["read", "reversible"];

function isFresh({ token }: Signed, { clock, signIn }: Services): boolean {
  return clock.now() - fromIso(token.createdAt) <= signIn.freshMs;
}
