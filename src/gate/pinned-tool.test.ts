import { expect, test } from "vitest";
import { defineTool } from "../tools/define-tool.ts";
import { createRegistry, definitionHash, definitionOf } from "../tools/registry.ts";
import type { Tool } from "../tools/tool.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { pinnedTool } from "./show.ts";

const PROPERTIES: JsonObject = { cents: { type: "integer" } };

function version(number: string, more: Partial<Tool> = {}, properties = PROPERTIES): Tool {
  const tool = defineTool({
    name: "bank.pay",
    description: `Pays, version ${number}.`,
    input: { type: "object", properties, required: ["cents"] },
    safety: { effect: "external" },
    version: number,
    execute: () => "paid",
  });
  return { ...tool, ...more };
}

const ONE = version("1");

/** What becomes of a call that was shown with version 1, where `now` is what is there. */
function pin(now: Tool | undefined, input: JsonValue = { cents: 5 }, shown?: JsonObject | null) {
  const registry = createRegistry();
  if (now !== undefined) registry.register(now);
  const call = {
    tool: "bank.pay",
    definition: definitionHash(ONE),
    input,
    workingDirectory: "",
    callId: "c",
    turn: 0,
  };
  const kept = shown === null ? undefined : (shown ?? definitionOf(ONE));
  return pinnedTool(call, kept, registry);
}

test("the same definition goes on, with or without what was kept of it", () => {
  expect(pin(ONE)).toMatchObject({ fits: true, definition: definitionHash(ONE) });
  expect(pin(version("1"))).toMatchObject({ fits: true });
  expect(pin(version("1"), { cents: 5 }, null)).toMatchObject({ fits: true });
});

test("another version goes on when it says so, only words and schema differ, and the input reads alike", () => {
  const next = version("2", { continues: ["0", "1"] }, { ...PROPERTIES, note: { type: "string" } });
  expect(pin(next)).toMatchObject({ fits: true, definition: definitionHash(next) });
});

const REFUSED: Readonly<Record<string, Tool>> = {
  "nothing declared": version("2"),
  "another version declared": version("2", { continues: ["0"] }),
  "an empty list": version("2", { continues: [] }),
  "the same version with other words": version("1", { description: () => "Pays twice." }),
  "another effect": version("2", { continues: ["1"], metadata: { effect: "read" } }),
  "other capabilities": version("2", { continues: ["1"], capability: { confidenceMin: 5 } }),
  "a probe more": version("2", { continues: ["1"], probe: async () => ({ happened: false }) }),
  "keyed now": version("2", { continues: ["1"], idempotency: "keyed" }),
  "an input that does not fit": version("2", { continues: ["1"] }, { cents: { type: "string" } }),
};

for (const [what, now] of Object.entries(REFUSED)) {
  test(`everything else goes back with the difference: ${what}`, () => {
    const pinned = pin(now);
    expect(pinned.fits).toBe(false);
    expect(pinned.fits ? "" : pinned.why).toMatch(
      /^The tool "bank.pay" was changed: .* was .*, is /,
    );
  });
}

test("a schema that reads the same input otherwise does not go on: what runs would not be what was shown", () => {
  const filling = version("2", {
    continues: ["1"],
    parseInput: () => ({ ok: true, value: { cents: 5, urgent: true } }),
  });
  expect(pin(filling).fits).toBe(false);
});

test("a tool that is gone, or whose old definition is not known, does not go on", () => {
  expect(pin(undefined)).toEqual({ fits: false, why: 'The tool "bank.pay" is gone.' });
  const next = version("2", { continues: ["1"] });
  const pinned = pin(next, { cents: 5 }, null);
  expect(pinned).toMatchObject({ fits: false });
  expect(pinned.fits ? "" : pinned.why).toContain("not known");
  // A kept definition that is the present one says nothing about the one that was agreed to.
  expect(pin(next, { cents: 5 }, definitionOf(next)).fits).toBe(false);
});
