// Many tools: a session is offered a few and finds the others, alike on every surface.

import { expect, test } from "vitest";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { openHttp } from "../http/http-world.ts";
import { AGENT, openGate, request, rules } from "../support/port-world.ts";

const ran: string[] = [];
function tools(): Tool[] {
  const input = { type: "object" } as const;
  const plain = Array.from({ length: 20 }, (_, at) =>
    defineTool({
      name: `report.n${at}`,
      description: `Writes report ${at}.`,
      input,
      execute() {
        ran.push(`report.n${at}`);
        return "written";
      },
    }),
  );
  const safe = defineTool({
    name: "report.safe",
    description: "Writes the report that is tried first.",
    input,
    dryRun: () => "would write",
    execute: () => "written",
  });
  return [...plain, safe];
}
const policy = rules({ id: "a", effect: "allow", tool: ["report.*", "tool_search"], reason: "r" });

test("above the threshold only the always-loaded tools and the search are offered; others say search first [S2-68 S2-69 S2-71 S2-76 I-50 I-51]", async () => {
  const deferredTools = { alwaysLoad: ["report.n3"] };
  const world = openGate({ tools: tools(), policy, deferredTools });
  const { gate } = world;
  const session = gate.sessions.open({ id: "s", agent: AGENT });
  const names = async () => (await session.tools()).map(({ name }) => name).toSorted();
  expect(await names()).toEqual(["report.n3", "tool_search"]);
  ran.length = 0;
  const early = await session.call(request("report.n7", {}, "1"));
  expect(early).toMatchObject({ answer: "failed", text: expect.stringContaining("tool_search") });
  expect(ran).toEqual([]);
  const found = await session.call(request("tool_search", { query: "report 7" }, "2"));
  expect(found).toMatchObject({ answer: "done", text: expect.stringContaining("report.n7") });
  expect(await session.call(request("report.n7", {}, "3"))).toMatchObject({ answer: "done" });
  expect(await names()).toContain("report.n7");
  const other = gate.sessions.open({ id: "t", agent: AGENT });
  expect(await other.call(request("report.n7", {}, "4"))).toMatchObject({ answer: "failed" });
  // Another process, or this one after a restart, knows what the session has loaded from its searches.
  const later = world.again({ tools: tools() }).sessions.open({ id: "s", agent: AGENT });
  expect(await later.call(request("report.n7", {}, "5"))).toMatchObject({ answer: "done" });
});

test("a host may let the first call load a tool, and a higher threshold defers none [S2-67 I-51]", async () => {
  const loads = openGate({ tools: tools(), policy, deferredTools: { whenCalled: "activate" } });
  const session = loads.gate.sessions.open({ agent: AGENT });
  expect(await session.call(request("report.n7", {}))).toMatchObject({ answer: "done" });
  const all = openGate({ tools: tools(), policy, deferredTools: { threshold: 50 } });
  expect(await all.gate.offered()).toHaveLength(22);
  const without = openGate({ tools: tools(), policy });
  expect(await without.gate.offered()).toHaveLength(21);
});

test("safer tools come first, and a tool that can be neither tried nor undone carries a warning, also in its answer and to the reviewer [S2-11 S2-12]", async () => {
  const { gate } = openGate({ tools: tools(), policy });
  const offered = await gate.offered();
  expect(offered[0]).toMatchObject({ name: "report.safe", safetyLevel: 2 });
  expect(offered[0]?.warning).toBeUndefined();
  expect(offered[1]?.warning).toContain("neither a dry run nor an undo");
  const session = gate.sessions.open({ agent: AGENT });
  expect(await session.call(request("report.n1", {}, "1"))).toMatchObject({
    answer: "done",
    warnings: [expect.stringContaining("report.n1")],
  });
  expect(await session.call(request("report.safe", {}, "2"))).not.toHaveProperty("warnings");
  const asking = openGate({ tools: tools() });
  const asked = await asking.gate.sessions.open({ agent: AGENT }).call(request("report.n1", {}));
  if (asked.answer !== "pending") throw new Error("not asked");
  const shown = await asking.gate.interactions.shown(asked.interactionId);
  expect(shown?.preview.warnings).toEqual([expect.stringContaining("report.n1")]);
});

test("over HTTP an agent is shown the list of its session, and people all tools [S2-69 S2-06 S2-34]", async () => {
  const deferredTools = { alwaysLoad: ["report.n3"] };
  const keen = defineTool({
    name: "report.keen",
    description: ({ workingDirectory }) => `Writes in "${workingDirectory}".`,
    input: { type: "object" },
    safety: { effect: "external", confidenceMin: 70 },
    execute: () => "written",
  });
  const port = { policy, deferredTools, confidenceKey: "_sure" };
  const world = await openHttp({ port: { ...port, tools: [...tools(), keen] } });
  const agent = await world.client("acme", "agent");
  const { id } = await agent.sessions.open();
  const names = async () =>
    (await agent.tools.list({ sessionId: id })).items.map(({ name }) => name);
  expect((await names()).toSorted()).toEqual(["report.n3", "tool_search"]);
  const search = { id, callId: "1", tool: "tool_search", input: { query: "report.keen" } };
  expect(await agent.sessions.call(search)).toMatchObject({ answer: "done" });
  expect(await names()).toContain("report.keen");
  const { items } = await agent.tools.list({ sessionId: id });
  const shown = items.find(({ name }) => name === "report.keen");
  expect(shown?.description, "the gate's own name for the key").toContain('"_sure"');
  expect(shown?.inputSchema["required"]).toEqual(["_sure"]);
  const reviewer = await world.client("acme", "reviewer");
  expect((await reviewer.tools.list()).items).toHaveLength(23);
  await expect(agent.tools.list({ sessionId: "other" })).rejects.toMatchObject({
    code: "not_found",
  });
});
