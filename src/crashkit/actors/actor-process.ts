/**
 * One actor of a random run: an agent, a reviewer or a worker. It goes on until it is killed, or until whoever started it
 * closes its standard input. Loaded beforehand, it begins when it is told to: then the next one is there at once when one is
 * killed.
 *
 * The argument is an `ActorPlan` as JSON; orders come as lines on standard input. It prints
 * `ready` once it is loaded.
 */
import { createInterface } from "node:readline";
import type { Port } from "../../port/create-sallyport.ts";
import { systemTimers } from "../../util/timers.ts";
import { keepCompiled } from "../child.ts";
import { createDice } from "../dice.ts";
import { appendLines } from "../json-lines.ts";
import { openKit } from "../open-kit.ts";
import type { ActorLine, ActorOrder, ActorPlan, Role } from "./actor.ts";
import { playAgent } from "./agent.ts";
import { playReviewer } from "./reviewer.ts";
import type { Stage } from "./stage.ts";
import { playWorker } from "./worker.ts";

const PARTS: Readonly<Record<Role, (stage: Stage) => Promise<never>>> = {
  agent: playAgent,
  reviewer: playReviewer,
  worker: playWorker,
};

const plan: ActorPlan = JSON.parse(process.argv[2] ?? "{}");
const dice = createDice(plan.seed);
const history = appendLines<ActorLine>(plan.history);
const kit = await openKit(plan.place);
const ports = new Map<string, Promise<Port>>();
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

await PARTS[plan.role]({
  plan,
  kit,
  dice,
  timers: systemTimers,
  tenants: () => tenants,
  port(tenant) {
    const known = ports.get(tenant) ?? kit.port(tenant, { at: () => {}, fault });
    ports.set(tenant, known);
    return known;
  },
  write: history.write,
  tell(tenant, all) {
    for (const told of all) history.write({ tenant, told });
  },
});

function fault() {
  if (!dice.percent(plan.cutPercent)) return "none" as const;
  return dice.percent(20) ? ("die" as const) : ("cut" as const);
}
