import { expect, test } from "vitest";
import { NO_RULES } from "../../src/policy/policy.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { openHttp } from "./http-world.ts";

const READS = 1_050;

function tools(values: Map<string, number>) {
  const read = defineTool({
    name: "w.read",
    description: "Reads.",
    input: { type: "object", additionalProperties: false },
    safety: { effect: "read", concurrencySafe: true },
    permissionClass: "readonly",
    execute: () => "ok",
  });
  const set = defineTool({
    name: "w.set",
    description: "Sets a number.",
    input: {
      type: "object",
      properties: { n: { type: "integer" } },
      required: ["n"],
      additionalProperties: false,
    },
    safety: { effect: "external", reversible: true },
    execute({ input }) {
      const before = values.get("a") ?? 0;
      values.set("a", Number(input["n"]));
      return { text: "set", data: { n: before } };
    },
    undo: ({ output }) => ({ tool: "w.set", input: output as { n: number } }),
  });
  return [read, set];
}

const ALLOW = {
  ...NO_RULES,
  rules: [{ id: "set", tool: "w.set", effect: "allow", reason: "for the test" } as const],
};

test("rollback: a write behind more than 1,000 reads is listed first and undone [M9]", async () => {
  const values = new Map<string, number>();
  const port = { tools: tools(values), policy: ALLOW };
  const { client } = await openHttp({ port });
  const agent = await client("acme", "agent");
  const operator = await client("acme", "operator");
  const { id } = await agent.sessions.open({});
  for (let done = 0; done < READS; done += 50) {
    const calls = Array.from({ length: 50 }, (_, n) => ({
      callId: `r${done}-${n}`,
      tool: "w.read",
      input: {},
    }));
    await agent.sessions.callAll({ id, calls });
  }
  const written = await agent.sessions.call({ id, callId: "w", tool: "w.set", input: { n: 66 } });
  expect(written.answer).toBe("done");
  expect(values.get("a")).toBe(66);

  const first = await operator.operations.list({ sessionId: id, limit: 500 });
  expect(first.items[0]).toMatchObject({ tool: "w.set", status: "success" });
  const at = (cursor?: string) => (cursor === undefined ? {} : { cursor });
  const pages = operator.all((c) =>
    operator.operations.list({ sessionId: id, limit: 500, ...at(c) }),
  );
  const seen = new Set<string>();
  for await (const one of pages) seen.add(one.id);
  expect(seen.size).toBe(READS + 1);

  const report = await operator.sessions.rollback({ id });
  expect(report.undone).toMatchObject([{ tool: "w.set" }]);
  expect(report.skipped, "reads are no part of it").toEqual([]);
  expect(values.get("a")).toBe(0);
});
