import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import {
  DEFAULT_PERMISSION,
  DELEGATION_MOVES,
  isReadOnlyRole,
  READ_ONLY_ROLES,
  ROLES,
  WRITE_PERMISSIONS,
} from "../../src/model/delegation.ts";
import { GRANTORS } from "../../src/model/finding.ts";
import { PHASES } from "../../src/model/run.ts";

test("S3-01 the roles are research, doc, code, review, verify", () => {
  expect([...ROLES]).toEqual(["research", "doc", "code", "review", "verify"]);
});

test("S3-02 the write permissions are none, documents and artefact, plan-approved files, evidence through the tool", () => {
  expect([...WRITE_PERMISSIONS]).toEqual([
    "none",
    "documents-and-artefact",
    "plan-approved-files",
    "evidence-through-tool",
  ]);
});

test("S3-03 each role has its permission", () => {
  expect(DEFAULT_PERMISSION).toEqual({
    research: "none",
    doc: "documents-and-artefact",
    code: "plan-approved-files",
    review: "none",
    verify: "evidence-through-tool",
  });
});

test("S3-04 S3-05 research, review and verify are read-only, although verify may leave evidence", () => {
  expect([...READ_ONLY_ROLES]).toEqual(["research", "review", "verify"]);
  expect(ROLES.filter(isReadOnlyRole)).toEqual(["research", "review", "verify"]);
  expect(DEFAULT_PERMISSION.verify).not.toBe("none");
});

// The databases have tables of their own of the same words; whatever disagrees could be stored here and not there.
test.each(["sqlite", "postgres"])("S3-06 the tables agree with those of the %s store", (engine) => {
  const file = path.join(import.meta.dirname, `../../src/store/${engine}/schema.sql`);
  const schema = readFileSync(file, "utf8");
  const table = (name: string) => {
    const from = schema.search(new RegExp(`CREATE TABLE (?:sallyport\\.)?${name} \\(`));
    expect(from, name).toBeGreaterThan(-1);
    return schema.slice(from, schema.indexOf(";\n", from));
  };
  const words = (name: string, column: string) => {
    const check = table(name)
      .split("\n")
      .find((line) => line.includes("CHECK") && line.includes(column));
    return [...String(check).matchAll(/'([^']+)'/g)].map(([, word]) => word);
  };
  expect(words("delegations", "role")).toEqual([...ROLES]);
  expect(words("delegations", "write_permission")).toEqual([...WRITE_PERMISSIONS]);
  expect(words("delegations", "state")).toEqual(Object.keys(DELEGATION_MOVES));
  expect(words("runs", "phase")).toEqual([...PHASES]);
  expect(words("grants", "grantor")).toEqual([...GRANTORS]);
});
