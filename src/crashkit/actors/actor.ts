import { type Client, type ClientOptions, createClient } from "../../client/index.ts";
import type { Gate } from "../../gate/create-gate.ts";
import type { FoundOut } from "../../gate/inbox.ts";
import { newSecret, newSessionSecret, type SessionSecret } from "../../http/authenticate.ts";
import type { WireCallAnswer } from "../../http/wire.ts";
import { isSallyportError, SallyportError } from "../../model/errors.ts";
import type { Role as MayDo } from "../../model/identity.ts";
import type { Interaction } from "../../model/interaction.ts";
import type { CallRequest } from "../../model/operation.ts";
import type { Store } from "../../store/store.ts";
import type { JsonValue } from "../../util/json.ts";
import { seededRandom } from "../../util/random.ts";
import type { Timers } from "../../util/timers.ts";
import type { Dice } from "../child.ts";
import type { Told } from "../evidence.ts";
import type { Kit, KitPlace } from "../open-kit.ts";

/** The roles of a random run, each a process. */
export const ACTOR_ROLES = ["agent", "reviewer", "worker", "server"] as const;
export type ActorRole = (typeof ACTOR_ROLES)[number];

/** How an agent or a reviewer calls Sallyport: in its own process, or through the server of the run. */
export const WAYS = ["library", "http"] as const;
export type Way = (typeof WAYS)[number];

/** Where the server of a run is. It restarts at the same address. */
export interface ServerPlace {
  readonly port: number;
  /** All tenants of the run, including future ones. */
  readonly tenants: readonly string[];
  /** Tokens are derived from it. */
  readonly secret: string;
}

/** The start-up argument of a process of a random run. */
export interface ActorPlan {
  readonly role: ActorRole;
  /** The same for all processes that succeed each other in one role. */
  readonly name: string;
  readonly place: KitPlace;
  readonly server: ServerPlace;
  readonly history: string;
  readonly seed: string;
  /** The percentage of requests to the built-in world that lose their answer, and the same that kill it. */
  readonly cutPercent: number;
}

/** Orders while it runs, one line of JSON each. */
export type ActorOrder =
  /** It waits until then. The last tenant is the current one, the others are finishing. */
  { readonly begin: readonly string[] } | { readonly open: string } | { readonly drop: string };

/** What it records before it continues. */
export type ActorLine =
  | { readonly tenant: string; readonly told: Told; readonly over: Way }
  /** An agent is about to request this; after a crash it repeats the request with the same key. */
  | { readonly tenant: string; readonly asks: Asked }
  | { readonly tenant: string; readonly answered: string; readonly over: Way }
  /** Lost a race, or was not allowed: nothing was changed. */
  | { readonly tenant: string; readonly refused: string }
  /** A request to the server failed. It is repeated with the same key. */
  | { readonly tenant: string; readonly unanswered: "http" };

export interface Asked {
  readonly over: Way;
  readonly session: string;
  readonly key: string;
  readonly calls: readonly { readonly tool: string; readonly input: unknown }[];
}

/** The id of a call, which is also its idempotency key. */
export function callIdOf({ key }: Asked, step: number): string {
  return `${key}-${step}`;
}

/** What an actor works with. */
export interface Stage {
  readonly plan: ActorPlan;
  readonly kit: Kit;
  readonly dice: Dice;
  readonly timers: Timers;
  /** All active tenants, the current one last. */
  tenants(): readonly string[];
  gate(tenant: string): Promise<Gate>;
  readonly apis: Readonly<Record<Way, ActorApi>>;
  write(line: ActorLine): void;
  tell(tenant: string, over: Way, told: readonly Told[]): void;
}

/** Expected after a pause or under load. Callers try again; that nothing is lost or duplicated is checked. */
const STORE_IS_AWAY = ["store_unavailable", "store_busy", "commit_unknown", "partly_written"];
/** Returned by a server to early or frequent retries. */
const LATER = ["still_running", "overloaded", "too_fast"];

/** Undefined when it was refused for one of these reasons, which is recorded. Other errors end the process. */
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

/** What a caller learns from an answer; nothing if it names no record. */
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

/** What agents and people need of Sallyport, the same for both ways. */
export interface ActorApi {
  session(tenant: string, id: string): AgentsSession;
  inbox(tenant: string): PersonsInbox;
}

export interface AgentsSession {
  call(request: CallRequest): Promise<WireCallAnswer>;
  stage(requests: readonly CallRequest[]): Promise<WireCallAnswer>;
  /** The result of a call by its key; undefined when it was never requested. */
  resultOf(key: string): Promise<WireCallAnswer | undefined>;
}

export type Asking = Pick<Interaction, "id" | "hash" | "type" | "sessionId" | "operationId">;

export interface PersonsInbox {
  list(limit: number): Promise<readonly Asking[]>;
  approve(asking: Asking): Promise<readonly WireCallAnswer[]>;
  reject(asking: Asking, reason: string): Promise<unknown>;
  cancel(asking: Asking, reason: string): Promise<unknown>;
  settle(asking: Asking, found: FoundOut): Promise<WireCallAnswer>;
  /** Rolls a session back; returns the ids of the undo operations. */
  rollback(sessionId: string): Promise<readonly string[]>;
}

