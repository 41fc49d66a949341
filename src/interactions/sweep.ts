import type { Interaction, InteractionId } from "../model/interaction.ts";
import { MAX_LIST } from "../store/decisions.ts";
import type { InteractionStore } from "../store/interactions.ts";

export interface Swept {
  readonly expired: readonly InteractionId[];
  /** Lost calls that nobody has found out about: they do not expire, people are asked again. */
  readonly askedAgain: readonly InteractionId[];
  readonly escalated: readonly InteractionId[];
}

/**
 * Closes what nobody answered in time and hands on what waits too long, each once, however many processes do so at the
 * same time. Nothing hangs on it being called in time: an answer after the deadline is refused all the same.
 */
export async function sweep(store: InteractionStore): Promise<Swept> {
  const expired: InteractionId[] = [];
  const askedAgain: InteractionId[] = [];
  const escalated: InteractionId[] = [];
  await eachOnce(
    (after) => store.overdue(MAX_LIST, after),
    async ({ id, type }) => {
      if (type !== "connection_lost") {
        if (await store.expire(id)) expired.push(id);
      } else if (await store.askAgain(id)) askedAgain.push(id);
    },
  );
  await eachOnce(
    (after) => store.toEscalate(MAX_LIST, after),
    async ({ id }) => {
      if (await store.escalate(id)) escalated.push(id);
    },
  );
  return { expired, askedAgain, escalated };
}

/** Page after page, so that what cannot be closed hides nothing behind it. */
async function eachOnce(
  find: (after: number) => Promise<readonly Interaction[]>,
  work: (found: Interaction) => Promise<void>,
): Promise<void> {
  for (let after = 0; ; ) {
    const page = await find(after);
    await Promise.all(page.map(work));
    const last = page.at(-1);
    if (page.length < MAX_LIST || last === undefined) return;
    after = last.ord;
  }
}
