import type { GateAnswer } from "../model/finding.ts";
import { allow } from "./answers.ts";

/** Class readonly: allowed at once. Rules that deny or ask are looked at before and apart from the class. */
export function checkReadonly(): GateAnswer {
  return allow();
}
