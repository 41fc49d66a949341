// The server under attack, in a process of its own: a crash, a stall and memory are then really its own.

import { createRedactor } from "../../src/audit/redact.ts";
import { createGate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { createServer } from "../../src/http/index.ts";
import { ROLES, type Role } from "../../src/model/identity.ts";
import { NO_RULES } from "../../src/policy/policy.ts";
import { sqliteEngine } from "../../src/store/sqlite/index.ts";
import { createStore } from "../../src/store/store.ts";
import { systemClock } from "../../src/util/clock.ts";
import { systemRandom } from "../../src/util/random.ts";
import { systemTimers } from "../../src/util/timers.ts";
import type { HttpWorld } from "../http/http-world.ts";
import { makeRecords, type Records } from "../http/matrix-samples.ts";
import { credentials, newSession } from "../http/passes.ts";
import { createWorld } from "../support/port-world.ts";
import { sampleVerdictValidator } from "../support/validators.ts";
import { type LoopFigures, watchLoop } from "./loop-watch.ts";

const TENANTS = ["acme", "bolt"] as const;

/** What an attacker has in hand: a token for every role, and records that are there. */
export interface Loot {
  readonly url: string;
  readonly tokens: Readonly<Record<Role, string>>;
  /** Headers of people who are signed in: what they do, no token does. */
  readonly people: Readonly<Record<"reviewer" | "operator" | "admin", Record<string, string>>>;
  readonly foreignToken: string;
  readonly records: Records;
  readonly foreign: Records;
}

export type ChildOrder =
  | { readonly ask: "loot" | "memory" | "loop" | "state" }
  | { readonly ask: "since"; readonly seq: number };

export interface ChildState {
  readonly seq: number;
  /** What stands on a prototype that does not belong there. */
  readonly polluted: readonly string[];
  /** Errors that no input explains: our own bugs. */
  readonly problems: readonly string[];
  readonly effects: number;
}

export interface ChildAnswers {
  readonly loot: Loot;
  /** Bytes of the heap after a full collection. */
  readonly memory: number;
  /** Since the last time it was asked. */
  readonly loop: LoopFigures;
  readonly state: ChildState;
  /** The types of the entries after this number. */
  readonly since: readonly string[];
}

const [file = ""] = process.argv.slice(2);
const engine = sqliteEngine({
  file,
  clock: systemClock,
  random: systemRandom,
  timers: systemTimers,
  patienceMs: 10_000,
});
const store = createStore(engine, { redact: createRedactor({}) });
const worlds = { acme: createWorld(), bolt: createWorld() };
const portOf = (tenant: (typeof TENANTS)[number]) =>
  createGate({
    store,
    tenant,
    tools: Object.values(worlds[tenant].tools),
    validators: {
      tech: sampleVerdictValidator("schema"),
      business: sampleVerdictValidator("limits"),
    },
    guard: allowAlways,
    policy: NO_RULES,
  });
const gates = { acme: portOf("acme"), bolt: portOf("bolt") };
const problems: string[] = [];
const onProblem = (error: unknown) => {
  problems.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
};
// An uncaught error would end a server; here it is reported first.
process.on("uncaughtExceptionMonitor", onProblem);
const server = await createServer({ store, gates, onProblem, limits: { bodyMs: 500 } });
const ownKeys = prototypeKeys();
let stopWatching = watchLoop();

const answers: { [Ask in keyof ChildAnswers]: (order: ChildOrder) => Promise<ChildAnswers[Ask]> } =
  {
    async loot() {
      for (const tenant of TENANTS) {
        await gates[tenant].killSwitch.resume("go on", { actor: "person:operator" });
      }
      const tasks = { acme: gates.acme.tasks, bolt: gates.bolt.tasks };
      const world = { store, gates, tasks } as unknown as HttpWorld;
      const make = async (role: Role) => [
        role,
        await server.makeToken({ tenant: "acme", subject: subjectOf(role), roles: [role] }),
      ];
      return {
        url: server.url,
        tokens: Object.fromEntries(await Promise.all(ROLES.map(make))),
        people: {
          reviewer: await signedIn("reviewer"),
          operator: await signedIn("operator"),
          admin: await signedIn("admin"),
        },
        foreignToken: await server.makeToken({
          tenant: "bolt",
          subject: "person:bolt",
          roles: ["reviewer", "operator"],
        }),
        records: await makeRecords(world, "acme", "agent:one"),
        foreign: await makeRecords(world, "bolt", "agent:one"),
      };
    },
    async memory() {
      // Twice, with a turn between: what is freed by finalizers of the first is collected by the second.
      for (let round = 0; round < 3; round += 1) {
        globalThis.gc?.();
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return process.memoryUsage().heapUsed;
    },
    async loop() {
      const figures = stopWatching();
      stopWatching = watchLoop();
      return figures;
    },
    async state() {
      const { seq } = await engine.head("acme");
      const added = prototypeKeys().filter((key) => !ownKeys.includes(key));
      const polluted = ({} as Record<string, unknown>)["polluted"] === undefined ? [] : ["{}"];
      const effects = worlds.acme.effects.length + worlds.bolt.effects.length;
      return { seq, polluted: [...polluted, ...added], problems: problems.slice(0, 5), effects };
    },
    async since(order) {
      const after = order.ask === "since" ? order.seq : 0;
      return (await engine.entries("acme", { after, limit: 100 })).map(({ type }) => type);
    },
  };

process.on("message", async (order: ChildOrder) => {
  process.send?.(await answers[order.ask](order));
});
process.on("disconnect", () => process.exit(0));
process.send?.("ready");

async function signedIn(role: Role): Promise<Record<string, string>> {
  const person = { tenant: "acme", subject: subjectOf(role), roles: [role] };
  return credentials(await newSession(server, person));
}

function subjectOf(role: Role): string {
  return role === "agent" ? "agent:one" : `person:${role}`;
}

function prototypeKeys(): string[] {
  const types = [Object, Array, Function, String, Number, Error, Map, Promise];
  return types.flatMap((type) =>
    [...Reflect.ownKeys(type.prototype), ...Reflect.ownKeys(type)].map(
      (key) => `${type.name}.${String(key)}`,
    ),
  );
}
