import path from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { install } from "../../scripts/install.mjs";
import { castOf, happened, patient, storiesOf } from "./stories.ts";
import type { Wish } from "./world.ts";

const folder = path.join(import.meta.dirname, "../../tools/frameworks");
beforeAll(() => install(folder, "agent frameworks", process.env));

storiesOf({
  name: "LangChain",
  child: "langchain-child.ts",
  ways: ["createAgent", "stream", "ToolNode"],
  subAgents: { ways: ["sub-graph", "agent in a tool"] },
});

describe.each(["createAgent", "ToolNode"])("%s", patient, (HOW) => {
  const { start, decide, resume } = castOf("langchain-child.ts", { HOW });

  test.each([
    ["a person's no", 999, "reject", {}, /^error: Not executed/],
    [
      "a refusal of the target",
      555,
      "approve",
      { REFUSES: "1" },
      /^error: .*the invoice is closed/,
    ],
    ["an unknown outcome", 666, "approve", {}, /^error: .*not known whether this happened/s],
    ["a success", 999, "approve", {}, /^success: .*INV-1/],
  ] as const)("the message of %s has the status of it", async (_, cents, verdict, env, said) => {
    await start([{ id: "1", tool: "refund", cents }], env);
    await decide(verdict, "not today");
    expect((await resume(env)).told["1"]).toMatch(said);
    happened(...(said.source.includes("success") ? ["INV-1 999"] : []));
  });
});

test(
  "a ToolNode executes the read-only call of a turn and stops at the other",
  patient,
  async () => {
    const { start, decide, resume } = castOf("langchain-child.ts", { HOW: "ToolNode" });
    const both: readonly Wish[] = [
      { id: "1", tool: "lookup", cents: 1 },
      { id: "2", tool: "refund", cents: 50 },
    ];
    expect((await start(both)).paused).toEqual(["2"]);
    await decide("approve");
    const { told } = await resume();
    expect(told).toMatchObject({ "1": expect.stringMatching(/INV-1 is open/) });
    happened("INV-2 50");
  },
);
