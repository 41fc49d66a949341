// The demo with a model of the AI SDK: the model is a mock, everything behind it is real.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import * as sdk from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { expect, onTestFinished, test, vi } from "vitest";
import { loadModel, modelled, startAgents } from "../../src/cli/demo/agents.ts";

import {
  businessReview,
  openWarehouse,
  techReview,
  warehouseTools,
} from "../../src/cli/demo/warehouse.ts";
import { createGate } from "../../src/gate/create-gate.ts";
import { askUserTool } from "../../src/gate/inbox.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { NO_RULES } from "../../src/policy/policy.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { systemTimers } from "../../src/util/timers.ts";

const root = path.dirname(path.dirname(import.meta.dirname));
const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

function temporary(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-model-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Calls these one after the other regardless of the answers, then says that it is done. */
function calling(...calls: readonly { readonly toolName: string; readonly input: object }[]) {
  const asked: string[] = [];
  let next = 0;
  const model = new MockLanguageModelV4({
    async doGenerate({ prompt, tools = [] }) {
      asked.push(JSON.stringify(prompt));
      const call = tools.some(({ name }) => name === calls[next]?.toolName) && calls[next];
      if (!call) {
        const text = "I did my one thing.";
        const finishReason = { unified: "stop", raw: undefined } as const;
        return { content: [{ type: "text", text }], finishReason, usage: USAGE, warnings: [] };
      }
      next += 1;
      const input = JSON.stringify(call.input);
      const { toolName } = call;
      return {
        content: [{ type: "tool-call", toolCallId: `c${next}`, toolName, input }],
        finishReason: { unified: "tool-calls", raw: undefined } as const,
        usage: USAGE,
        warnings: [],
      };
    },
  });
  return { model, asked };
}

function openDemo(model: MockLanguageModelV4) {
  const warehouse = openWarehouse(path.join(temporary(), "warehouse.db"));
  const gate = createGate({
    store: memoryStore(),
    tenant: "demo",
    tools: [...warehouseTools(warehouse), askUserTool()],
    validators: { tech: techReview(warehouse.skus), business: businessReview },
    guard: allowAlways,
    policy: NO_RULES,
  });
  const problems: unknown[] = [];
  const agents = startAgents(modelled({ sdk, model }), {
    gate,
    warehouse,
    timers: systemTimers,
    run: 7,
    everyMs: 50,
    onProblem: (error) => problems.push(error),
  });
  onTestFinished(async () => {
    await agents.stop();
    warehouse.close();
  });
  return { gate, warehouse, problems };
}

test("a model's call waits in the inbox like any other, and runs after a person approved it [R3]", async () => {
  const { model, asked } = calling(
    { toolName: "stock_look", input: {} },
    {
      toolName: "orders_place",
      input: { order: "PO-71", sku: "LAMP-01", amount: 5, cents: 44_500 },
    },
    { toolName: "ask_user", input: { question: "Is the ramp free?", choices: ["yes", "no"] } },
    { toolName: "carriers_book", input: { carrier: "Blue Van", order: "PO-71" } },
  );
  const { gate, warehouse, problems } = openDemo(model);
  await vi.waitFor(async () => {
    expect(await gate.interactions.list({ limit: 10 })).toHaveLength(3);
  }, 100_000);
  const open = await gate.interactions.list({ limit: 10 });
  expect(open.map(({ type, chain }) => [type, chain[0]]).toSorted()).toEqual([
    ["ask_user", "agent:counter"],
    ["confirm", "agent:buyer"],
    ["confirm", "agent:shipper"],
  ]);
  expect([warehouse.order("PO-71"), warehouse.shipments()]).toEqual([undefined, 0]);
  const order = open.find(({ pendingTool }) => pendingTool?.tool_name === "orders.place");
  const { id = "", hash = "" } = order ?? {};
  await gate.interactions.approve(id, { hash, by: "person:ada" });
  expect(warehouse.order("PO-71")).toMatchObject({ amount: 5, state: "open" });
  // It gets the outcome of its call, and each agent gets only its own tools.
  expect(asked.join("\n")).toContain("pending: ");
  expect(asked.join("\n")).toContain("done: CABLE-3M");
  expect(problems).toEqual([]);
});

test("a failing model is reported, retried with growing pauses, and does not stop the others", async () => {
  let tries = 0;
  const model = new MockLanguageModelV4({
    async doGenerate() {
      tries += 1;
      throw new Error("no credit left");
    },
  });
  const { gate, problems } = openDemo(model);
  await vi.waitFor(() => expect(problems.length).toBeGreaterThan(2), 60_000);
  expect(problems.map(String).join()).toContain("no credit left");
  await systemTimers.sleep(400);
  expect(tries).toBeLessThan(20);
  expect(await gate.interactions.list({ limit: 10 })).toEqual([]);
});

test("a model is named by package and id, and a missing part is reported with what to do", async () => {
  const folder = temporary();
  const refusal = async (name: string) =>
    String(await loadModel(name, folder).catch((error: unknown) => error));
  expect(await refusal("gpt")).toContain("PACKAGE:MODEL");
  expect(await refusal("@nobody/has-this:m")).toContain("npm install ai @nobody/has-this");
  expect(await refusal("commander:m")).toContain("exports no provider");
  expect(await refusal("broken-provider:m")).toContain("npm install ai broken-provider");
  install(folder, "broken-provider", "throw new Error('half of it is missing');");
  expect(await refusal("broken-provider:m")).toContain("half of it is missing");
});

function install(folder: string, name: string, code: string): void {
  const home = path.join(folder, "node_modules", name);
  mkdirSync(home, { recursive: true });
  const manifest = { name, version: "1.0.0", type: "module", main: "index.js" };
  writeFileSync(path.join(home, "package.json"), JSON.stringify(manifest));
  writeFileSync(path.join(home, "index.js"), code);
}

const PROVIDER = `
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
let asked = 0;
export const someProvider = Object.assign(() => {}, {
  languageModel: (modelId) => ({
    specificationVersion: "v4", provider: "some", modelId, supportedUrls: {},
    async doGenerate({ tools = [] }) {
      asked += 1;
      const adjust = tools.some(({ name }) => name === "stock_adjust") && asked % 2 === 1;
      if (!adjust) return { content: [{ type: "text", text: "ok" }], finishReason: { unified: "stop" }, usage, warnings: [] };
      const input = JSON.stringify({ sku: "LAMP-01", by: 1, why: modelId });
      return { content: [{ type: "tool-call", toolCallId: "c" + asked, toolName: "stock_adjust", input }], finishReason: { unified: "tool-calls" }, usage, warnings: [] };
    },
  }),
});
`;

test("sallyport demo --model runs with a provider that the user has installed, and refuses to start with a missing one", async () => {
  const folder = temporary();
  install(folder, "some-provider", PROVIDER);
  const bin = [
    "--conditions=sallyport-source",
    "--disable-warning=ExperimentalWarning",
    path.join(root, "src/cli/bin.ts"),
  ];
  const run = (model: string) => {
    const env = { ...process.env, SALLYPORT_MODEL: model };
    const child = spawn(process.execPath, [...bin, "demo", "--every", "200"], { cwd: folder, env });
    let said = "";
    child.stdout.on("data", (piece) => (said += piece));
    child.stderr.on("data", (piece) => (said += piece));
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    return { child, ended, said: () => said };
  };
  const wrong = run("other-provider:m-1");
  expect(await wrong.ended).toBe(3);
  expect(wrong.said()).toContain("npm install ai other-provider");
  const right = run("some-provider:m-1");
  await vi.waitFor(() => expect(right.said()).toContain("/signin?link="), 60_000);
  const { connect } = await import("../../src/cli/connect.ts");
  const client = connect({ data: path.join(folder, ".sallyport") });
  await vi.waitFor(async () => {
    const { items } = await client.interactions.list();
    const inputs = items.map(({ pendingTool }) => pendingTool?.args_json ?? "");
    expect(inputs.join()).toContain('"why":"m-1"');
  }, 100_000);
  right.child.kill("SIGINT");
  expect(await right.ended).toBe(0);
});
