import type { Delegation } from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import type { Rooms } from "./rooms.ts";
import { openSession, type Session } from "./session.ts";

/**
 * The session of a sub-agent. Everything in it is bound by its delegation, which the gate and the store find by its id; here
 * is only what they cannot see: in whose name it speaks, and that nobody is asked on behalf of one that has ended.
 */
export function childSession(
  { id, agents, owner, workingDirectory }: Delegation,
  signal: AbortSignal,
  rooms: Rooms,
): Session {
  const { tenant, delegations } = rooms.store;
  const caller = { tenant, sessionId: id, chain: agents, owner, workingDirectory, signal };
  const session = openSession(caller, rooms);

  async function checkAlive(): Promise<void> {
    const why = await delegations.whyOver(id);
    if (why === undefined) return;
    const hint = `${why} Stop working on this.`;
    throw new SallyportError("illegal_transition", { id, hint });
  }

  return {
    ...session,
    async ask(question) {
      await checkAlive();
      return session.ask(question);
    },
    async reply(interaction, text) {
      await checkAlive();
      return session.reply(interaction, text);
    },
    // Whatever name it gives: a sub-agent takes back in its own.
    rollback: (_by, part) => session.rollback(agents[0] ?? "agent", part),
  };
}
