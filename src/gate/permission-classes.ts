import { SallyportError } from "../model/errors.ts";
import { PERMISSION_CLASSES, type PermissionClass } from "../tools/metadata.ts";
import { shown } from "./shown.ts";

/**
 * Tool name to permission class. A plain map that the registry holds and hands in, not a table of this module: the gate
 * then needs no lock and no reset between tests, two gates in one process cannot see each other's tools, and the same
 * input keeps giving the same answer. The engine itself knows no tool by name.
 */
export type PermissionClasses = ReadonlyMap<string, PermissionClass>;

export const NO_CLASSES: PermissionClasses = new Map();

/**
 * The table with one tool more. The same declaration again changes nothing; another class for a known name throws
 * `invalid_input`, because a second registration must not turn a checked tool into a free one.
 */
export function withClass(
  table: PermissionClasses,
  tool: string,
  declared: PermissionClass = "",
): PermissionClasses {
  if (!PERMISSION_CLASSES.includes(declared)) {
    throw new SallyportError("invalid_input", {
      tool,
      hint: `${shown(String(declared))} is no permission class; use one of ${PERMISSION_CLASSES.join(", ")}or none.`,
    });
  }
  const known = table.get(tool);
  if (known === declared) return table;
  if (known !== undefined) {
    throw new SallyportError("invalid_input", {
      tool,
      hint: `The tool is registered with the class "${known}" already; take it out before registering it as "${declared}".`,
    });
  }
  return new Map(table).set(tool, declared);
}

/** The table without a tool. */
export function withoutClass(table: PermissionClasses, tool: string): PermissionClasses {
  if (!table.has(tool)) return table;
  const next = new Map(table);
  next.delete(tool);
  return next;
}

/** Names are compared letter by letter. A tool nobody registered gets the fallback, which asks. */
export function classOf(table: PermissionClasses, tool: string): PermissionClass {
  return table.get(tool) ?? "";
}