/** In the same process. */
export function libraryApi(name: string, gate: (tenant: string) => Promise<Gate>): ActorApi {
  const by = `person:${name}`;
  return {
    session(tenant, id) {
      const opened = async () => (await gate(tenant)).sessions.open({ id, agent: `agent:${name}` });
      return {
        call: async (request) => (await opened()).call(request),
        stage: async (requests) => (await opened()).stage(requests),
        resultOf: async (key) => (await opened()).resultOf(key),
      };
    },
    inbox(tenant) {
      const interactions = async () => (await gate(tenant)).interactions;
      return {
        list: async (limit) => (await interactions()).list({ limit }),
        approve: async ({ id, hash }) =>
          (await (await interactions()).approve(id, { hash, by })).answers,
        reject: async ({ id, hash }, reason) =>
          (await interactions()).reject(id, { hash, by, reason }),
        cancel: async ({ id }, reason) => (await interactions()).cancel(id, { by, reason }),
        settle: async ({ id, hash }, found) =>
          (await interactions()).settle(id, { hash, by, ...found }),
        async rollback(sessionId) {
          const { sessions } = await gate(tenant);
          const session = sessions.open({ id: sessionId, agent: "agent:of-the-session" });
          const { undone } = await session.rollback(by);
          return undone.map(({ undoOperationId }) => undoOperationId);
        },
      };
    },
  };
}

/** Through the server of the run. While it is down, the client retries with the same key; when it gives up, the actor does. */
export function httpApi(
  plan: Pick<ActorPlan, "role" | "name" | "server">,
  unanswered: (tenant: string) => void,
): ActorApi {
  const clients = new Map<string, Client>();
  const client = (tenant: string): Client => {
    const known = clients.get(tenant) ?? signedIn(tenant);
    clients.set(tenant, known);
    return known;
  };

  function signedIn(tenant: string): Client {
    return createClient({
      url: `http://127.0.0.1:${plan.server.port}`,
      ...passOf(plan, tenant),
      // The delay grows with each retry, and a server restarts quickly.
      retries: 2,
      async fetch(...request) {
        try {
          return await fetch(...request);
        } catch (error) {
          unanswered(tenant);
          throw error;
        }
      },
    });
  }

  return {
    session(tenant, given) {
      const { sessions } = client(tenant);
      let opened: string | undefined;
      const open = async () => (opened ??= (await sessions.open({ id: given })).id);
      return {
        // A single call has its key in the header; of several calls each has its own.
        async call({ key = "", callId, tool, input }) {
          const call = { id: await open(), callId, tool, input: input as JsonValue };
          return sessions.call(call, { idempotencyKey: key });
        },
        async stage(requests) {
          const calls = requests.map((request) => ({ ...request }));
          return sessions.stage({ id: await open(), calls });
        },
        async resultOf(key) {
          return (await sessions.resultOf({ id: await open(), key })).result ?? undefined;
        },
      };
    },
    inbox(tenant) {
      const { interactions, sessions } = client(tenant);
      return {
        list: async (limit) => (await interactions.list({ limit })).items,
        approve: async ({ id, hash }) => (await interactions.approve({ id, hash })).answers,
        reject: ({ id, hash }, reason) => interactions.reject({ id, hash, reason }),
        cancel: ({ id }, reason) => interactions.cancel({ id, reason }),
        settle: ({ id, hash }, found) => interactions.settle({ id, hash, ...found }),
        async rollback(id) {
          try {
            const { undone } = await sessions.rollback({ id });
            return undone.map(({ undoOperationId }) => undoOperationId);
          } catch (error) {
            // The server does not know a session without operations.
            if (isSallyportError(error, "not_found")) return [];
            throw error;
          }
        },
      };
    },
  };
}

/** The identity and roles of an actor at the server. */
const USERS: Readonly<Partial<Record<ActorRole, { prefix: string; roles: readonly MayDo[] }>>> = {
  agent: { prefix: "agent", roles: ["agent"] },
  reviewer: { prefix: "person", roles: ["reviewer", "operator"] },
};

const LIFE_MS = 24 * 3_600_000;

type Player = Pick<ActorPlan, "role" | "name" | "server">;

/** The credentials of an actor: a session for a reviewer, a bearer token for an agent. Every process derives the same. */
function passOf(player: Player, tenant: string): Pick<ClientOptions, "token" | "session"> {
  const { text, key } = secretOf(player, tenant);
  if (key === "") return { token: text };
  return { session: { cookie: `sallyport_${player.server.port}=${text}`, key } };
}

/** Its key is empty for a bearer token. */
function secretOf({ role, name, server }: Player, tenant: string): SessionSecret {
  const random = seededRandom(`${server.secret}/${name}`);
  if (role === "reviewer") return newSessionSecret(tenant, random);
  return { ...newSecret(tenant, random), key: "" };
}

/** Creates the credentials once, before the run. */
export async function makePass(store: Store, player: Player): Promise<void> {
  const { role, name, server } = player;
  const user = USERS[role];
  if (user === undefined) return;
  const { prefix, roles } = user;
  for (const tenant of server.tenants) {
    const { hash, key } = secretOf(player, tenant);
    const kind = key === "" ? "token" : "session";
    const token = { kind, hash, subject: `${prefix}:${name}`, roles } as const;
    const terms = { owner: "", note: "crash kit", lifeMs: LIFE_MS };
    await store.tenant(tenant).tokens.make({ ...token, ...terms }, { actor: "crashkit" });
  }
}
