import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import {
  AGENT_ROLES,
  DEFAULT_PERMISSION,
  DELEGATION_MOVES,
  isReadOnlyRole,
  PHASES,
  READ_ONLY_ROLES,
  WRITE_PERMISSIONS,
} from "../../src/model/delegation.ts";
import { GRANTORS } from "../../src/model/finding.ts";

test("the roles are research, doc, code, review, verify [S3-01]", () => {
  expect([...AGENT_ROLES]).toEqual(["research", "doc", "code", "review", "verify"]);
});

test("the write permissions are none, documents and artefact, plan-approved files, evidence through the tool [S3-02]", () => {
  expect([...WRITE_PERMISSIONS]).toEqual([
    "none",
    "docs-and-current-phase-artifact",
    "plan-approved-files-only",
    "evidence-through-kd_verify_result",
  ]);
});

test("each role has a default permission [S3-03]", () => {
  expect(DEFAULT_PERMISSION).toEqual({
    research: "none",
    doc: "docs-and-current-phase-artifact",
    code: "plan-approved-files-only",
    review: "none",
    verify: "evidence-through-kd_verify_result",
  });
});

test("research, review and verify are read-only, although verify may record evidence [S3-04 S3-05]", () => {
  expect([...READ_ONLY_ROLES]).toEqual(["research", "review", "verify"]);
  expect(AGENT_ROLES.filter(isReadOnlyRole)).toEqual(["research", "review", "verify"]);
  expect(DEFAULT_PERMISSION.verify).not.toBe("none");
});

// The databases have tables of their own of the same words; whatever disagrees could be stored here and not there.
test.each(["sqlite", "postgres"])(
  "the tables agree with those of the %s store [S3-06]",
  (engine) => {
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
    expect(words("delegations", "role")).toEqual([...AGENT_ROLES]);
    expect(words("delegations", "write_permission")).toEqual([...WRITE_PERMISSIONS]);
    expect(words("delegations", "state")).toEqual(Object.keys(DELEGATION_MOVES));
    expect(words("runs", "phase")).toEqual([...PHASES]);
    expect(words("grants", "grantor")).toEqual([...GRANTORS]);
  },
);
