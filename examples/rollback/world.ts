import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import Sqlite from "better-sqlite3";

/** A folder with three files and a database with one row, removed at the end. */
export function makeWorld() {
  const root = mkdtempSync(path.join(tmpdir(), "sallyport-rollback-"));
  const folder = path.join(root, "site");
  mkdirSync(folder);
  const texts: Record<string, string> = {
    "prices.txt": "shirt 20\nhat 12\n",
    "notes.txt": "spring sale: no\n",
    "imprint.txt": "Example Ltd.\n",
  };
  for (const [name, text] of Object.entries(texts)) writeFileSync(path.join(folder, name), text);
  const database = new Sqlite(path.join(root, "stock.db"));
  database.exec(
    "CREATE TABLE stock (sku TEXT PRIMARY KEY, version INTEGER NOT NULL, amount INTEGER NOT NULL)",
  );
  database.exec("INSERT INTO stock VALUES ('shirt', 1, 40)");
  process.on("exit", () => {
    database.close();
    rmSync(root, { recursive: true, force: true });
  });
  return {
    root,
    folder,
    database,
    /** The current state, read from disk. */
    read() {
      const files = Object.keys(texts).map((name) => [
        name,
        readFileSync(path.join(folder, name), "utf8"),
      ]);
      const amount = database.prepare("SELECT amount FROM stock WHERE sku = 'shirt'").pluck().get();
      return JSON.stringify({ ...Object.fromEntries(files), amount });
    },
  };
}
