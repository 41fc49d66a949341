import type { Interaction } from "../model/interaction.ts";
import { MAX_LIST } from "../store/decisions.ts";
import type { InteractionQuery, InteractionStore } from "../store/interactions.ts";

/** Page after page, to the end. */
export async function allQuestions(
  interactions: Pick<InteractionStore, "list">,
  query: Omit<InteractionQuery, "limit">,
): Promise<readonly Interaction[]> {
  const all: Interaction[] = [];
  for (let { after = 0 } = query; ; ) {
    const page = await interactions.list({ ...query, after, limit: MAX_LIST });
    all.push(...page);
    const last = page.at(-1);
    if (page.length < MAX_LIST || last === undefined) return all;
    after = last.ord;
  }
}
