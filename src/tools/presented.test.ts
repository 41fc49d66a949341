import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "./define-tool.ts";
import { presentedBy } from "./presented.ts";
import type { Presented } from "./tool.ts";

function toolWith(present: (asked: { input: { cents: number } }) => Presented) {
  return defineTool({
    name: "billing.refund",
    description: "Pays back.",
    input: z.strictObject({ cents: z.int() }),
    present,
    execute: () => "done",
  });
}

test("present: title, fields and amount become plain JSON, from the checked input [W10]", () => {
  const tool = toolWith(({ input: { cents } }) => ({
    title: `Refund ${cents / 100} EUR`,
    fields: [{ label: "Amount", value: `${cents / 100} EUR`, format: "money" }],
    amount: { value: cents / 100, unit: "EUR" },
  }));
  expect(presentedBy(tool, { cents: 12_900 })).toEqual({
    title: "Refund 129 EUR",
    fields: [{ label: "Amount", value: "129 EUR", format: "money" }],
    amount: { value: 129, unit: "EUR" },
  });
  const plain = defineTool({
    name: "a.b",
    description: "c",
    input: z.object({}),
    execute: () => "",
  });
  expect(presentedBy(plain, {})).toBeUndefined();
});

test.each<[string, () => unknown, RegExp]>([
  [
    "throws",
    () => {
      throw new Error("no such customer");
    },
    /no such customer/,
  ],
  ["has no title", () => ({}), /title must be a text/],
  ["has a title of two lines", () => ({ title: "a\nApprove" }), /one line/],
  ["is too long", () => ({ title: "x".repeat(201) }), /longer than 200/],
  ["has too many fields", () => ({ title: "a", fields: Array(21).fill({}) }), /at most 20/],
  [
    "has an unknown format",
    () => ({ title: "a", fields: [{ label: "b", value: "c", format: "html" }] }),
    /format must be/,
  ],
  [
    "has an endless amount",
    () => ({ title: "a", amount: { value: 1 / 0, unit: "EUR" } }),
    /finite/,
  ],
])("present: one that %s is named as the problem and not used [W10]", (_, present, problem) => {
  const shown = presentedBy(toolWith(present as () => Presented), { cents: 1 });
  expect(Object.keys(shown ?? {})).toEqual(["problem"]);
  expect(shown?.["problem"]).toMatch(problem);
});
