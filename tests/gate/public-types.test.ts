// Types that users meet first, checked by tsc through the public entries.

import { createGate, type Gate, type TrailEntry } from "sallyport";
import type { FeedEvent } from "sallyport/client";
import { memoryStore } from "sallyport/store/memory";
import { defineTool } from "sallyport/tools";
import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";

interface Price {
  readonly sku: string;
  readonly cents: number;
}

const price = z.strictObject({ sku: z.string(), cents: z.int() });

function setPrice(execute: () => Price) {
  return defineTool({
    name: "prices.set",
    description: "Sets a price.",
    input: price,
    safety: { effect: "write", reversible: true },
    execute,
    undo({ output }) {
      expectTypeOf(output).toEqualTypeOf<Price>();
      // An interface has no index signature, and fits all the same.
      return { tool: "prices.set", input: output };
    },
  });
}

test("the data of an audit entry is an object, of the gate as of the feed", async () => {
  type Entry = Awaited<ReturnType<Gate["audit"]["entries"]>>[number];
  expectTypeOf<Entry>().toEqualTypeOf<TrailEntry>();
  expectTypeOf<Entry["data"]>().toEqualTypeOf<FeedEvent["data"]>();
  expectTypeOf<NonNullable<Entry["data"]>>().toBeObject();

  await using store = memoryStore();
  const gate = createGate({ store, tools: [setPrice(() => ({ sku: "hat", cents: 12 }))] });
  const session = gate.sessions.open({ agent: "agent:shop" });
  await session.call({ tool: "prices.set", input: { sku: "hat", cents: 9 } });
  const range = { after: 0, limit: 10 };
  const entries = await gate.audit.entries(range);
  const stored = await gate.audit.read(range);
  expect(entries.length).toBeGreaterThan(0);
  expect(entries).toEqual(
    stored.map((entry) => ({ ...entry, data: JSON.parse(entry.data ?? "null") })),
  );
});

test("an undo takes an output whose type is an interface, and rolls back with it", async () => {
  await using store = memoryStore();
  const tool = setPrice(() => ({ sku: "hat", cents: 12 }));
  const gate = createGate({ store, tools: [tool] });
  const session = gate.sessions.open({ agent: "agent:shop" });
  await session.call({ tool: "prices.set", input: { sku: "hat", cents: 9 } });
  const [question] = await gate.interactions.list();
  if (question === undefined) throw new Error("nobody was asked");
  await gate.interactions.approve(question.id, { hash: question.hash, by: "person:ada" });
  const [operation] = await gate.operations.listBySession(session.id, {});
  expect(operation?.undo).toMatchObject({ tool: "prices.set", input: { sku: "hat", cents: 12 } });
});

test("the output of a tool is undefined only where the tool may return nothing", () => {
  const sheet = { name: "a.b", description: "A tool.", input: price };
  const undo = () => ({ irreversible: true, manualGuide: "Ask." }) as const;
  defineTool({
    ...sheet,
    execute: () => "text",
    undo({ output }) {
      expectTypeOf(output).toEqualTypeOf<string>();
      return undo();
    },
  });
  defineTool({
    ...sheet,
    execute: () => ({ text: "done", data: { id: 1 } }),
    undo({ output }) {
      expectTypeOf(output).toEqualTypeOf<{ id: number }>();
      return undo();
    },
  });
  defineTool({
    ...sheet,
    execute: (): { text: string; data?: { id: number } } => ({ text: "done" }),
    undo({ output }) {
      // Without data the output is the text; it is never undefined.
      expectTypeOf(output).toEqualTypeOf<{ id: number } | string>();
      return undo();
    },
  });
  defineTool({
    ...sheet,
    execute: ({ input }) =>
      input.cents > 0
        ? { text: "done", data: { id: 1 } }
        : { text: "refused", isError: true as const },
    undo({ output }) {
      expectTypeOf(output).toEqualTypeOf<{ id: number }>();
      return undo();
    },
  });
  expect(undo().irreversible).toBe(true);
});
