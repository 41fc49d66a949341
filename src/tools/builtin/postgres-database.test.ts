import { expect, test } from "vitest";
import { isSallyportError } from "../../model/errors.ts";
import { type PostgresPool, postgresDatabase } from "./postgres-database.ts";

/** A pool with one connection on which one statement fails. */
function brokenAt(text: string, error: Error) {
  const seen: string[] = [];
  const pool: PostgresPool = {
    connect: async () => ({
      async query(query) {
        seen.push(query.text);
        if (query.text === text) throw error;
        return { rows: [], rowCount: 0 };
      },
      release: (destroy) => seen.push(`release ${destroy}`),
      on: () => {},
      removeListener: () => {},
    }),
  };
  const database = postgresDatabase({ name: "p", pool });
  const outcome = database
    .transaction(function* () {
      yield { text: "UPDATE", values: [] };
    }, "commit")
    .catch((caught: unknown) => caught);
  return { outcome, seen };
}

test("T8 a connection lost while committing leaves the outcome open and is not used again", async () => {
  const { outcome, seen } = brokenAt("COMMIT", new Error("gone"));
  expect(isSallyportError(await outcome, "outcome_unknown")).toBe(true);
  expect(seen.at(-1)).toBe("release true");
});

test("a refused statement is rolled back and the connection goes back to the pool", async () => {
  const { outcome, seen } = brokenAt("UPDATE", Object.assign(new Error("no"), { code: "23505" }));
  expect(await outcome).toMatchObject({ name: "Refusal", code: "unusable" });
  expect(seen.slice(-2)).toEqual(["ROLLBACK", "release false"]);
  expect(seen).not.toContain("COMMIT");
});
