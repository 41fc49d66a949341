import type { Told } from "../evidence.ts";
import type { KitPlace } from "../open-kit.ts";

/** Who takes part in a random run, each as a process of its own. */
export const ROLES = ["agent", "reviewer", "worker"] as const;
export type Role = (typeof ROLES)[number];

/** What a process of a random run is told when it starts. */
export interface ActorPlan {
  readonly role: Role;
  /** The same for all processes that come one after the other in the same place. */
  readonly name: string;
  readonly place: KitPlace;
  readonly history: string;
  readonly seed: string;
  /** Out of a hundred requests to the built-in world, so many lose their answer, and so many kill it. */
  readonly cutPercent: number;
}

/** What it is told while it runs, one line of JSON each. */
export type ActorOrder =
  /** It stands ready until then. Tenants to work for: the last one is the current one, the others are on their way to rest. */
  { readonly begin: readonly string[] } | { readonly open: string } | { readonly drop: string };

/** What it writes down before it goes on. */
export type ActorLine =
  | { readonly tenant: string; readonly told: Told }
  /** An agent is about to ask for this; after a crash it asks again, with the same key. */
  | { readonly tenant: string; readonly asks: Asked }
  | { readonly tenant: string; readonly answered: string }
  /** Somebody was faster, or may not: nothing was changed by it. */
  | { readonly tenant: string; readonly refused: string };

export interface Asked {
  readonly session: string;
  readonly key: string;
  readonly calls: readonly { readonly tool: string; readonly input: unknown }[];
}
