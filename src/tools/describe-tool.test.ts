import { expect, test } from "vitest";
import { defineTool } from "./define-tool.ts";
import { describeTool, inputSchemaForModel } from "./registry.ts";

const sheet = {
  name: "t",
  description: "Does it.",
  input: {
    type: "object",
    properties: { a: { type: "string" } },
    required: ["a"],
    additionalProperties: false,
  },
  execute: () => "",
};
const plain = defineTool(sheet);
const careful = defineTool({ ...sheet, safety: { effect: "write", confidenceMin: 80 } });

test("with a minimum the description ends with a hint that names key and minimum [S2-34]", () => {
  expect(describeTool(careful)).toBe(
    'Does it.\n\nSafety: add "_confidence" to the input, a number from 0 to 100 that says how sure you are that this ' +
      "call is right. Below 80, or without it, the call is refused.",
  );
});

test("without a minimum the description is unchanged [S2-34]", () => {
  expect(describeTool(plain)).toBe("Does it.");
  expect(
    describeTool(defineTool({ ...sheet, safety: { effect: "write", confidenceMin: 0 } })),
  ).toBe("Does it.");
});

test("the reserved key can be another one [S2-34]", () => {
  const text = describeTool(careful, { confidenceKey: "_flyto_confidence" });
  expect(text).toContain('"_flyto_confidence"');
  expect(text).not.toContain('"_confidence"');
});

test("the description is asked for anew, with the context [S2-06]", () => {
  let now = "first";
  const tool = defineTool({
    ...sheet,
    description: ({ workingDirectory }) => `${now} in ${workingDirectory}`,
  });
  const context = { workingDirectory: "/w" };
  expect(describeTool(tool, { context })).toBe("first in /w");
  now = "second";
  expect(describeTool(tool, { context })).toBe("second in /w");
});

test("a description that throws does not break the prompt, and the hint stays [S2-06]", () => {
  const tool = defineTool({
    ...sheet,
    safety: { effect: "write", confidenceMin: 10 },
    description: () => {
      throw new Error("boom");
    },
  });
  expect(describeTool(tool)).toMatch(/^The description of "t" cannot be shown.*Below 10/s);
});

test("the model's schema has room for the key, the tool's own stays clean [S2-34]", () => {
  expect(inputSchemaForModel(careful)).toMatchObject({
    properties: {
      a: { type: "string" },
      _confidence: { type: "number", minimum: 0, maximum: 100 },
    },
    required: ["a", "_confidence"],
  });
  expect(careful.inputSchema).toEqual(sheet.input);
  expect(careful.parseInput({ a: "x", _confidence: 90 }).ok).toBe(false);
  expect(inputSchemaForModel(plain)).toBe(plain.inputSchema);
});

test("a tool with a property of the reserved name is refused instead of losing it [S2-34]", () => {
  expect(() => inputSchemaForModel(careful, { confidenceKey: "a" })).toThrow("is reserved");
});
