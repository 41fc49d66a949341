import { expect, test } from "vitest";
import type { Answer, StepStatement, WriteOrder } from "./orders.ts";
import { Packer, packAnswers, Unpacker, unpackAnswers } from "./packing.ts";

const statement = (op: StepStatement["op"]): StepStatement => ({
  op,
  sql: `${op} …`,
  look: "SELECT …",
  mayBeAbsent: false,
});
const [insert, update, take] = [statement("insert"), statement("update"), statement("take")];
const sealed = { data: "{}", salt: "aa", dataHash: "bb" };
const event = {
  type: "t",
  subject: "s",
  session: "",
  actor: "a",
  each: false,
  parts: [],
  facts: [],
};

const orders: readonly WriteOrder[] = [
  {
    tenant: "one",
    steps: [
      {
        statement: insert,
        id: "i",
        values: ["one", "i", null, 5, Uint8Array.of(1, 2)],
        times: [3],
      },
      { statement: update, id: "u", values: [], times: [] },
    ],
    events: [{ ...event, sealed }],
  },
  {
    tenant: "two",
    steps: [{ statement: take, id: "", values: ["two", 3], times: [1] }],
    events: [
      {
        ...event,
        subject: { step: 0, cell: 2 },
        session: { step: 1, cell: 0 },
        each: true,
        parts: ["{", "}"],
        facts: [{ step: 0, cell: 4 }],
        sealed: undefined,
      },
    ],
  },
];

test("orders arrive as they were sent, and a statement is sent once", () => {
  const [packer, unpacker] = [new Packer(), new Unpacker()];
  const first = structuredClone(packer.pack(orders));
  expect(first.statements).toEqual([insert, update, take]);
  expect(unpacker.unpack(first)).toEqual(orders);
  const again = structuredClone(packer.pack(orders));
  expect(again.statements).toEqual([]);
  expect(unpacker.unpack(again)).toEqual(orders);
});

test("answers arrive as they were given, with the rows of inserts completed from their orders", () => {
  const written: readonly Answer[] = [
    {
      at: 100,
      seq: 7,
      rows: [
        [41, "one", "i", null, 105, Uint8Array.of(1, 2)],
        [9, "x"],
      ],
    },
    { at: 100, seq: 9, rows: [[1, "a"], [], [3, "c"]] },
  ];
  const packed = structuredClone(packAnswers(orders, written));
  expect(unpackAnswers(orders, packed)).toEqual([
    {
      at: 100,
      seq: 7,
      rows: [
        [41, "one", "i", null, 105, Uint8Array.of(1, 2)],
        [9, "x"],
      ],
    },
    written[1],
  ]);
  const refused: readonly Answer[] = [
    { step: 1, current: undefined },
    { step: 0, current: [2, "two"] },
  ];
  expect(unpackAnswers(orders, packAnswers(orders, refused))).toEqual(refused);
});
