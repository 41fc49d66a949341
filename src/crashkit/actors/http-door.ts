import { type Client, createClient } from "../../client/index.ts";
import { isSallyportError } from "../../model/errors.ts";
import type { JsonValue } from "../../util/json.ts";
import type { ActorPlan } from "./actor.ts";
import type { Door } from "./door.ts";
import { passOf } from "./pass.ts";

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
