import { expect, test } from "vitest";
import { DECISIONS } from "../model/decision.ts";
import { along, insertStep, NOW, requireStep, updateStep } from "./engine.ts";

const told = (type: string) => (step: number) => ({
  type,
  subject: { left: "id", step },
  session: "",
  actor: "a",
  data: {},
});

test("parts about one record become one write with the last values, and keep their events in order", () => {
  const parts = [
    { step: insertStep(DECISIONS, "d", { state: "pending_tech", asked: 0 }), event: told("1") },
    { step: insertStep(DECISIONS, "e", { state: "pending_tech" }), event: told("2") },
    {
      step: updateStep(DECISIONS, "d", { state: "pending_tech" }, { state: "pending_ml" }),
      event: told("3"),
    },
    { step: updateStep(DECISIONS, "d", { state: "pending_ml", asked: 0 }, { asked: 1 }) },
  ];
  const { steps, events } = along(parts);
  expect(steps).toEqual([
    insertStep(DECISIONS, "d", { state: "pending_ml", asked: 1 }),
    insertStep(DECISIONS, "e", { state: "pending_tech" }),
  ]);
  expect(events.map(({ type, subject }) => [type, subject])).toEqual([
    ["1", { left: "id", step: 0 }],
    ["2", { left: "id", step: 1 }],
    ["3", { left: "id", step: 0 }],
  ]);
});

test("later conditions on what the earlier part does not set are conditions of the write", () => {
  const first = updateStep(DECISIONS, "d", { state: "pending_ml" }, { state: "approved" });
  const later = { state: "approved", updated_at: { atLeast: NOW } };
  expect(along([{ step: first }, { step: requireStep(DECISIONS, "d", later) }]).steps).toEqual([
    updateStep(
      DECISIONS,
      "d",
      { state: "pending_ml", updated_at: { atLeast: NOW } },
      { state: "approved" },
    ),
  ]);
});

test("a later part that could not hold after the earlier one is a mistake, and nothing is made of it", () => {
  const first = { step: insertStep(DECISIONS, "d", { state: "pending_tech" }) };
  const wrong = [
    updateStep(DECISIONS, "d", { state: "approved" }, { state: "executed" }),
    updateStep(DECISIONS, "d", { asked: 1 }, {}),
    updateStep(DECISIONS, "d", {}, { asked: { plus: 1 } }),
    insertStep(DECISIONS, "d", {}),
  ];
  for (const step of wrong) expect(() => along([first, { step }])).toThrow();
  const twice = requireStep(DECISIONS, "d", { state: "approved" });
  expect(() => along([{ step: twice }, { step: twice }])).toThrow();
});
