import { expect, test } from "vitest";
import type { DecisionState } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { stagedIn } from "../store/conformance/samples.ts";
import { memoryStore } from "../store/memory/index.ts";
import { createTaskList } from "./create-task-list.ts";
import { tiesFulfilled } from "./rules.ts";

const STATES = ["pending_tech", "pending_ml", "approved", "failed", "rejected_ml"] as const;

async function world(isFulfilled?: (id: string) => Promise<boolean>) {
  const { tasks: store, decisions } = memoryStore().tenant("acme");
  const ties = isFulfilled === undefined ? { decisions } : { decisions, isFulfilled };
  const tasks = createTaskList({ store, mayComplete: tiesFulfilled(ties) });
  const decided = async (state: DecisionState) => (await stagedIn(state, { decisions })).id;
  const complete = async (links: object) => {
    const { id } = await tasks.add({ subject: "A task", ...links });
    const { fence = 0 } = (await tasks.claimNext({ claimer: "alice", leaseMs: 60_000 })) ?? {};
    return tasks.complete({ id, fence, result: "done" }).then(
      ({ status }) => status,
      (error: SallyportError) => `${error.code}: ${error.details.hint}`,
    );
  };
  return { decided, complete };
}

test("a task without links, or with all its decisions executed, can be completed", async () => {
  const { decided, complete } = await world();
  expect(await complete({})).toBe("completed");
  const decisionIds = [await decided("executed"), await decided("executed")];
  expect(await complete({ decisionIds })).toBe("completed");
});

test.each(STATES)("a task with a decision in the state %s cannot be completed", async (state) => {
  const { decided, complete } = await world();
  const decisionIds = [await decided("executed"), await decided(state)];
  expect(await complete({ decisionIds })).toMatch(new RegExp(`dependency_denied.* is ${state}`));
});

test("a task with an unknown decision cannot be completed", async () => {
  const { complete } = await world();
  expect(await complete({ decisionIds: ["no-such-decision"] })).toMatch(/dependency_denied/);
});

test("a task with a delegation is completed only if isFulfilled returns true", async () => {
  const answers: readonly [unknown, RegExp][] = [
    [true, /^completed$/],
    [false, /dependency_denied.*not fulfilled/],
    ["yes", /dependency_denied.*not fulfilled/],
    [undefined, /dependency_denied.*not fulfilled/],
  ];
  for (const [answer, expected] of answers) {
    const { complete } = await world(async (id) => {
      expect(id).toBe("dlg-1");
      return answer as boolean;
    });
    expect(await complete({ delegationId: "dlg-1" })).toMatch(expected);
  }
  const { complete } = await world();
  expect(await complete({ delegationId: "dlg-1" })).toMatch(/dependency_denied: It is unknown/);
  const broken = await world(() => Promise.reject(new SallyportError("store_unavailable")));
  expect(await broken.complete({ delegationId: "dlg-1" })).toMatch(/dependency_denied/);
});
