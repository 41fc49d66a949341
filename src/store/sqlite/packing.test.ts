import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Answer, EventOrder, Order, StepOrder } from "./orders.ts";
import { packAnswers, packOrders, unpackAnswers, unpackOrders } from "./packing.ts";

const text = fc.string();
const cell = fc.oneof(text, fc.integer(), fc.double(), fc.uint8Array(), fc.constant(null));
const cells = fc.array(cell, { maxLength: 8 });
const place = fc.record({ step: fc.nat(3), cell: fc.nat(30) });
const step: fc.Arbitrary<StepOrder> = fc.record({
  shape: fc.nat(),
  id: text,
  values: cells,
  times: fc.array(fc.nat(30), { maxLength: 3 }),
});
const event: fc.Arbitrary<EventOrder> = fc.record({
  type: text,
  subject: fc.oneof(text, place),
  session: fc.oneof(text, place),
  actor: text,
  parts: fc.array(text, { maxLength: 3 }),
  facts: fc.array(place, { maxLength: 3 }),
  sealed: fc.option(fc.record({ data: text, salt: text, dataHash: text }), { nil: undefined }),
  each: fc.boolean(),
});
const order: fc.Arbitrary<Order> = fc.record({
  tenant: text,
  steps: fc.array(step, { maxLength: 4 }),
  events: fc.array(event, { maxLength: 3 }),
});
const answer: fc.Arbitrary<Answer> = fc.oneof(
  fc.record({ at: fc.nat(), seq: fc.nat(), rows: fc.array(cells, { maxLength: 3 }) }),
  fc.record({ step: fc.nat(9), current: fc.option(cells, { nil: undefined }) }),
);

describe("what goes from thread to thread", () => {
  test("orders arrive as they were sent", () => {
    fc.assert(
      fc.property(fc.array(order, { maxLength: 4 }), (orders) => {
        expect(unpackOrders(structuredClone(packOrders(orders)))).toEqual(orders);
      }),
    );
  });

  test("answers arrive as they were sent", () => {
    fc.assert(
      fc.property(fc.array(answer, { maxLength: 4 }), (answers) => {
        expect(unpackAnswers(structuredClone(packAnswers(answers)))).toEqual(answers);
      }),
    );
  });
});
