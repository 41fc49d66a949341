import { expect, test } from "vitest";
import type { Interaction } from "../model/interaction.ts";
import { MAX_LIST } from "../model/record.ts";
import type { InteractionStore } from "../store/interactions.ts";
import { sweep } from "./upkeep.ts";

/** A store that knows nothing but which questions are overdue; those in `stuck` cannot be closed. */
function storeOf(ids: readonly string[], stuck: readonly string[] = []) {
  const left = new Set(ids);
  let looks = 0;
  const store: Partial<InteractionStore> = {
    async overdue(limit, after = 0) {
      looks += 1;
      const open = ids.flatMap((id, n) =>
        left.has(id) ? [{ id, ord: n + 1 } as Interaction] : [],
      );
      return open.filter(({ ord }) => ord > after).slice(0, limit);
    },
    async expire(id) {
      return !stuck.includes(id) && left.delete(id);
    },
    toEscalate: async () => [],
  };
  return { store: store as InteractionStore, looks: () => looks };
}
const names = (count: number) => Array.from({ length: count }, (_, n) => `q-${n}`);

test("everything overdue is closed, also when it is more than one page", async () => {
  const ids = names(2 * MAX_LIST + 1);
  const { store } = storeOf(ids);
  expect((await sweep(store)).expired).toEqual(ids);
});

test("only what this sweep has closed is told; what others closed is theirs", async () => {
  const { store } = storeOf(["a", "b", "c"], ["b"]);
  expect(await sweep(store)).toEqual({ expired: ["a", "c"], askedAgain: [], escalated: [] });
});

test("a full page of which nothing can be closed hides nothing behind it, and the sweep ends [B1]", async () => {
  const ids = names(MAX_LIST + 1);
  const { store, looks } = storeOf(ids, ids.slice(0, MAX_LIST));
  expect((await sweep(store)).expired).toEqual([`q-${MAX_LIST}`]);
  expect(looks()).toBe(2);
});
