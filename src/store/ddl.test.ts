import { describe, expect, expectTypeOf, test } from "vitest";
import { SallyportError } from "../model/errors.ts";
import {
  bytes,
  data,
  either,
  flag,
  instant,
  integer,
  key,
  NOW,
  names,
  oneOf,
  place,
  prose,
  type RecordOf,
  record,
  text,
} from "../model/record.ts";
import { ddlOf, POSTGRES, SQLITE } from "./ddl.ts";

const NOTES = record(
  "notes",
  {
    id: key<`n-${string}`>(),
    givenBy: text(),
    status: oneOf(["open", "closed"]),
    hidden: either({ no: "shown", yes: "hidden" }).as("visibility"),
    roles: names(["reader", "writer"]),
    body: prose(),
    size: { width: integer(0), raw: bytes() },
    title: prose().packedIn("facts"),
    tags: data<readonly string[]>({ check: Array.isArray }).packedIn("facts"),
    answer: data<{ readonly yes: boolean }>().optional(),
    comment: prose().optional(""),
    seen: flag(),
    dueAt: instant().optional(),
    createdAt: instant(),
    ord: place(),
  },
  {
    indexes: [
      { name: "by_status", on: ["status", { down: "width" }, "ord"] },
      { name: "by_due", on: ["due_at"], whenSet: true },
      { name: "by_giver", on: ["given_by"], unique: true, only: "postgres" },
    ],
    checks: ["width < 10"],
    neverReusesOrd: true,
    fillfactor: 60,
    check: ({ dueAt, createdAt }) =>
      dueAt !== undefined && dueAt < createdAt ? "due_at" : undefined,
  },
);

const GIVEN = {
  givenBy: "ada",
  status: "open",
  hidden: false,
  roles: ["reader", "writer"],
  body: "a\u0000b",
  size: { width: 3, raw: Uint8Array.of(1, 2) },
  title: "t",
  tags: ["x"],
  seen: true,
  createdAt: "2026-11-15T06:00:00.000Z",
} as const;

const ROW = {
  given_by: "ada",
  status: "open",
  visibility: "shown",
  roles: "reader writer",
  body: '"a\\u0000b"',
  width: 3,
  raw: Uint8Array.of(1, 2),
  facts: '{"title":"t","tags":["x"]}',
  answer: null,
  comment: null,
  seen: 1,
  due_at: null,
  created_at: 1_794_722_400_000,
};

describe("a record that was declared", () => {
  test("has the type of its fields", () => {
    type Note = RecordOf<typeof NOTES>;
    expectTypeOf<Note["id"]>().toEqualTypeOf<`n-${string}`>();
    expectTypeOf<Note["status"]>().toEqualTypeOf<"open" | "closed">();
    expectTypeOf<Note["dueAt"]>().toEqualTypeOf<string | undefined>();
    expectTypeOf<Note["comment"]>().toEqualTypeOf<string>();
    expectTypeOf<Note["size"]["width"]>().toEqualTypeOf<number>();
  });

  test("is a table whose rows hold what was given, in the order of its columns", () => {
    const row = NOTES.row(GIVEN);
    expect(row).toEqual(ROW);
    expect(Object.keys(row)).toEqual(Object.keys(NOTES.columns));
    expect(NOTES.columns).toMatchObject({ given_by: "text", width: "int", raw: "bytes" });
    expect(NOTES.indexed).toEqual(["status", "given_by"]);
  });

  test("is read as it was given, with what is absent", () => {
    expect(NOTES.read({ ...ROW, id: "n-1", ord: 7 })).toEqual({
      ...GIVEN,
      id: "n-1",
      answer: undefined,
      comment: "",
      dueAt: undefined,
      ord: 7,
    });
    const some = NOTES.only("title", "size")({ ...ROW, status: "odd" });
    expect(some).toEqual({ title: "t", size: GIVEN.size });
    expect(NOTES.without("size")({ ...ROW, id: "n-1", ord: 7 })).not.toHaveProperty("size");
  });

  test("writes single columns, and null clears what is optional", () => {
    expect(NOTES.cells({ dueAt: NOW, comment: null })).toEqual({ comment: null, due_at: NOW });
    // @ts-expect-error a record is written whole
    expect(() => NOTES.row({ givenBy: "ada" })).toThrow("status is not given");
  });

  test("does not take more than a mebibyte, and nothing that is not data", () => {
    const large = { body: "x".repeat(1024 * 1024) };
    expect(() => NOTES.cells(large)).toThrow(
      expect.objectContaining({ code: "payload_too_large" }),
    );
    const facts = { title: "x".repeat(1024 * 1024), tags: [] };
    expect(() => NOTES.cells(facts)).toThrow(
      expect.objectContaining({ code: "payload_too_large" }),
    );
  });

  test.each([
    ["given_by", 7],
    ["status", "odd"],
    ["visibility", "odd"],
    ["roles", "reader odd"],
    ["body", "not JSON"],
    ["body", "7"],
    ["width", "3"],
    ["width", 0.5],
    ["raw", "text"],
    ["facts", "[]"],
    ["facts", '{"title":"t","tags":"x"}'],
    ["facts", null],
    ["answer", "{"],
    ["due_at", Number.NaN],
    ["due_at", 5],
    ["created_at", null],
  ])("is damaged when %s holds %j", (column, cell) => {
    const error = (() => {
      try {
        return NOTES.read({ ...ROW, id: "n-1", ord: 7, [column]: cell });
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(SallyportError);
    expect(error).toMatchObject({ code: "damaged_record", details: { id: "n-1", column } });
  });
});

describe("the schema of a record", () => {
  test("in SQLite", () => {
    expect(ddlOf(NOTES, SQLITE)).toBe(`CREATE TABLE notes (
  ord INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  given_by TEXT NOT NULL,
  status TEXT NOT NULL,
  visibility TEXT NOT NULL,
  roles TEXT NOT NULL,
  body TEXT NOT NULL,
  width INTEGER NOT NULL,
  raw BLOB NOT NULL,
  facts TEXT NOT NULL,
  answer TEXT,
  comment TEXT,
  seen INTEGER NOT NULL,
  due_at INTEGER,
  created_at INTEGER NOT NULL,
  CHECK (status IN ('open','closed')),
  CHECK (visibility IN ('shown','hidden')),
  CHECK (width >= 0),
  CHECK (width < 10)
) STRICT;
CREATE UNIQUE INDEX notes_key ON notes (tenant, id);
CREATE INDEX notes_by_status ON notes (tenant, status, width DESC, ord);
CREATE INDEX notes_by_due ON notes (tenant, due_at) WHERE due_at IS NOT NULL;`);
  });

  test("in PostgreSQL", () => {
    const sql = ddlOf(NOTES, POSTGRES);
    expect(sql).toContain(
      "CREATE TABLE $schema.notes (\n  ord bigint GENERATED ALWAYS AS IDENTITY,",
    );
    expect(sql).toContain("raw bytea NOT NULL");
    expect(sql).toContain("PRIMARY KEY (id, tenant)");
    expect(sql).toContain("WITH (fillfactor = 60)");
    expect(sql).toContain("(tenant, status, width DESC NULLS LAST, ord)");
    expect(sql).toContain(
      "CREATE UNIQUE INDEX notes_by_giver ON $schema.notes (tenant, given_by);",
    );
  });
});
