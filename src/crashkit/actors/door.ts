import type { WireCallAnswer } from "../../http/wire/call.ts";
import type { CallRequest } from "../../model/call.ts";
import type { Interaction } from "../../model/interaction.ts";
import type { Port } from "../../port/create-sallyport.ts";
import type { FoundOut } from "../../port/inbox.ts";

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
export function libraryDoor(name: string, port: (tenant: string) => Promise<Port>): Door {
  const by = `person:${name}`;
  return {
    session(tenant, id) {
      const opened = async () => (await port(tenant)).sessions.open({ id, agent: `agent:${name}` });
      return {
        call: async (request) => (await opened()).call(request),
        stage: async (requests) => (await opened()).stage(requests),
        resultOf: async (key) => (await opened()).resultOf(key),
      };
    },
    inbox(tenant) {
      const interactions = async () => (await port(tenant)).interactions;
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
          const { sessions } = await port(tenant);
          const session = sessions.open({ id: sessionId, agent: "agent:of-the-session" });
          const { undone } = await session.rollback(by);
          return undone.map(({ undoOperationId }) => undoOperationId);
        },
      };
    },
  };
}
