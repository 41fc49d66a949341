import type { Bug } from "./bug.ts";

/** Mistakes about who somebody is: sign-in, people, roles. */
export const AUTH_BUGS: readonly Bug[] = [];
