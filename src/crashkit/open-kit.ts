import path from "node:path";
import { pathToFileURL } from "node:url";
import { createGate, type Gate } from "../gate/create-gate.ts";
import { allowAlways } from "../gate/guards.ts";
import type { AtPoint, GateOptions } from "../gate/options.ts";
import { SallyportError } from "../model/errors.ts";
import type { Validator } from "../model/verdict.ts";
import { postgresStore } from "../store/postgres/index.ts";
import { sqliteStore } from "../store/sqlite/index.ts";
import type { Store } from "../store/store.ts";
import type { JsonValue } from "../util/json.ts";
import { type Dice, followLines } from "./child.ts";
import type { Effect } from "./evidence.ts";
import {
  type Fault,
  type FenceLine,
  FREE,
  isEffect,
  type LedgerLine,
  worldTools,
} from "./world/world.ts";

/** Where the store of a run is. A module's own store comes before both. */
export type StoreAt =
  | { readonly kind: "sqlite"; readonly file: string }
  | { readonly kind: "postgres"; readonly url: string };

/** What every process of a run is told, so that all of them meet. */
export interface KitPlace {
  /** A name of its own for each run, in front of its tenants: a store may have seen other runs, or be in use. */
  readonly run: string;
  readonly store: StoreAt;
  /** A module with a store or tools of the user's own. */
  readonly config?: string;
  readonly worldPort: number;
  /** `LEASE_MS` unless told otherwise: whoever makes the store slow needs longer ones, or nothing would ever begin. */
  readonly leaseMs?: number;
  readonly ledgerFile: string;
}

/** A lease that is over soon, so that a run need not wait long for what was left behind. */
export const LEASE_MS = 400;

export interface GateHooks {
  /** Points of the protocol, and those inside the tools of the built-in world. */
  at(point: Parameters<AtPoint>[0] | "S6.request" | "S6.effect"): void;
  fault(): Fault;
}

export interface Kit {
  readonly store: Store;
  gate(tenant: string, hooks?: GateHooks): Promise<Gate>;
  /** Undefined with the built-in world, whose calls are planned by the kit. */
  readonly calls: ((dice: Dice) => readonly KitCall[]) | undefined;
  effects(): Promise<readonly Effect[]>;
  mayRunAlone(tool: string): boolean;
  /** Production is the kit's own, so that every effect in it must belong to the run. */
  readonly hasWorld: boolean;
  close(): Promise<void>;
}

const QUIET: GateHooks = { at: () => {}, fault: () => "none" };

/** Opens the store and what is to be put to the test, in this process. */
export async function openKit(place: KitPlace): Promise<Kit> {
  const module = await readKitModule(place.config);
  const { hooks } = module;
  const { store, close } = await openStore(place.store, module);
  const ledger = followLines<LedgerLine | FenceLine>(place.ledgerFile);
  return {
    store,
    async gate(tenant, { at, fault } = QUIET) {
      const own = await module.parts();
      const parts = own ?? worldParts(place.worldPort, { at, fault });
      return createGate({ ...parts, store, tenant, leaseMs: place.leaseMs ?? LEASE_MS, at });
    },
    calls: hooks.calls?.bind(hooks),
    effects: async () => (await hooks.effects?.()) ?? ledger.read().filter(isEffect),
    mayRunAlone: (tool) =>
      hooks.mayRunAlone?.(tool) ?? (hooks.calls !== undefined || tool.startsWith(FREE)),
    hasWorld: hooks.effects === undefined,
    close,
  };
}

function worldParts(port: number, hooks: GateHooks): HostParts {
  return {
    tools: worldTools({ port, ...hooks }),
    validators: { tech: agreeing("schema"), business: agreeing("limits") },
    guard: allowAlways,
    policy: {
      version: "1",
      rules: [{ id: "free", effect: "allow", tool: `${FREE}*`, reason: "the kit's free lane" }],
    },
  };
}

/** A review that has nothing against anything: what is tested comes after it. */
function agreeing(name: string): Validator {
  return {
    name,
    review: () => ({
      approved: true,
      score: 1,
      severity: "",
      reason: "fits",
      validator: name,
      policyVersion: "1",
    }),
  };
}

async function openStore(
  at: StoreAt,
  { hooks }: KitModule,
): Promise<{ store: Store; close(): Promise<void> }> {
  if (hooks.openStore !== undefined) {
    const store = await hooks.openStore();
    return { store, close: () => store.close() };
  }
  if (at.kind === "sqlite") {
    const store = sqliteStore({ file: at.file });
    return { store, close: () => store.close() };
  }
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: at.url, max: 3 });
  // A line that breaks while nobody uses it is opened anew by the pool; without a listener it would end the process.
  pool.on("error", () => {});
  const store = await postgresStore({ pool });
  return {
    store,
    async close() {
      await store.close();
      await pool.end();
    },
  };
}

/** Tools, reviews and rules, as `sallyport serve` reads them. */
export type HostParts = Omit<GateOptions, "store" | "tenant">;

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

interface KitModule {
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
