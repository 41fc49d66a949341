// An exact list is approved in one call, with a veto per item; a failure of one item affects only that item.

import { expect, test } from "vitest";
import type { Gate } from "../../src/gate/create-gate.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { AGENT, decisionIdOf, PERSON, request } from "../support/port-world.ts";
import { HOUR, no, OTHER, onStores, set } from "./inbox-world.ts";

async function listed(gate: Gate, ids: readonly string[]) {
  const questions = await Promise.all(ids.map((id) => gate.interactions.get(id)));
  return questions.map(({ id, hash }) => ({ id, hash }));
}

async function asked(gate: Gate, count: number): Promise<readonly string[]> {
  const session = gate.sessions.open({ id: "s-1", agent: AGENT });
  const ids: string[] = [];
  for (let i = 0; i < count; i += 1) {
    ids.push(decisionIdOf(await session.call(set(`k${i}`, i, `c-${i}`))));
  }
  return ids;
}

onStores("a batch of answers", (open) => {
  test("approveAll carries out exactly the list, and rejects what was vetoed", async () => {
    const { gate, effects } = await open();
    const ids = await asked(gate, 5);
    const list = await listed(gate, ids.slice(0, 4));
    const veto = [ids[1] ?? "", ids[4] ?? ""];
    const done = await gate.interactions.approveAll(list, {
      by: PERSON,
      veto,
      reason: "as agreed",
    });
    expect(done.map(({ id, outcome }) => [id, outcome])).toEqual([
      [ids[0], "approved"],
      [ids[1], "rejected"],
      [ids[2], "approved"],
      [ids[3], "approved"],
    ]);
    expect(effects).toHaveLength(3);
    expect(effects.join()).not.toContain('"k1"');
    // What is not on the list is neither approved nor vetoed.
    expect(await gate.interactions.list()).toMatchObject([{ id: ids[4], status: "open" }]);
    expect(await gate.interactions.get(ids[1] ?? "")).toMatchObject({
      outcome: "rejected",
      reason: "as agreed",
    });
  });

  test("an item that cannot be approved does not stop the others, and says why", async () => {
    const { gate, effects, clock } = await open({ approvalMs: HOUR });
    const [late = ""] = await asked(gate, 1);
    clock.advance(HOUR + 1);
    const [, answered = "", wrong = "", good = "", last = ""] = [late, ...(await asked(gate, 4))];
    await no(gate, answered, OTHER);
    const list = [
      ...(await listed(gate, [late, answered])),
      { id: wrong, hash: "0".repeat(64) },
      { id: "never-asked", hash: "0".repeat(64) },
      ...(await listed(gate, [good, good, last])),
    ];
    const done = await gate.interactions.approveAll(list, { by: PERSON });
    const codes = done.map((item) => (item.outcome === "refused" ? item.code : item.outcome));
    expect(codes).toEqual([
      "approval_void",
      "already_answered",
      "approval_void",
      "not_found",
      "approved",
      "already_answered",
      "approved",
    ]);
    expect(done[1]).toMatchObject({ text: expect.stringContaining(OTHER) });
    expect(effects).toHaveLength(2);
  });

  test("an item whose tool breaks, in whatever way, does not stop the others", async () => {
    const broken = { dryRun: false, stateVersion: false };
    const made = (name: string, breaks: "dryRun" | "stateVersion" | "execute") =>
      defineTool({
        name,
        description: "Breaks.",
        input: { type: "object" },
        safety: { effect: "external" },
        dryRun() {
          if (breaks === "dryRun" && broken.dryRun) throw new Error("no dry run today");
          return "would break";
        },
        stateVersion() {
          if (breaks === "stateVersion" && broken.stateVersion) throw new Error("cannot look");
          return "1";
        },
        execute() {
          if (breaks === "execute") throw new Error("broken");
          return "did it";
        },
      });
    const { gate, effects } = await open({
      review: [{ requires: [{ name: "review", count: 1 }], mayBatch: true }],
    });
    for (const breaks of ["dryRun", "stateVersion", "execute"] as const) {
      gate.tools.register(made(`broken.${breaks}`, breaks));
    }
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const ids: string[] = [];
    for (const name of ["broken.dryRun", "broken.stateVersion", "broken.execute"]) {
      ids.push(decisionIdOf(await session.call(request(name, {}))));
    }
    ids.push(decisionIdOf(await session.call(set("a", 1))));
    Object.assign(broken, { dryRun: true, stateVersion: true });
    const done = await gate.interactions.approveAll(await listed(gate, ids), { by: PERSON });
    expect(done).toHaveLength(4);
    expect(done[2]).toMatchObject({
      approved: { answers: [{ answer: "unknown", text: expect.stringContaining("broken") }] },
    });
    expect(done[3]).toMatchObject({ approved: { answers: [{ answer: "done" }] } });
    expect(effects).toEqual(['world.set {"key":"a","value":1}']);
    // None is left approved unattended: the outcome of what threw is a question to a person.
    const lost = (await gate.interactions.list({})).filter(
      ({ type }) => type === "connection_lost",
    );
    expect(lost).toHaveLength(1);
    const states = await Promise.all(ids.map(async (id) => (await gate.decisions.get(id)).state));
    expect(states.map((state) => state === "approved")).toEqual([false, false, true, false]);
  });
});
