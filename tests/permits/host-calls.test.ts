// Calls that their caller executes itself: a permit before, a report after, one operation each.

import { expect, test } from "vitest";
import { defineTool } from "../../src/tools/define-tool.ts";
import {
  codeOf,
  HAPPENED,
  OTHER,
  onlyOpen,
  onStores,
  seen,
  yes,
} from "../interactions/inbox-world.ts";
import { AGENT, rules } from "../support/port-world.ts";
import { deploy, deployTool, EXECUTOR, LEASE } from "./permit-world.ts";

const by = EXECUTOR;
const allowed = rules({ id: "deploy", effect: "allow", tool: "ops.deploy", reason: "agreed" });
const keyed = (requestKey: string, version = 1) => {
  const { callId, tool, input } = deploy(version, requestKey);
  return { callId, tool, input, requestKey };
};
const done = { by, outcome: "executed", output: "deployed" } as const;

onStores("calls of hosts", (open) => {
  test("a call that the rules allow gets its permit without a decision, once", async () => {
    const { gate } = await open({ tools: [deployTool()], policy: allowed });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const first = await session.permit(keyed("k-1"), { by });
    expect(first).toMatchObject({ answer: "permitted", permit: { decisionId: "", fence: 1 } });
    expect(await session.permit(keyed("k-1"), { by })).toMatchObject({ answer: "unknown" });
    expect(await gate.interactions.list()).toEqual([]);
    expect(await session.report("k-1", done)).toMatchObject({ answer: "done", text: "deployed" });
    expect(await session.permit(keyed("k-1"), { by })).toMatchObject({ answer: "done" });
    expect(await session.permit(keyed("k-2"), { by })).toMatchObject({ answer: "permitted" });
  });

  test("of many identical requests at the same time one gets the permit", async () => {
    const { gate } = await open({ tools: [deployTool()], policy: allowed });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const all = await Promise.all(
      Array.from({ length: 10 }, () => session.permit(keyed("k-1"), { by })),
    );
    expect(all.filter(({ answer }) => answer === "permitted")).toHaveLength(1);
  });

  test("a call that a person approved gets its permit, and a retry under another key finds it", async () => {
    const { gate } = await open({ tools: [deployTool()] });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const waits = await session.permit(keyed("k-1"), { by });
    expect(waits).toMatchObject({ answer: "pending" });
    await yes(gate, (await onlyOpen(gate)).id);
    const retry = await session.permit(keyed("k-2"), { by });
    expect(retry).toMatchObject({ answer: "permitted", permit: { fence: 1 } });
    expect(await session.permit(keyed("k-1"), { by })).toMatchObject({ answer: "pending" });
    expect(await session.report("k-2", done)).toMatchObject({ answer: "done" });
    expect(await session.permit(keyed("k-1"), { by })).toMatchObject({ answer: "done" });
  });

  test("without a report people are asked, and their answer settles it", async () => {
    const { gate, clock } = await open({ tools: [deployTool()], policy: allowed, leaseMs: LEASE });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    await session.permit(keyed("k-1"), { by, leaseMs: LEASE });
    clock.advance(LEASE + 1);
    await gate.recover();
    const lost = await onlyOpen(gate);
    expect(lost.type).toBe("connection_lost");
    await gate.interactions.settle(lost.id, {
      ...(await seen(gate, lost.id)),
      ...HAPPENED,
      by: OTHER,
    });
    expect(await session.resultOf("k-1")).toMatchObject({ answer: "done" });
  });

  test("the tool prepares before the permit is given and makes the undo from the reported proof", async () => {
    const kept: unknown[] = [];
    let full = false;
    const tool = defineTool({
      name: "ops.deploy",
      description: "Deploys a service.",
      input: { type: "object" },
      safety: { effect: "external" },
      execution: "external",
      prepare({ input, idempotencyKey }) {
        if (full) throw new Error("the disk is full");
        kept.push([input, idempotencyKey]);
      },
      undo: ({ output }) => ({
        irreversible: true,
        manualGuide: `Look at ${JSON.stringify(output)}`,
      }),
    });
    const { gate } = await open({ tools: [tool], policy: allowed });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const given = await session.permit(keyed("k-1"), { by });
    const key = given.answer === "permitted" ? given.permit.idempotencyKey : "";
    expect(kept).toEqual([[{ service: "shop", version: 1 }, key]]);
    const answer = await session.report("k-1", { ...done, proof: { run: 7 } });
    expect(answer).toMatchObject({ answer: "done", undo: { manualGuide: 'Look at {"run":7}' } });
    full = true;
    expect(await codeOf(session.permit(keyed("k-2"), { by }))).toBe("not_allowed");
    full = false;
    expect(await session.permit(keyed("k-2"), { by })).toMatchObject({ answer: "permitted" });
  });

  test("what nobody permitted cannot be reported, nor by another executor", async () => {
    const { gate } = await open({ tools: [deployTool()], policy: allowed });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    expect(await codeOf(session.report("k-1", done))).toBe("permit_lost");
    await session.permit(keyed("k-1"), { by });
    expect(await codeOf(session.report("k-1", { ...done, by: "exec:two" }))).toBe("not_allowed");
  });
});
