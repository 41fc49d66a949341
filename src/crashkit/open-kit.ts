import type { AtPoint } from "../executor/crash-point.ts";
import type { Validator } from "../model/validator.ts";
import { createSallyport, type Port } from "../port/create-sallyport.ts";
import { allowAlways } from "../staging/guards/allow-always.ts";
import { postgresStore } from "../store/postgres/index.ts";
import { sqliteStore } from "../store/sqlite/index.ts";
import type { Store } from "../store/store.ts";
import type { Dice } from "./dice.ts";
import type { Effect } from "./evidence.ts";
import { followLines } from "./json-lines.ts";
import { type HostParts, type KitCall, type KitModule, readKitModule } from "./kit-module.ts";
import { type Fault, type FenceLine, isEffect, type LedgerLine } from "./world/world.ts";
import { FREE, worldTools } from "./world/world-tools.ts";

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
  readonly ledgerFile: string;
}

/** A lease that is over soon, so that a run need not wait long for what was left behind. */
export const LEASE_MS = 400;

export interface PortHooks {
  /** Points of the protocol, and those inside the tools of the built-in world. */
  at(point: Parameters<AtPoint>[0] | "S6.request" | "S6.effect"): void;
  fault(): Fault;
}

export interface Kit {
  readonly store: Store;
  port(tenant: string, hooks?: PortHooks): Promise<Port>;
  /** Undefined with the built-in world, whose calls are planned by the kit. */
  readonly calls: ((dice: Dice) => readonly KitCall[]) | undefined;
  effects(): Promise<readonly Effect[]>;
  mayRunAlone(tool: string): boolean;
  /** Production is the kit's own, so that every effect in it must belong to the run. */
  readonly hasWorld: boolean;
  close(): Promise<void>;
}

const QUIET: PortHooks = { at: () => {}, fault: () => "none" };

/** Opens the store and what is to be put to the test, in this process. */
export async function openKit(place: KitPlace): Promise<Kit> {
  const module = await readKitModule(place.config);
  const { hooks } = module;
  const { store, close } = await openStore(place.store, module);
  const ledger = followLines<LedgerLine | FenceLine>(place.ledgerFile);
  return {
    store,
    async port(tenant, { at, fault } = QUIET) {
      const own = await module.parts();
      const parts = own ?? worldParts(place.worldPort, { at, fault });
      return createSallyport({ ...parts, store, tenant, leaseMs: LEASE_MS, at });
    },
    calls: hooks.calls?.bind(hooks),
    effects: async () => (await hooks.effects?.()) ?? ledger.read().filter(isEffect),
    mayRunAlone: (tool) =>
      hooks.mayRunAlone?.(tool) ?? (hooks.calls !== undefined || tool.startsWith(FREE)),
    hasWorld: hooks.effects === undefined,
    close,
  };
}

function worldParts(port: number, hooks: PortHooks): HostParts {
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
