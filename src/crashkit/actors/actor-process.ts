/**
 * One actor of a random run: an agent, a reviewer, a worker or the server. It goes on until it is killed, or until whoever started it
 * closes its standard input. Loaded beforehand, it begins when it is told to: then the next one is there at once when one is
 * killed.
 *
 * The argument is an `ActorPlan` as JSON; orders come as lines on standard input. It prints
 * `ready` once it is loaded.
 */
import { createInterface } from "node:readline";
import type { Gate } from "../../gate/create-gate.ts";
import { systemTimers } from "../../util/timers.ts";
import { appendLines, createDice, keepCompiled } from "../child.ts";

import { openKit } from "../open-kit.ts";
import type { ActorLine, ActorOrder, ActorPlan, Role, Stage } from "./actor.ts";
import { httpDoor, libraryDoor } from "./door.ts";

/** Each loads its own part alone: hundreds of them start in a run. */
const PARTS: Readonly<Record<Role, () => Promise<(stage: Stage) => Promise<never>>>> = {
  agent: async () => (await import("./roles.ts")).playAgent,
  reviewer: async () => (await import("./roles.ts")).playReviewer,
  worker: async () => (await import("./roles.ts")).playWorker,
  server: async () => (await import("./roles.ts")).playServer,
};

const plan: ActorPlan = JSON.parse(process.argv[2] ?? "{}");
const dice = createDice(plan.seed);
const history = appendLines<ActorLine>(plan.history);
const kit = await openKit(plan.place);
const play = await PARTS[plan.role]();
const gates = new Map<string, Promise<Gate>>();
const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
let tenants: readonly string[] = [];

const orders = createInterface(process.stdin);
orders.on("line", (line) => {
  const order: ActorOrder = JSON.parse(line);
  if ("begin" in order) {
    tenants = order.begin;
    begin();
  } else if ("open" in order) tenants = [...tenants, order.open];
  else tenants = tenants.filter((tenant) => tenant !== order.drop);
});
orders.on("close", () => process.exit(0));
process.stdout.write("ready\n");
keepCompiled();
await begun;

await play({
  plan,
  kit,
  dice,
  timers: systemTimers,
  tenants: () => tenants,
  gate,
  doors: {
    library: libraryDoor(plan.name, gate),
    http: httpDoor(plan, (tenant) => history.write({ tenant, unanswered: "http" })),
  },
  write: history.write,
  tell(tenant, over, all) {
    for (const told of all) history.write({ tenant, told, over });
  },
});

function gate(tenant: string): Promise<Gate> {
  const known = gates.get(tenant) ?? kit.gate(tenant, { at: () => {}, fault });
  gates.set(tenant, known);
  return known;
}

function fault() {
  if (!dice.percent(plan.cutPercent)) return "none" as const;
  return dice.percent(20) ? ("die" as const) : ("cut" as const);
}
