/** The steps that are one transaction each (S2b, the business review, is stored together with what people decide). */
type Committed = "S1" | "S2a" | "S2b" | "S3" | "S4" | "S5" | "S7";

/**
 * Where a process may be cut off on the way of an effect, in the words of the design: propose, technical and business
 * review, show, decide, start, act, settle, announce.
 */
export type CrashPoint =
  | `${Committed}.before`
  | `${Committed}.after`
  | "S6.before"
  | "S6.after"
  | "S8.before";

/** Told whenever a call comes past a point. For crash tests; nothing may depend on it. */
export type AtPoint = (point: CrashPoint) => void;

export const passBy: AtPoint = () => {};
