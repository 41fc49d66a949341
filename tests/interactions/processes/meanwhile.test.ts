import { expect, test } from "vitest";
import type { Inbox } from "../../../src/gate/inbox.ts";
import { SallyportError } from "../../../src/model/errors.ts";
import { defineTool } from "../../../src/tools/define-tool.ts";
import {
  decisionIdOf,
  type GateWorld,
  openGate,
  request,
  rules,
} from "../../support/port-world.ts";

const ada = "person:ada";
const bob = "person:bob";

/** What a person may try who read a question while it was theirs and writes after it was reassigned; and the error they get. */
const LATE: readonly (readonly [
  name: string,
  act: (inbox: Inbox, id: string, hash: string) => Promise<unknown>,
  told: string,
])[] = [
  ["yes", (inbox, id, hash) => inbox.approve(id, { hash, by: ada }), "not_allowed"],
  ["no", (inbox, id, hash) => inbox.reject(id, { hash, by: ada }), "not_allowed"],
  ["question back", (inbox, id) => inbox.askBack(id, { by: ada, text: "Why?" }), "not_allowed"],
  ["end", (inbox, id) => inbox.cancel(id, { by: ada, reason: "no need" }), "not_allowed"],
  [
    "edit",
    (inbox, id, hash) => inbox.edit(id, { hash, by: ada, inputs: { 0: { key: "b", value: 2 } } }),
    "approval_void",
  ],
];

test.each(LATE)(
  "handed over between look and write: a late %s changes nothing",
  async (_, act, told) => {
    const world = openGate();
    const { interactions, sessions } = world.gate;
    const session = sessions.open({ id: "s-1", agent: "agent:one" });
    const call = request("world.set", { key: "a", value: 1 });
    const id = decisionIdOf(await session.call(call));
    const { hash } = await interactions.get(id);
    handOverBeforeWrite(world, id);
    await expect(act(interactions, id, hash)).rejects.toMatchObject({ code: told });
    const { status, assignedTo, votes, remarks } = await interactions.get(id);
    expect({ status, assignedTo, votes, remarks }).toEqual({
      status: "open",
      assignedTo: bob,
      votes: [],
      remarks: [],
    });
    expect(world.effects).toEqual([]);
    const { answers } = await interactions.approve(id, { hash, by: bob });
    expect(answers.map(({ answer }) => answer)).toEqual(["done"]);
  },
);

test("handed over between look and write: a late word on a lost call changes nothing", async () => {
  const lost = defineTool({
    name: "world.lost",
    description: "Loses its answer.",
    input: { type: "object", additionalProperties: false },
    safety: { effect: "external" },
    execute() {
      throw new SallyportError("outcome_unknown", {});
    },
  });
  const policy = rules({ id: "go", effect: "allow", tool: "world.lost", reason: "a test" });
  const world = openGate({ tools: [lost], policy });
  const { interactions, sessions } = world.gate;
  await sessions.open({ id: "s-1", agent: "agent:one" }).call(request("world.lost", {}));
  const [question] = await interactions.list();
  const { id = "", hash = "" } = question ?? {};
  handOverBeforeWrite(world, id);
  const late = interactions.settle(id, { hash, by: ada, happened: true });
  await expect(late).rejects.toMatchObject({ code: "approval_void" });
  expect(await interactions.get(id)).toMatchObject({ status: "open", assignedTo: bob });
  const { answer } = await interactions.settle(id, { hash, by: bob, happened: true });
  expect(answer).toBe("done");
});

function handOverBeforeWrite({ gate, tap }: GateWorld, id: string): void {
  let isHanded = false;
  tap.before = async ({ steps }) => {
    const isAboutIt = steps.some(
      (step) => step.op === "update" && step.table.name === "interactions",
    );
    if (isHanded || !isAboutIt) return;
    isHanded = true;
    await gate.interactions.handOver(id, { by: ada, to: bob });
  };
}
