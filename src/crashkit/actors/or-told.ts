import { SallyportError } from "../../model/errors.ts";
import type { Stage } from "./stage.ts";

/** As it may be after a pause or behind a crowd. Callers are told so and try again; that nothing is lost or doubled by it is checked. */
const STORE_IS_AWAY = ["store_unavailable", "store_busy", "commit_unknown", "partly_written"];
/** Said by a server to whoever comes back before it has forgotten the one that was cut off, or comes too often. */
const LATER = ["still_running", "overloaded", "too_fast"];

/** Undefined when it was refused for one of these reasons, which is written down. Anything else is a reason to stop. */
export async function orTold<Result>(
  stage: Stage,
  tenant: string,
  work: () => Promise<Result>,
  expected: readonly string[] = [],
): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SallyportError)) throw error;
    const { code } = error;
    if (!isAway(error) && !LATER.includes(code) && !expected.includes(code)) throw error;
    stage.write({ tenant, refused: code });
    return undefined;
  }
}

export function isAway(error: unknown): boolean {
  return error instanceof SallyportError && STORE_IS_AWAY.includes(error.code);
}
