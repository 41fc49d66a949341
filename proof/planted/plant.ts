// Puts one bug of the list into the product while it is loaded, when `PLANTED` names it. Nothing of this is in the package:
// the product's files stay as they are, only what the tests load differs.

import { appendFileSync } from "node:fs";
import path from "node:path";
import type { Bug } from "./bug.ts";
import { BUGS } from "./bugs.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");

/** The bug that is to be planted in this process; throws for a name that is none. */
export function plantedBug(name = process.env["PLANTED"]): Bug | undefined {
  if (name === undefined) return undefined;
  const bug = BUGS.find((one) => one.name === name);
  if (bug === undefined) throw new Error(`PLANTED is "${name}", which is not on the list`);
  return bug;
}

/** The source with the bug in it, or undefined when this is another file. Throws when the place is not there exactly once. */
export function plant({ name, file, right, wrong }: Bug, of: string, source: string) {
  if (path.relative(ROOT, of) !== path.normalize(file)) return undefined;
  const places = source.split(right).length - 1;
  if (places !== 1) throw new Error(`${name}: its place is there ${places} times in ${file}`);
  const marks = process.env["PLANTED_FILE"];
  if (marks !== undefined) appendFileSync(marks, `${name}\n`);
  return source.replace(right, () => wrong);
}
