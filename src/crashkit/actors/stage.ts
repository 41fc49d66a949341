import type { Port } from "../../port/create-sallyport.ts";
import type { Timers } from "../../util/timers.ts";
import type { Dice } from "../dice.ts";
import type { Told } from "../evidence.ts";
import type { Kit } from "../open-kit.ts";
import type { ActorLine, ActorPlan, Way } from "./actor.ts";
import type { Door } from "./door.ts";

/** What an actor has in hand. */
export interface Stage {
  readonly plan: ActorPlan;
  readonly kit: Kit;
  readonly dice: Dice;
  readonly timers: Timers;
  /** All tenants of the moment, the current one last. */
  tenants(): readonly string[];
  port(tenant: string): Promise<Port>;
  readonly doors: Readonly<Record<Way, Door>>;
  write(line: ActorLine): void;
  tell(tenant: string, over: Way, told: readonly Told[]): void;
}
