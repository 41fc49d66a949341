import path from "node:path";
import { pathToFileURL } from "node:url";
import { createGate, type Gate } from "../gate/create-gate.ts";
import type { AtPoint, GateOptions } from "../gate/options.ts";
import { allowAlways } from "../gate/review.ts";
import type { Validator } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { postgresStore } from "../store/postgres/index.ts";
import { sqliteStore } from "../store/sqlite/index.ts";
import type { Store } from "../store/store.ts";
import type { JsonValue } from "../util/json.ts";
import { type Dice, followLines } from "./child.ts";
import type { LedgerEntry } from "./evidence.ts";
import {
  type Fault,
  type FenceLine,
  FREE,
  isEffect,
  type LedgerLine,
  worldTools,
} from "./world/world.ts";

/** Where the store of a run is. A module's own store takes precedence. */
export type StoreAt =
  | { readonly kind: "sqlite"; readonly file: string }
  | { readonly kind: "postgres"; readonly url: string };

/** What every process of a run needs to find the others. */
export interface KitPlace {
  /** A unique prefix of the run's tenants: the store may hold other runs, or be in use. */
  readonly run: string;
  readonly store: StoreAt;
  /** A module with the user's own store or tools. */
  readonly config?: string;
  readonly worldPort: number;
  /** Default `LEASE_MS`. A slow store needs longer leases, or no call would start. */
  readonly leaseMs?: number;
  readonly ledgerFile: string;
}

/** Short, so that a run does not wait long for abandoned calls. */
export const LEASE_MS = 400;

interface GateHooks {
  /** Called at the points of the protocol and inside the tools of the built-in world. */
  at(point: Parameters<AtPoint>[0] | "S6.request" | "S6.effect"): void;
  fault(): Fault;
  /** The technical review answers only once the proposal is stored, so that each step of it is written by itself. */
  readonly reviewsSlowly?: boolean;
}

export interface Kit {
  readonly store: Store;
  gate(tenant: string, hooks?: GateHooks): Promise<Gate>;
  /** Undefined with the built-in world, whose calls the kit plans. */
  readonly calls: ((dice: Dice) => readonly KitCall[]) | undefined;
  effects(): Promise<readonly LedgerEntry[]>;
  mayRunAlone(tool: string): boolean;
  /** Production is the kit's own, so every effect in it must belong to the run. */
  readonly hasWorld: boolean;
  close(): Promise<void>;
}

const QUIET: GateHooks = { at: () => {}, fault: () => "none" };

/** Opens the store and what is tested, in this process. */
export async function openKit(place: KitPlace): Promise<Kit> {
  const module = await readKitModule(place.config);
  const { hooks } = module;
  const { store, close } = await openStore(place.store, module);
  const ledger = followLines<LedgerLine | FenceLine>(place.ledgerFile);
  return {
    store,
    async gate(tenant, { at, fault, reviewsSlowly = false } = QUIET) {
      const own = await module.parts();
      const parts = own ?? worldParts(place.worldPort, { at, fault });
      const slow = reviewsSlowly ? afterStored(at, parts.validators?.tech) : {};
      const validators = { ...parts.validators, ...slow.validators };
      const leaseMs = place.leaseMs ?? LEASE_MS;
      return createGate({ ...parts, store, tenant, leaseMs, at, ...slow, validators });
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

/** A technical review that answers once the proposal is stored. */
function afterStored(
  at: GateHooks["at"],
  tech: Validator = agreeing("schema"),
): Pick<HostParts, "at" | "validators"> {
  let stored = Promise.withResolvers<void>();
  return {
    at(point) {
      if (point === "S1.before") stored = Promise.withResolvers();
      if (point === "S1.after") stored.resolve();
      at(point);
    },
    validators: {
      tech: {
        name: tech.name,
        async review(request, options) {
          await stored.promise;
          return tech.review(request, options);
        },
      },
    },
  };
}

/** Approves everything: what is tested comes after the review. */
function agreeing(name: string): Validator {
  return {
    name,
    review: () => ({ ...APPROVED, validator: name }),
  };
}

const APPROVED = {
  approved: true,
  score: 1,
  severity: "",
  reason: "fits",
  policyVersion: "1",
} as const;

async function openStore(
  at: StoreAt,
  { hooks }: KitModule,
): Promise<{ store: Store; close(): Promise<void> }> {
  if (hooks.openStore !== undefined || at.kind === "sqlite") {
    const file = at.kind === "sqlite" ? at.file : "";
    const store = (await hooks.openStore?.()) ?? sqliteStore({ file });
    return { store, close: () => store.close() };
  }
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: at.url, max: 3 });
  // The pool replaces an idle connection that breaks; without a listener the error would end the process.
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

/** Tools, validators and rules, as `sallyport serve` reads them. */
export type HostParts = Omit<GateOptions, "store" | "tenant">;

/** One call of an agent. */
export interface KitCall {
  readonly tool: string;
  readonly input: JsonValue;
}

/**
 * The export `crashkit` of a module, beside the default export that `serve` reads. It is loaded in every process of a run, so
 * it must lead to the same store and the same systems each time.
 */
export interface CrashKitHooks {
  /** Your store instead of one of ours. Shape: callback. */
  openStore?(): Store | Promise<Store>;
  /** What your agents ask for: one call, or several as one decision. Required with your own tools. Shape: callback. */
  calls?(dice: Dice): readonly KitCall[];
  /** What has reached your systems since the run began, from a place that survives the kills. Shape: callback. */
  effects?(): readonly LedgerEntry[] | Promise<readonly LedgerEntry[]>;
  /** Whether your policy allows a tool without asking a person. Shape: callback. */
  mayRunAlone?(tool: string): boolean;
}

interface KitModule {
  readonly hooks: CrashKitHooks;
  /** Undefined: the tools of the built-in world. */
  parts(): Promise<HostParts | undefined>;
}

/** Throws invalid_input for a module that cannot be tested. */
export async function readKitModule(file: string | undefined): Promise<KitModule> {
  if (file === undefined) return { hooks: {}, parts: async () => undefined };
  const { default: given, crashkit = {} } = await import(pathToFileURL(path.resolve(file)).href);
  const hooks: CrashKitHooks = crashkit;
  if (given === undefined && hooks.openStore === undefined) {
    throw wrong(file, "It exports neither tools (default) nor a store (crashkit.openStore).");
  }
  if (given !== undefined && (hooks.calls === undefined || hooks.effects === undefined)) {
    throw wrong(file, "With your own tools, export crashkit.calls and crashkit.effects too.");
  }
  return {
    hooks,
    async parts() {
      const parts: unknown = typeof given === "function" ? await given() : given;
      if (parts === undefined) return undefined;
      if (typeof parts === "object" && parts !== null && "validators" in parts) {
        // What serve starts beside the gate is not part of a run.
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
