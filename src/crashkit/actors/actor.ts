import type { Gate } from "../../gate/create-gate.ts";
import type { WireCallAnswer } from "../../http/wire/call.ts";
import { SallyportError } from "../../model/errors.ts";
import type { Timers } from "../../util/timers.ts";
import type { Dice } from "../child.ts";
import type { Told } from "../evidence.ts";
import type { Kit, KitPlace } from "../open-kit.ts";
import type { Door } from "./door.ts";

/** Who takes part in a random run, each as a process of its own. */
export const ROLES = ["agent", "reviewer", "worker", "server"] as const;
export type Role = (typeof ROLES)[number];

/** How an agent or a reviewer gets to Sallyport: inside its own process, or through the server of the run. */
export const WAYS = ["library", "http"] as const;
export type Way = (typeof WAYS)[number];

/** Where the server of a run is. It comes back at the same place, so that nobody has to be told. */
export interface ServerPlace {
  readonly port: number;
  /** All tenants of the run, those too that have not begun. */
  readonly tenants: readonly string[];
  /** What tokens are made from: nobody outside the run knows it. */
  readonly secret: string;
}

/** What a process of a random run is told when it starts. */
export interface ActorPlan {
  readonly role: Role;
  /** The same for all processes that come one after the other in the same place. */
  readonly name: string;
  readonly place: KitPlace;
  readonly server: ServerPlace;
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
  | { readonly tenant: string; readonly told: Told; readonly over: Way }
  /** An agent is about to ask for this; after a crash it asks again, with the same key. */
  | { readonly tenant: string; readonly asks: Asked }
  | { readonly tenant: string; readonly answered: string; readonly over: Way }
  /** Somebody was faster, or may not: nothing was changed by it. */
  | { readonly tenant: string; readonly refused: string }
  /** A request to the server: nobody listened, or the line was cut. It is sent again with the same key. */
  | { readonly tenant: string; readonly unanswered: "http" };

export interface Asked {
  readonly over: Way;
  readonly session: string;
  readonly key: string;
  readonly calls: readonly { readonly tool: string; readonly input: unknown }[];
}

/** Each call has an id of its own, which is its key too. */
export function callIdOf({ key }: Asked, step: number): string {
  return `${key}-${step}`;
}

/** What an actor has in hand. */
export interface Stage {
  readonly plan: ActorPlan;
  readonly kit: Kit;
  readonly dice: Dice;
  readonly timers: Timers;
  /** All tenants of the moment, the current one last. */
  tenants(): readonly string[];
  gate(tenant: string): Promise<Gate>;
  readonly doors: Readonly<Record<Way, Door>>;
  write(line: ActorLine): void;
  tell(tenant: string, over: Way, told: readonly Told[]): void;
}

/** As it may be after a pause or behind a crowd. Callers are told so and try again; that nothing is lost or doubled by it is checked. */
const STORE_IS_AWAY = ["store_unavailable", "store_busy", "commit_unknown", "partly_written"];
/** Said by a server to whoever comes back before it has forgotten the one that was cut off, or comes too often. */
const LATER = ["still_running", "overloaded", "too_fast"];

/** Undefined when it was refused for one of these reasons, which is written down. Anything else is a reason to stop. */
export async function orTold<Result>(
  stage: Stage,
  tenant: string,
  work: () => Promise<Result>,
  expected: readonly string[] = [],
): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SallyportError)) throw error;
    const { code } = error;
    if (!isAway(error) && !LATER.includes(code) && !expected.includes(code)) throw error;
    stage.write({ tenant, refused: code });
    return undefined;
  }
}

export function isAway(error: unknown): boolean {
  return error instanceof SallyportError && STORE_IS_AWAY.includes(error.code);
}

/** What an answer to a call tells its caller, on whichever way it came; nothing for one that names no record. */
export function toldOf(answer: WireCallAnswer): readonly Told[] {
  if (answer.answer === "pending") {
    return answer.decisionId === "" ? [] : [{ decisionId: answer.decisionId, answer: "pending" }];
  }
  if (answer.answer === "denied") return [];
  const { operationId } = answer;
  return operationId === undefined || operationId === ""
    ? []
    : [{ operationId, answer: answer.answer }];
}
