import { readFileSync } from "node:fs";
import { expect, inject, test } from "vitest";
import { dumpPostgres, dumpSqlite, SCHEMA_FILES } from "../../scripts/schema-dump.ts";
import { freshDatabase } from "../support/postgres-database.ts";

const HINT = "run `node scripts/schema-dump.ts` and look at the difference before you commit it";

test("src/store/sqlite/schema.sql is what the migrations lead to", () => {
  expect(dumpSqlite(), HINT).toBe(readFileSync(SCHEMA_FILES.sqlite, "utf8"));
});

test("src/store/postgres/schema.sql is what the migrations lead to", async () => {
  const database = await freshDatabase(inject("pgUrl"));
  try {
    expect(await dumpPostgres(database.url), HINT).toBe(
      readFileSync(SCHEMA_FILES.postgres, "utf8"),
    );
  } finally {
    await database.drop();
  }
});
