import { MockLanguageModelV4 } from "ai/test";

import { describe, expect, test } from "vitest";
import { mechanicalSummary } from "../../src/flow/nodes.ts";
import { createRuntimeState, newWork } from "../../src/flow/runtime-state.ts";
import {
  acceptedPlan,
  CONVERSATION,
  callOf,
  type FlowWorld,
  flowWorld,
  NEXT,
  PLAN,
  planOf,
} from "./flow-world.ts";
import { scriptedModel } from "./scripted-model.ts";

type StreamPart =
  Awaited<ReturnType<MockLanguageModelV4["doStream"]>>["stream"] extends ReadableStream<infer Part>
    ? Part
    : never;

const SAID = [PLAN, planOf("look", "write"), callOf("x"), NEXT, NEXT];
const MECHANICAL = [
  "Goal: Do it.",
  "2 of 2 steps are done.",
  "- [done] look (looked at it)",
  "- [done] write (looked at it)",
].join("\n");

function modelWith(summary: () => readonly string[]) {
  const rest = SAID.map((answer) => JSON.stringify(answer));
  return scriptedModel({ answer: () => rest.shift() ?? "", summary });
}

/** All pieces since the last restart. */
function piecesOf({ events }: FlowWorld): string[] {
  const from = events.findLastIndex(({ type }) => type === "restart");
  return events.slice(from + 1).flatMap((event) => (event.type === "piece" ? [event.text] : []));
}

describe("the summary of the model [S1-45 I-77]", () => {
  test("is sent in small pieces as it arrives", async () => {
    const world = flowWorld();
    const long = `All ${"very ".repeat(30)}well. 👩‍🚀${"x".repeat(47)}👩‍🚀`;
    const outcome = await acceptedPlan(world, world.start(modelWith(() => ["Done. ", long])));
    expect(outcome).toEqual({ outcome: "delivered", summary: `Done. ${long}` });
    const pieces = piecesOf(world);
    expect(pieces.join("")).toBe(`Done. ${long}`);
    expect(pieces.length).toBeGreaterThan(4);
    expect(pieces.every((piece) => piece.length <= 48 && piece.isWellFormed())).toBe(true);
    expect(world.events.at(-1)).toMatchObject({ type: "delivered", isMechanical: false });
    expect(world.problems).toEqual([]);
  });

  test.each<[string, () => readonly string[]]>([
    ["an empty answer", () => ["", "  "]],
    [
      "an error",
      () => {
        throw new Error("no model today");
      },
    ],
  ])("is built mechanically after %s", async (_, summary) => {
    const world = flowWorld();
    const outcome = await acceptedPlan(world, world.start(modelWith(summary)));
    expect(outcome).toEqual({ outcome: "delivered", summary: MECHANICAL });
    expect(piecesOf(world).join("")).toBe(MECHANICAL);
    expect(world.events.at(-1)).toMatchObject({ type: "delivered", isMechanical: true });
  });

  test("starts again when the model fails in the middle", async () => {
    const world = flowWorld();
    const model = modelWith(() => []);
    const chunks: StreamPart[] = [
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "1", delta: "All is" },
      { type: "text-delta", id: "1", delta: " well." },
    ];
    const broken = new MockLanguageModelV4({
      doGenerate: model.doGenerate,
      doStream: async () => ({
        stream: new ReadableStream({
          pull(controller) {
            const next = chunks.shift();
            if (next === undefined) controller.error(new Error("cut off"));
            else controller.enqueue(next);
          },
        }),
      }),
    });
    const outcome = await acceptedPlan(world, world.start(broken));
    expect(outcome).toEqual({ outcome: "delivered", summary: MECHANICAL });
    expect(world.events.some(({ type }) => type === "restart")).toBe(true);
    expect(piecesOf(world).join("")).toBe(MECHANICAL);
    expect(world.problems).toMatchObject([{ what: "summary" }]);
  });

  test("needs no model", async () => {
    const world = flowWorld();
    const model = modelWith(() => ["never"]);
    const cut = world.start(model, {
      onEvent: (event) => {
        if (event.type === "piece") throw new Error("the line is dead");
      },
    });
    await expect(acceptedPlan(world, cut)).rejects.toThrow("the line is dead");
    const outcome = await world.start(undefined).resume(CONVERSATION);
    expect(outcome).toEqual({ outcome: "delivered", summary: MECHANICAL });
  });
});

describe("the mechanical summary [I-77]", () => {
  const plan_steps = [
    { text: "look", done_when: "seen" },
    { text: "write", done_when: "written" },
  ];

  test("marks steps done or open, and says when the rounds are exhausted", () => {
    const { common } = createRuntimeState({ plan_steps, round_limit: 4, rounds_used: 4 });
    const work = newWork();
    work.entries.push({ kind: "said", text: "Do it." }, { kind: "step", step: 0, check: "saw it" });
    expect(mechanicalSummary(common, work)).toBe(
      [
        "Goal: Do it.",
        "1 of 2 steps are done.",
        "- [done] look (saw it)",
        "- [open] write",
        "It ended early: all 4 rounds are used up.",
      ].join("\n"),
    );
  });

  test("does not mention rounds when all steps are done, and says when there is no plan", () => {
    const { common } = createRuntimeState({ plan_steps, round_limit: 4, rounds_used: 4 });
    const work = newWork();
    for (const step of [0, 1]) work.entries.push({ kind: "step", step, check: "seen" });
    expect(mechanicalSummary(common, work)).not.toContain("rounds");
    const none = { ...newWork(), problem: "It ended early: nothing could be read." };
    const text = mechanicalSummary(createRuntimeState().common, none);
    expect(text).toBe("No plan was made.\nIt ended early: nothing could be read.");
  });
});
