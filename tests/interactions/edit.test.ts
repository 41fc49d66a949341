// Pains 10: a reviewer changes the input. What was asked, what was made of it and what was executed are three facts.

import { expect, test } from "vitest";
import { z } from "zod";
import type { Gate } from "../../src/gate/create-gate.ts";
import { decodeProposal } from "../../src/gate/show.ts";
import type { Decision } from "../../src/model/decision.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { JsonValue } from "../../src/util/json.ts";
import { AGENT, decisionIdOf, openGate, PERSON, request, rules } from "../support/port-world.ts";
import { sampleVerdictValidator } from "../support/validators.ts";
import { codeOf, HOUR, no, OTHER, onlyOpen, onStores, seen, set, yes } from "./inbox-world.ts";

/** These are about the edit itself: one person changes and approves. */
const EDITORS = { review: [{ requires: [{ name: "review", count: 1 }], editorMayApprove: true }] };

type Inputs = Readonly<Record<number, JsonValue>>;

async function edit(gate: Gate, id: string, inputs: Inputs, by = PERSON) {
  return gate.interactions.edit(id, { ...(await seen(gate, id, by)), inputs });
}

/** The id of the question that took the place of the edited one. */
async function edited(gate: Gate, id: string, inputs: Inputs, by = PERSON): Promise<string> {
  const answer = await edit(gate, id, inputs, by);
  if (!answer.edited) throw new Error(answer.text);
  return answer.interaction.id;
}

const inputsOf = (decision: Decision) => decodeProposal(decision).calls.map(({ input }) => input);

