import { cutText } from "../util/error-text.ts";

/** As many as one request may hand out. */
export const MOST_TASKS = 8;
/** As many as may work for one parent at the same time; the store keeps it, also against several processes. */
export const MOST_AT_ONCE = 4;
/** Links of a chain in which each gets what the one before has found. */
export const MOST_LINKS = 8;
/** Levels below a root, whatever a scope says. */
export const MOST_DEPTH = 8;
/** Of what comes back, in characters. */
export const LONGEST_OUTPUT = 30_000;

export const DEFAULT_CALLS = 100;
export const DEFAULT_TTL_MS = 30 * 60 * 1000;

const CUT = "\n[cut: it was longer than 30,000 characters]";

/** Never longer than the limit, and where something is missing it says so. */
export function cutOutput(output: string): string {
  if (output.length <= LONGEST_OUTPUT) return output;
  return `${cutText(output, LONGEST_OUTPUT - CUT.length)}${CUT}`;
}
