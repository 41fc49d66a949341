import { generateText, isStepCount, jsonSchema, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { expect, test } from "vitest";
import { z } from "zod";
import { createGate } from "../gate/create-gate.ts";
import type { Policy } from "../policy/policy.ts";
import { memoryStore } from "../store/memory/index.ts";
import { defineTool } from "../tools/define-tool.ts";
import { gated, gateTools } from "./ai/index.ts";

const inputSchema = z.object({ invoice: z.string() });
const description = "Pays an invoice back.";
const refund = tool({
  description,
  inputSchema,
  execute: ({ invoice }) => ({ refunded: invoice }),
  toModelOutput: ({ output }) => ({ type: "text", value: `refund of ${output.refunded}` }),
});
const allowed: Policy = {
  version: "1",
  rules: [{ id: "refunds", effect: "allow", tool: "refund", reason: "For the test." }],
};
const billing = { agent: "billing", run: "run-1" };

/** Asks for one call, then says what it was told. */
function asking(toolName: string) {
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const told = prompt.flatMap(({ role, content }) => (role === "tool" ? content : []));
      const input = JSON.stringify({ invoice: "2041" });
      return {
        content:
          told.length > 0
            ? [{ type: "text", text: JSON.stringify(told) }]
            : [{ type: "tool-call", toolCallId: "c-1", toolName, input }],
        finishReason: { unified: told.length > 0 ? "stop" : "tool-calls" },
        usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
        warnings: [],
      } as never;
    },
  });
}

async function told(gate: ReturnType<typeof createGate>, tools: Parameters<typeof gateTools>[1]) {
  const [name = ""] = Object.keys(tools);
  const settings = { model: asking(name), stopWhen: isStepCount(3), prompt: "go" };
  return (await generateText({ ...settings, tools: gateTools(gate, tools, billing) })).text;
}

test("gateTools: a call that the policy allows runs at once, once, and keeps the tool's own output", async () => {
  await using store = memoryStore();
  const gate = createGate({ store, policy: allowed });
  expect(await told(gate, { refund })).toContain("refund of 2041");
  expect(await store.tenant("default").operations.listBySession("run-1", {})).toHaveLength(1);
});

test("gateTools: a tool may stream its output or have a plain JSON Schema; the last part is its result", async () => {
  await using store = memoryStore();
  const streaming = tool({
    inputSchema: jsonSchema<{ invoice: string }>({
      type: "object",
      properties: { invoice: { type: "string" } },
      required: ["invoice"],
    }),
    async *execute({ invoice }) {
      yield "working";
      yield `refunded ${invoice}`;
    },
  });
  const gate = createGate({ store, policy: allowed });
  expect(await told(gate, { refund: streaming })).toContain("refunded 2041");
});

test("gateTools: whoever delegated to the agent, and its owner, are among those who asked", async () => {
  await using store = memoryStore();
  const gate = createGate({ store });
  const options = { agent: "sub", run: "run-1", delegatedBy: ["billing"], owner: "person:ada" };
  const tools = gateTools(gate, { refund }, options);
  await generateText({ model: asking("refund"), tools, prompt: "go" });
  const [question] = await gate.interactions.list();
  expect(question?.chain).toEqual(["sub", "billing", "person:ada"]);
  const yes = { hash: question?.hash ?? "", by: "person:ada" };
  await expect(gate.interactions.approve(question?.id ?? "", yes)).rejects.toMatchObject({
    code: "not_allowed",
  });
});

test("gated: each promise of a foreign tool reaches the gate, and the tool stays the same object", async () => {
  await using store = memoryStore();
  const gate = createGate({ store });
  const promised = gated(
    { ...refund },
    {
      dryRun: ({ input }) => `would refund ${input.invoice}`,
      undo: ({ output }) => ({ tool: "cancel", input: { invoice: output.refunded } }),
      undoOnly: true,
    },
  );
  expect(gated(promised, { version: "2" })).toBe(promised);
  gateTools(gate, { refund: promised }, billing);
  const made = gate.tools.get("refund");
  expect([made?.version, made?.undoOnly]).toEqual(["2", true]);
  expect([typeof made?.dryRun, typeof made?.generateUndo]).toEqual(["function", "function"]);
});

test("gated: the reviewer sees the dry run and the version of a foreign tool, a rollback runs its undo, and a changed record asks again", async () => {
  await using store = memoryStore();
  const ledger: string[] = [];
  const cancel = defineTool({
    name: "cancel",
    description: "Takes a refund back.",
    input: inputSchema,
    undoOnly: true,
    execute: ({ input: { invoice } }) => void ledger.push(`cancel ${invoice}`),
  });
  const policy: Policy = {
    version: "1",
    rules: [{ id: "undo", effect: "allow", tool: "cancel", reason: "For the test." }],
  };
  const gate = createGate({ store, policy, tools: [cancel] });
  const paying = gated(
    tool({
      description,
      inputSchema,
      execute: ({ invoice }) => {
        ledger.push(`refund ${invoice}`);
        return { refunded: invoice };
      },
    }),
    {
      dryRun: ({ input }) => `would refund ${input.invoice}`,
      stateVersion: () => `v${ledger.length}`,
      undo: ({ output }) => ({ tool: "cancel", input: { invoice: output.refunded } }),
    },
  );
  const tools = gateTools(gate, { refund: paying }, billing);
  await generateText({ model: asking("refund"), tools, prompt: "go" });
  const [question] = await gate.interactions.list();
  const shown = await gate.interactions.shown(question?.id ?? "");
  expect(shown?.preview).toMatchObject({
    dryRun: [{ summary: "would refund 2041" }],
    stateVersion: ["v0"],
  });
  ledger.push("somebody else");
  const yes = { hash: question?.hash ?? "", by: "person:ada" };
  expect((await gate.interactions.approve(question?.id ?? "", yes)).outcome).toBe("asked_again");
  const [again] = await gate.interactions.list();
  await gate.interactions.approve(again?.id ?? "", { hash: again?.hash ?? "", by: "person:ada" });
  expect(ledger).toEqual(["somebody else", "refund 2041"]);
  const session = gate.sessions.open({ id: "run-1", agent: "billing" });
  await session.rollback("person:ada");
  expect(ledger).toEqual(["somebody else", "refund 2041", "cancel 2041"]);
});

test("gateTools: a later run replaces the tools of an earlier one, and never a tool of the host", async () => {
  await using store = memoryStore();
  const own = defineTool({ name: "own", description, input: inputSchema, execute: () => "own" });
  const gate = createGate({ store, tools: [own] });
  gateTools(gate, { refund }, billing);
  const first = gate.tools.get("refund");
  gateTools(gate, { refund }, { agent: "billing", run: "run-2" });
  expect(gate.tools.get("refund")).not.toBe(first);
  expect(() => gateTools(gate, { own: refund }, billing)).toThrow(/own/);
  expect(gate.tools.get("own")).toBe(own);
});

test("gateTools: a tool that runs elsewhere and a misspelt read-only name are refused", async () => {
  await using store = memoryStore();
  const gate = createGate({ store });
  expect(() => gateTools(gate, { page: tool({ inputSchema }) }, billing)).toThrow(/has no execute/);
  expect(() => gateTools(gate, { refund }, { ...billing, readOnly: ["refnd"] })).toThrow(
    /"refnd", which is not among the tools/,
  );
});
