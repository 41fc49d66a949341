import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { allowAlways } from "../gate/review.ts";
import type { Validator } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { parseJson } from "../model/names.ts";
import { NO_RULES } from "../policy/policy.ts";
import { definedFields } from "../util/defined-fields.ts";
import { errorText } from "../util/error-text.ts";
import { checkedConfig, type SallyportConfig } from "./config.ts";
import { type StoreFlags, storeNamed, storePlaceOf } from "./open-store.ts";
import type { StorePlace } from "./state-folder.ts";

/** The names under which `serve`, `worker` and `review` find a configuration in the working directory. */
export const CONFIG_NAMES = ["ts", "mts", "js", "mjs"].map((end) => `sallyport.config.${end}`);

/** Flags that say the same as fields of the configuration, and take precedence over it. */
export interface ConfigFlags extends StoreFlags {
  readonly config?: string;
  readonly tenant?: string;
}

/**
 * Where a command takes its configuration from when `--config` and SALLYPORT_CONFIG name none. `folder`: a file in the
 * working directory. `named`: nowhere, for commands that hosts start inside of projects that others wrote: a file that is
 * found there must not be executed.
 */
export type ConfigSearch = "folder" | "named";

export interface Configured {
  readonly config: SallyportConfig;
  readonly place: StorePlace;
  readonly tenant: string;
}

/** The configuration of a command, and what its flags and the environment make of it. Throws invalid_input. */
export async function readConfigured(
  flags: ConfigFlags,
  { source, otherwise }: { readonly source: ConfigSearch; readonly otherwise: SallyportConfig },
): Promise<Configured> {
  const file = configFile(flags, source);
  const config = file === undefined ? otherwise : await readConfig(file);
  const tenant = flags.tenant ?? config.tenant ?? "default";
  return { config, tenant, place: placeOf(flags, config) };
}

/** The store that flags, environment and configuration name, in this order. */
function placeOf(flags: ConfigFlags, { store, state }: SallyportConfig): StorePlace {
  const { SALLYPORT_DATABASE: database, SALLYPORT_STATE } = process.env;
  const isFlagged = flags.file !== undefined || flags.database !== undefined;
  const given = database || store;
  const named = isFlagged || !given ? {} : storeNamed(given);
  const elsewhere = flags.state === undefined && !SALLYPORT_STATE ? { state } : {};
  return storePlaceOf({ ...flags, ...definedFields({ ...named, ...elsewhere }) });
}

function configFile({ config }: ConfigFlags, source: ConfigSearch): string | undefined {
  const named = config ?? process.env["SALLYPORT_CONFIG"];
  if (named) return named;
  if (source === "named") return undefined;
  const found = CONFIG_NAMES.filter((name) => existsSync(name));
  if (found.length < 2) return found[0];
  const hint = `There are several configurations here: ${found.join(", ")}. Name one with --config.`;
  throw new SallyportError("invalid_input", { what: "--config", hint });
}

/** A module or a JSON file. No call of an agent may touch it afterwards: it says what agents may do. */
async function readConfig(file: string): Promise<SallyportConfig> {
  const given = file.endsWith(".json") ? readJson(file) : await readModule(file);
  const config = checkedConfig(withTools(given), file);
  const protectedPaths = [...(config.protectedPaths ?? []), path.resolve(file)];
  return { ...config, protectedPaths };
}

/** A configuration for the gateway alone needs no tools of its own. */
function withTools(given: unknown): unknown {
  const isGateway = typeof given === "object" && given !== null && "mcp" in given;
  return isGateway ? { tools: [], ...given } : given;
}

function readJson(file: string): unknown {
  if (!existsSync(file)) throw new SallyportError("not_found", { id: file });
  return parseJson(readFileSync(file));
}

/** The default export of a module, or what that returns when called. Throws invalid_input. */
async function readModule(module: string): Promise<unknown> {
  try {
    const { default: given } = await import(pathToFileURL(path.resolve(module)).href);
    return typeof given === "function" ? await given() : given;
  } catch (error) {
    const hint = `It could not be loaded: ${errorText(error)}.`;
    throw new SallyportError("invalid_input", { what: module, hint }, error);
  }
}

/** Without its own reviews a server approves nothing. */
const noReview: Validator = {
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

/** A server without a configuration: records can be read, and nothing can be executed. */
export const NOTHING_CONFIGURED: SallyportConfig = {
  tools: [],
  validators: { tech: noReview, business: noReview },
  guard: allowAlways,
  policy: NO_RULES,
};
