import path from "node:path";
import { pathToFileURL } from "node:url";
import { SallyportError } from "../model/errors.ts";
import type { SallyportOptions } from "../port/options.ts";
import type { Store } from "../store/store.ts";
import type { JsonValue } from "../util/json.ts";
import type { Dice } from "./dice.ts";
import type { Effect } from "./evidence.ts";

/** Tools, reviews and rules, as `sallyport serve` reads them. */
export type HostParts = Omit<SallyportOptions, "store" | "tenant">;

/** One call of an agent. */
export interface KitCall {
  readonly tool: string;
  readonly input: JsonValue;
}

/**
 * What a module exports as `crashkit`, beside the default export that `serve` reads. It is loaded in every process of a run,
 * so all of it must lead to the same store and the same systems each time.
 */
export interface CrashKitHooks {
  /** Your store instead of one of ours. Shape: callback. */
  openStore?(): Store | Promise<Store>;
  /** What your agents ask for: one call, or several as one decision. Needed with tools of your own. Shape: callback. */
  calls?(dice: Dice): readonly KitCall[];
  /** What has reached your systems since the run began, from a place that no kill of ours can touch. Shape: callback. */
  effects?(): readonly Effect[] | Promise<readonly Effect[]>;
  /** Whether your policy lets a tool through without asking. Shape: callback. */
  mayRunAlone?(tool: string): boolean;
}

export interface KitModule {
  readonly hooks: CrashKitHooks;
  /** Undefined: the tools of the built-in world. */
  parts(): Promise<HostParts | undefined>;
}

/** Throws invalid_input for a module that cannot be put to the test. */
export async function readKitModule(file: string | undefined): Promise<KitModule> {
  if (file === undefined) return { hooks: {}, parts: async () => undefined };
  const { default: given, crashkit = {} } = await import(pathToFileURL(path.resolve(file)).href);
  const hooks: CrashKitHooks = crashkit;
  if (given === undefined && hooks.openStore === undefined) {
    throw wrong(file, "It exports neither tools (default) nor a store (crashkit.openStore).");
  }
  if (given !== undefined && (hooks.calls === undefined || hooks.effects === undefined)) {
    throw wrong(file, "With tools of your own, export crashkit.calls and crashkit.effects too.");
  }
  return {
    hooks,
    async parts() {
      const parts: unknown = typeof given === "function" ? await given() : given;
      if (parts === undefined) return undefined;
      if (typeof parts === "object" && parts !== null && "validators" in parts) {
        // What serve starts beside the port has no place in a run.
        const { started: _, ...own } = parts as HostParts & { started?: unknown };
        return own;
      }
      throw wrong(file, "Its default export must have tools, validators, guard and policy.");
    },
  };
}

function wrong(what: string, hint: string): SallyportError {
  return new SallyportError("invalid_input", { what, hint });
}
