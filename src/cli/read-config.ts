import path from "node:path";
import { pathToFileURL } from "node:url";
import { SallyportError } from "../model/errors.ts";
import { errorText } from "../util/error-text.ts";
import { noParts } from "./no-parts.ts";
import type { ServedParts } from "./serve.ts";

/**
 * What a host brings to `serve` and `worker`: the default export of its module, or what that gives when it is called.
 * Throws invalid_input for a module that gives nothing we can serve.
 */
export async function readConfig(module: string | undefined): Promise<ServedParts> {
  if (module === undefined) return noParts();
  let parts: unknown;
  try {
    const { default: given } = await import(pathToFileURL(path.resolve(module)).href);
    parts = typeof given === "function" ? await given() : given;
  } catch (error) {
    const hint = `It could not be loaded: ${errorText(error)}.`;
    throw new SallyportError("invalid_input", { what: module, hint }, error);
  }
  if (typeof parts === "object" && parts !== null && "validators" in parts) {
    return parts as ServedParts;
  }
  const hint = "Its default export must be an object with tools, validators, guard and policy.";
  throw new SallyportError("invalid_input", { what: module, hint });
}
