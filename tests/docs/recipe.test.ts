// The recipe of CONTRIBUTING for a new field, kept as a patch: it still fits, and the field goes from the store to the wire.

import { execFileSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readPage } from "./pages.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const PATCH = "docs/contributing/add-a-field.patch";
const MOST_FILES = 4;
/** Written by scripts/schema-dump.ts. */
const GENERATED = ["src/store/postgres/schema.sql", "src/store/sqlite/schema.sql"];

/** A decision goes through the patched store and the patched wire, and the schema is what the patched script would write. */
const PROGRAM = `
import { readFileSync } from "node:fs";
import { decision, wireDecision } from "./src/http/routes/decisions.ts";
import { newDraft } from "./src/model/decision.ts";
import { sqliteStore } from "./src/store/sqlite/index.ts";
import { dumpSqlite } from "./scripts/schema-dump.ts";
const store = sqliteStore({ file: "store.db" });
const { decisions } = store.tenant("acme");
const diff = { sourceTool: "t", raw: new Uint8Array(12), metadata: {} };
const { id } = await decisions.stage(newDraft("s-1", diff, new Date().toISOString()));
const stored = await decisions.get(id);
const wire = decision.parse(wireDecision(stored));
await store.close();
const isDumped = dumpSqlite() === readFileSync("src/store/sqlite/schema.sql", "utf8");
console.log(JSON.stringify({ stored: stored.rawBytes, wire: wire.rawBytes, isDumped }));
`;

test("the recipe for a new field takes at most four files by hand, fits the code, and the field arrives on the wire", () => {
  const patch = readFileSync(path.join(ROOT, PATCH), "utf8");
  const files = [...patch.matchAll(/^\+\+\+ b\/(.+)$/gm)].map(([, file = ""]) => file);
  const byHand = files.filter((file) => !GENERATED.includes(file));
  expect(byHand.length).toBeGreaterThan(0);
  expect(byHand.length).toBeLessThanOrEqual(MOST_FILES);
  expect(readPage("CONTRIBUTING.md").text).toContain(PATCH);

  const copy = mkdtempSync(path.join(tmpdir(), "sallyport-recipe-"));
  onTestFinished(() => rmSync(copy, { recursive: true, force: true }));
  for (const part of ["src", "scripts/schema-dump.ts", "tests/support", "package.json", ...files]) {
    mkdirSync(path.dirname(path.join(copy, part)), { recursive: true });
    cpSync(path.join(ROOT, part), path.join(copy, part), { recursive: true });
  }
  symlinkSync(path.join(ROOT, "node_modules"), path.join(copy, "node_modules"));
  const hint = `renew ${PATCH}: follow the recipe, and keep the difference`;
  const run = (file: string, args: readonly string[]) =>
    execFileSync(file, args, { cwd: copy, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  expect(() => run("git", ["apply", "-C1", path.join(ROOT, PATCH)]), hint).not.toThrow();
  writeFileSync(path.join(copy, "program.ts"), PROGRAM);
  const flags = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
  const said = run(process.execPath, [...flags, "program.ts"]);
  expect(JSON.parse(said)).toEqual({ stored: 12, wire: 12, isDumped: true });
});
