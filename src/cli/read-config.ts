import path from "node:path";
import { pathToFileURL } from "node:url";
import { allowAlways } from "../gate/guards.ts";
import { SallyportError } from "../model/errors.ts";
import type { Validator } from "../model/verdict.ts";
import { NO_RULES } from "../policy/policy.ts";
import { errorText } from "../util/error-text.ts";
import type { ServedParts } from "./serve.ts";

/**
 * What a host provides for `serve` and `worker`: the default export of its module, or what that returns when called.
 * Throws invalid_input for a module that exports nothing usable.
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

/** A server without tools: records can be read, and nothing can be executed. */
function noParts(): ServedParts {
  return {
    tools: [],
    validators: { tech: nobody, business: nobody },
    guard: allowAlways,
    policy: NO_RULES,
  };
}

/** Without its own reviews a server approves nothing. */
const nobody: Validator = {
  name: "nobody",
  async review() {
    return {
      approved: false,
      score: 0,
      severity: "block",
      reason: "This server has no reviews. Start it with --config.",
      validator: "nobody",
      policyVersion: "",
    };
  },
};