onStores("edit and approve", (open) => {
  test("checked and previewed again; original, edited and executed input are three facts [P10]", async () => {
    const { gate, effects, values } = await open(EDITORS);
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const asked = { ...set("a", 100), key: "k" };
    const id = decisionIdOf(await session.call(asked));
    const answer = await edit(gate, id, { 0: { key: "a", value: 10 } });
    if (!answer.edited) throw new Error(answer.text);
    const { interaction, preview } = answer;
    expect(JSON.stringify(preview.dryRun)).toContain("a: undefined -> 10");
    expect(interaction.pendingTool?.args_json).toBe('{"key":"a","value":10}');
    expect(interaction.metadata).toEqual({
      editedFrom: id,
      editedBy: PERSON,
      machine: expect.objectContaining({ approved: true, validator: "limits" }),
      askedBecause: ["No rule lets this agent do it alone."],
    });
    expect(await onlyOpen(gate)).toEqual(interaction);
    // Nothing runs before a person approves what is shown now.
    expect(effects).toEqual([]);
    expect(await codeOf(yes(gate, id))).toBe("already_answered");
    expect(await session.call(asked)).toMatchObject({ decisionId: interaction.id });

    await yes(gate, interaction.id);
    expect(effects).toEqual(['world.set {"key":"a","value":10}']);
    expect(values.get("a")).toBe(10);
    const [original, changed] = await gate.decisions.listBySession("s-1");
    expect(inputsOf(original!)).toEqual([{ key: "a", value: 100 }]);
    expect(original).toMatchObject({ id, state: "rejected_ml" });
    expect(inputsOf(changed!)).toEqual([{ key: "a", value: 10 }]);
    expect(changed).toMatchObject({ id: interaction.id, state: "executed" });
    const operations = await gate.operations.listBySession("s-1");
    expect(operations.map(({ input, decisionId }) => [input, decisionId])).toEqual([
      ['{"key":"a","value":10}', interaction.id],
    ]);
    expect(await gate.interactions.get(id)).toMatchObject({
      status: "resolved",
      outcome: "superseded",
      answeredBy: PERSON,
      supersededBy: interaction.id,
    });
    // The agent that asked gets the one result, under its own key.
    const result = await session.call(asked);
    expect(result).toMatchObject({
      answer: "done",
      edited: {
        by: [PERSON],
        original: { key: "a", value: 100 },
        input: { key: "a", value: 10 },
        fields: ["value"],
      },
    });
    expect(result.text).toBe(
      `set\nNote: ${PERSON} changed your call, and only the changed one counts: value (10 instead of 100).`,
    );
  });

  test("a secret that a reviewer typed reaches the tool, and the agent learns only which field changed", async () => {
    const seenByTool: string[] = [];
    const unlock = defineTool({
      name: "door.unlock",
      description: "Unlock a door.",
      input: z.object({ door: z.string(), pin: z.string().meta({ secret: true }) }),
      safety: { effect: "external", reversible: false },
      async execute({ input }) {
        seenByTool.push(input.pin);
        return { text: "unlocked" };
      },
    });
    const { gate } = await open({ ...EDITORS, tools: [unlock] });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const asked = { ...request("door.unlock", { door: "north", pin: "0000" }), key: "k" };
    const id = decisionIdOf(await session.call(asked));
    const changed = await edited(gate, id, { 0: { door: "south", pin: "7351" } });
    await yes(gate, changed);
    const result = await session.call(asked);
    expect(seenByTool).toEqual(["7351"]);
    expect(result).toMatchObject({ answer: "done", edited: { fields: ["door", "pin"] } });
    expect(result.text).toContain(
      'door ("south" instead of "north"), pin (another secret value instead of a secret value).',
    );
    expect(JSON.stringify(result)).not.toContain("7351");
  });

  test("an edit of an edit, and a no to it: the agent is led to the end of it [P10]", async () => {
    const { gate, effects, restart } = await open(EDITORS);
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const asked = { ...set("a", 1), key: "k" };
    const first = decisionIdOf(await session.call(asked));
    const second = await edited(gate, first, { 0: { key: "a", value: 2 } });
    const later = await restart();
    const third = await edited(later, second, { 0: { key: "a", value: 3 } }, OTHER);
    await no(later, third, OTHER, "still too much");
    const told = await later.sessions.open({ id: "s-1", agent: AGENT }).call(asked);
    expect(told.answer).toBe("denied");
    expect(told.text).toContain("still too much");
    expect(effects).toEqual([]);
  });

  test("one call of a bundle is changed, the others stay as they were asked [P10]", async () => {
    const { gate, effects } = await open(EDITORS);
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.stage([set("a", 1), set("b", 2), set("c", 3)]));
    const next = await edited(gate, id, { 1: { key: "b", value: 20 } });
    await yes(gate, next);
    expect(effects).toEqual([
      'world.set {"key":"a","value":1}',
      'world.set {"key":"b","value":20}',
      'world.set {"key":"c","value":3}',
    ]);
  });

  test("an edit that is invalid, denied or refused by a review leaves the question as it was [P10]", async () => {
    const policy = rules({
      id: "x",
      effect: "deny",
      tool: "world.set",
      input: [{ at: "$.value", equals: 13 }],
      reason: "thirteen is taken",
    });
    const business = {
      name: "limits",
      review({ raw }: { raw: Uint8Array }) {
        const approved = !new TextDecoder().decode(raw).includes('"value":99');
        const verdict = { approved, score: 1, severity: "", reason: "at most 98" } as const;
        return { ...verdict, validator: "limits", policyVersion: "1" };
      },
    };
    const validators = { tech: sampleVerdictValidator("schema"), business };
    const { gate, effects } = await open({ policy, validators });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(set("a", 1)));
    const before = await gate.interactions.get(id);
    const bad: readonly [Inputs, string][] = [
      [{ 0: { key: "a" } }, "value"],
      [{ 0: { key: "a", value: 1, force: true } }, "force"],
      [{ 0: "text" }, "world.set"],
      [{ 0: { key: "a", value: 13 } }, "thirteen is taken"],
      [{ 0: { key: "a", value: 99 } }, "at most 98"],
    ];
    for (const [inputs, why] of bad) {
      const answer = await edit(gate, id, inputs);
      expect(answer, why).toMatchObject({ edited: false });
      expect(answer.edited ? "" : answer.text).toContain(why);
    }
    for (const inputs of [{}, { 1: {} }, { "-1": {} }, { "00": {} }, { "0.0": {} }, { x: {} }]) {
      expect(await codeOf(edit(gate, id, inputs)), JSON.stringify(inputs)).toBe("invalid_input");
    }
    expect(await gate.interactions.get(id)).toEqual(before);
    expect(await onlyOpen(gate)).toEqual(before);
    await yes(gate, id);
    expect(effects).toEqual(['world.set {"key":"a","value":1}']);
  });

  test("an edit on another hash or after the deadline is none [P10]", async () => {
    const { gate, clock, effects } = await open({ approvalMs: HOUR });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(set("a", 1)));
    const inputs = { 0: { key: "a", value: 2 } };
    const wrong = { hash: "0".repeat(64), by: PERSON, inputs };
    expect(await codeOf(gate.interactions.edit(id, wrong))).toBe("approval_void");
    expect(await onlyOpen(gate)).toMatchObject({ id, version: 1 });
    clock.advance(HOUR + 1);
    expect(await codeOf(edit(gate, id, inputs))).toBe("approval_void");
    await gate.interactions.sweep();
    expect(await codeOf(edit(gate, id, inputs))).toMatch(/approval_void|already_answered/);
    expect(await gate.interactions.list()).toEqual([]);
    expect(effects).toEqual([]);
    const states = new Set((await gate.decisions.listBySession("s-1")).map(({ state }) => state));
    expect(states).toEqual(new Set(["rejected_ml"]));
  });

  for (const [name, answer] of [
    ["a yes", (gate: Gate, id: string) => yes(gate, id, OTHER)],
    ["a no", (gate: Gate, id: string) => no(gate, id, OTHER)],
    ["another edit", (gate: Gate, id: string) => edited(gate, id, { 0: { key: "a", value: 3 } })],
  ] as const) {
    test(`an edit at the same moment as ${name}: one of them counts, and never two questions [P10]`, async () => {
      const world = await open(EDITORS);
      const other = await world.restart();
      const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
      for (let round = 0; round < 8; round += 1) {
        const asked = { ...set("a", 1), key: `k-${round}` };
        const id = decisionIdOf(await session.call(asked));
        const before = world.effects.length;
        const both = await Promise.allSettled(
          round % 2 === 0
            ? [edited(world.gate, id, { 0: { key: "a", value: 2 } }), answer(other, id)]
            : [answer(other, id), edited(world.gate, id, { 0: { key: "a", value: 2 } })],
        );
        expect(both.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
        for (const one of both) {
          if (one.status !== "rejected") continue;
          expect(["approval_void", "already_answered"]).toContain(one.reason.code);
        }
        for (const { id: left } of await world.gate.interactions.list()) {
          await yes(world.gate, left);
        }
        expect(world.effects.length - before).toBeLessThanOrEqual(1);
        expect((await session.call(asked)).answer).toMatch(/^(done|denied)$/);
      }
      const states = (await world.gate.decisions.listBySession("s-1")).map(({ state }) => state);
      expect(states.filter((state) => state.startsWith("pending"))).toEqual([]);
    });
  }
});

test("what another reviewer was handed stays theirs after an edit [P10]", async () => {
  const { gate, effects } = openGate(EDITORS);
  const id = decisionIdOf(await gate.sessions.open({ agent: AGENT }).call(set("a", 1)));
  await gate.interactions.handOver(id, { by: PERSON, to: OTHER });
  expect(await codeOf(edit(gate, id, { 0: { key: "a", value: 2 } }))).toBe("not_allowed");
  const next = await edited(gate, id, { 0: { key: "a", value: 2 } }, OTHER);
  expect(await codeOf(yes(gate, next, PERSON))).toBe("not_allowed");
  await yes(gate, next, OTHER);
  expect(effects).toHaveLength(1);
});

test("only a confirmation can be edited [P10]", async () => {
  const { gate } = openGate(EDITORS);
  const asked = await gate.sessions.open({ agent: AGENT }).ask({ callId: "q", text: "Who?" });
  const code = await codeOf(edit(gate, asked.interactionId, { 0: {} }));
  expect(code).toBe("illegal_transition");
});
