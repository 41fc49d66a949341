import pg from "pg";
import { expect, inject, test } from "vitest";
import { freshDatabase } from "./postgres-database.ts";

test("fresh databases are empty, apart from each other, and go away with open connections", async () => {
  const [one, two] = await Promise.all([1, 2].map(() => freshDatabase(inject("pgUrl"))));
  const client = new pg.Client(one!.url).on("error", () => {}); // dropped under it, on purpose
  const other = new pg.Client(two!.url);
  await Promise.all([client.connect(), other.connect()]);

  await client.query("CREATE TABLE t (id int)");
  await other.query("CREATE TABLE t (name text)");

  await one!.drop();
  await expect(client.query("SELECT 1")).rejects.toThrow();
  await other.end();
  await two!.drop();
  await expect(new pg.Client(two!.url).connect()).rejects.toThrow("does not exist");
});
