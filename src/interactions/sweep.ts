import type { InteractionId } from "../model/interaction.ts";
import { MAX_LIST } from "../store/decisions.ts";
import type { InteractionStore } from "../store/interactions.ts";

export interface Swept {
  readonly expired: readonly InteractionId[];
  readonly escalated: readonly InteractionId[];
}

/**
 * Closes what nobody answered in time and hands on what waits too long, each once, however many processes do so at the
 * same time. Nothing hangs on it being called in time: an answer after the deadline is refused all the same.
 */
export async function sweep(store: InteractionStore): Promise<Swept> {
  return {
    expired: await drain(
      () => store.overdue(MAX_LIST),
      (id) => store.expire(id),
    ),
    escalated: await drain(
      () => store.toEscalate(MAX_LIST),
      (id) => store.escalate(id),
    ),
  };
}

/** Page by page, until a page brings nothing: what is closed is no longer found. */
async function drain(
  find: () => Promise<readonly { readonly id: InteractionId }[]>,
  close: (id: InteractionId) => Promise<boolean>,
): Promise<readonly InteractionId[]> {
  const done: InteractionId[] = [];
  for (;;) {
    const found = await find();
    const closed = await Promise.all(found.map(async ({ id }) => ((await close(id)) ? [id] : [])));
    const ids = closed.flat();
    done.push(...ids);
    if (found.length < MAX_LIST || ids.length === 0) return done;
  }
}
