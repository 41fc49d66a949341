import path from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { install } from "../../scripts/install.mjs";
import { castOf, ledger, one, patient, storiesOf } from "./stories.ts";
import type { Wish } from "./world.ts";

const folder = path.join(import.meta.dirname, "../../tools/frameworks");
beforeAll(() => install(folder, "agent frameworks", process.env));

storiesOf({
  name: "LangChain",
  child: "langchain-child.ts",
  ways: ["createAgent", "stream", "ToolNode"],
  subAgents: { ways: ["sub-graph", "agent in a tool"] },
});

describe("a ToolNode of LangGraph", patient, () => {
  const { run, start, decide } = castOf("langchain-child.ts");
  const env = { HOW: "ToolNode" };

  test("stops again when it is resumed without a person's answer, and then tells the model the no", async () => {
    await start(one, env);
    const forced = await run(["force"], env);
    expect(forced).toEqual({ paused: ["1"], told: {} });
    await decide("reject", "ask for the receipt first");
    expect((await run(["resume"], env)).told["1"]).toMatch(/ask for the receipt first/);
    expect(ledger()).toEqual([]);
  });

  test("executes the read-only call of a turn and stops at the other", async () => {
    const both: readonly Wish[] = [
      { id: "1", tool: "lookup", cents: 1 },
      { id: "2", tool: "refund", cents: 50 },
    ];
    expect((await start(both, env)).paused).toEqual(["2"]);
    await decide("approve");
    const { told } = await run(["resume"], env);
    expect(told).toMatchObject({ "1": expect.stringMatching(/INV-1 is open/) });
    expect(ledger()).toEqual(["INV-2 50"]);
  });
});
