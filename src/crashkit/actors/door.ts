import { type Client, type ClientOptions, createClient } from "../../client/index.ts";
import type { Gate } from "../../gate/create-gate.ts";
import type { FoundOut } from "../../gate/inbox.ts";
import { newSecret, newSessionSecret, type SessionSecret } from "../../http/authenticate.ts";
import type { WireCallAnswer } from "../../http/wire/call.ts";
import type { CallRequest } from "../../model/call.ts";
import { isSallyportError } from "../../model/errors.ts";
import type { Role as MayDo } from "../../model/identity.ts";
import type { Interaction } from "../../model/interaction.ts";
import type { Store } from "../../store/store.ts";
import type { JsonValue } from "../../util/json.ts";
import { seededRandom } from "../../util/random.ts";
import type { ActorPlan, Role } from "./actor.ts";

/** What agents and people need of Sallyport, alike on every way to it. */
export interface Door {
  session(tenant: string, id: string): AgentsSession;
  inbox(tenant: string): PersonsInbox;
}

export interface AgentsSession {
  call(request: CallRequest): Promise<WireCallAnswer>;
  stage(requests: readonly CallRequest[]): Promise<WireCallAnswer>;
  /** What became of a call, by its key; undefined when it was never asked for. */
  resultOf(key: string): Promise<WireCallAnswer | undefined>;
}

export type Asking = Pick<Interaction, "id" | "hash" | "type" | "sessionId" | "operationId">;

export interface PersonsInbox {
  list(limit: number): Promise<readonly Asking[]>;
  approve(asking: Asking): Promise<readonly WireCallAnswer[]>;
  reject(asking: Asking, reason: string): Promise<void>;
  cancel(asking: Asking, reason: string): Promise<void>;
  settle(asking: Asking, found: FoundOut): Promise<WireCallAnswer>;
  /** Takes a session back; answers the operations that did so. */
  rollback(sessionId: string): Promise<readonly string[]>;
}

/** Inside the process. */
export function libraryDoor(name: string, gate: (tenant: string) => Promise<Gate>): Door {
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
        async reject({ id, hash }, reason) {
          await (await interactions()).reject(id, { hash, by, reason });
        },
        async cancel({ id }, reason) {
          await (await interactions()).cancel(id, { by, reason });
        },
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

/**
 * Through the server of the run. While it is away the client asks again by itself, with the same key; when it gives up it says
 * so, and whoever asked asks again.
 */
export function httpDoor(
  plan: Pick<ActorPlan, "role" | "name" | "server">,
  unanswered: (tenant: string) => void,
): Door {
  const clients = new Map<string, Client>();

  function client(tenant: string): Client {
    const known = clients.get(tenant) ?? signedIn(tenant);
    clients.set(tenant, known);
    return known;
  }

  function signedIn(tenant: string): Client {
    return createClient({
      url: `http://127.0.0.1:${plan.server.port}`,
      ...passOf(plan, tenant),
      // It waits longer each time, and a server is back soon.
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
        // One call is known by the header, and of several each by a key of its own.
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
        async reject({ id, hash }, reason) {
          await interactions.reject({ id, hash, reason });
        },
        async cancel({ id }, reason) {
          await interactions.cancel({ id, reason });
        },
        settle: ({ id, hash }, found) => interactions.settle({ id, hash, ...found }),
        async rollback(id) {
          try {
            const { undone } = await sessions.rollback({ id });
            return undone.map(({ undoOperationId }) => undoOperationId);
          } catch (error) {
            // A session in which nothing has run yet is unknown to the server.
            if (isSallyportError(error, "not_found")) return [];
            throw error;
          }
        },
      };
    },
  };
}

/** Who an actor is, and what it may do through the server. */
const USERS: Readonly<Partial<Record<Role, { prefix: string; roles: readonly MayDo[] }>>> = {
  agent: { prefix: "agent", roles: ["agent"] },
  reviewer: { prefix: "person", roles: ["reviewer", "operator"] },
};

const LIFE_MS = 24 * 3_600_000;

type Player = Pick<ActorPlan, "role" | "name" | "server">;

/**
 * What an actor shows to the server: a reviewer both halves of a session, an agent a bearer token. All processes of the run
 * derive the same one.
 */
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

/** Made once, before the run: a short life has better things to do. */
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
