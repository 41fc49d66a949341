import { expect, test } from "vitest";
import { type Role, type Scope, WRITE_PERMISSIONS } from "../model/delegation.ts";
import { MOST_DEPTH } from "./delegate.ts";
import type { DelegationPlan } from "./plan.ts";
import { type Bounds, coversTool, narrowScope, type ScopeRequest } from "./scope.ts";

const plan = (more: Partial<DelegationPlan> = {}): DelegationPlan => ({
  planId: "plan-1-0001",
  role: "code" as Role,
  task: "t",
  capsule: "c",
  writePermission: "plan-approved-files",
  promiseId: "p",
  traceId: "t",
  ...more,
});
const parent: Scope = {
  planId: "plan-0-0000",
  role: "code",
  writePermission: "plan-approved-files",
  planFiles: ["/w/a.ts", "/w/b.ts", "sql:shop/orders"],
  documents: [],
  artefact: "",
  tools: ["files.*", "sql.query"],
  calls: 10,
  expiresAt: "2026-11-15T07:00:00.000Z",
  depth: 2,
};
const docs: Scope = {
  ...parent,
  role: "doc",
  writePermission: "documents-and-artefact",
  planFiles: [],
  documents: ["/w/docs"],
  artefact: "/w/spec.md",
};
const narrow = (asked: ScopeRequest, bounds: Bounds = { scope: parent }, of = plan()) =>
  narrowScope(of, asked, bounds);
const refusals = (...given: Parameters<typeof narrow>) =>
  narrow(...given).errors.map(({ message }) => message);

test("what is not asked for is inherited, or less", () => {
  expect(narrow({})).toEqual({
    scope: {
      planId: "plan-1-0001",
      role: "code",
      writePermission: "plan-approved-files",
      planFiles: parent.planFiles,
      documents: [],
      artefact: "",
      tools: parent.tools,
      calls: 10,
      depth: 0,
    },
    ttlMs: undefined,
    errors: [],
  });
});

test("I-63 a child may not delegate further unless it was told so, and never deeper than its parent", () => {
  expect(narrow({}).scope.depth).toBe(0);
  expect(refusals({}, { scope: { ...parent, depth: 0 } })).toHaveLength(1);
  expect(refusals({ depth: 1 })).toEqual([]);
  expect(refusals({ depth: 2 })).toHaveLength(1);
  expect(refusals({ depth: -1 })).toHaveLength(1);
  expect(refusals({ depth: 0.5 })).toHaveLength(1);
  const root = { run: { phase: "execute", planFiles: [], documents: "", artefacts: {} } } as const;
  expect(refusals({ tools: ["*"], depth: MOST_DEPTH - 1 }, root)).toEqual([]);
  expect(refusals({ tools: ["*"], depth: MOST_DEPTH }, root)).toHaveLength(1);
});

test("T33 asking for more than the parent has is refused, one finding for each", () => {
  expect(refusals({ planFiles: ["/w/a.ts"] })).toEqual([]);
  expect(refusals({ planFiles: ["/w/a.ts", "/w/c.ts", "/w"] })).toHaveLength(2);
  expect(refusals({ tools: ["files.read", "files.*", "sql.query"] })).toEqual([]);
  expect(refusals({ tools: ["*"] })).toHaveLength(1);
  expect(refusals({ tools: ["sql.*", "filesystem.x", "files"] })).toHaveLength(3);
  expect(refusals({ tools: [] })).toHaveLength(1);
  expect(refusals({ calls: 10 })).toEqual([]);
  for (const calls of [11, 0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(refusals({ calls }), String(calls)).toHaveLength(1);
  }
  for (const ttlMs of [0, -5, Number.NaN, 2.5]) expect(refusals({ ttlMs })).toHaveLength(1);
});

test("T33 a write permission is handed on as it is, or not at all", () => {
  for (const own of WRITE_PERMISSIONS) {
    for (const writePermission of WRITE_PERMISSIONS) {
      const scope = { ...parent, writePermission: own };
      const { errors } = narrow(
        { planFiles: [], documents: [] },
        { scope },
        plan({ writePermission }),
      );
      const isFine = writePermission === "none" || writePermission === own;
      expect(errors.length === 0, `${own} to ${writePermission}`).toBe(isFine);
    }
  }
});

test("documents stay inside the parent's by whole names, the artefact is the parent's", () => {
  const doc = plan({ role: "doc", writePermission: "documents-and-artefact" });
  const asked = (more: ScopeRequest) => refusals(more, { scope: docs }, doc);
  expect(asked({})).toEqual([]);
  expect(asked({ documents: ["/w/docs/sub", "/w/docs"] })).toEqual([]);
  expect(asked({ documents: ["/w/docs-old", "/w", "docs", "/w/docs/../x"] })).toHaveLength(4);
  expect(asked({ artefact: "/w/spec.md" })).toEqual([]);
  expect(asked({ artefact: "/w/other.md" })).toHaveLength(1);
});

test("a right that the permission is not about is not handed on", () => {
  const asked = { planFiles: ["/w/a.ts"], documents: ["/x"], artefact: "/y" };
  const { scope, errors } = narrow(asked, {}, plan({ role: "research", writePermission: "none" }));
  expect(scope).toMatchObject({ planFiles: [], documents: [], artefact: "" });
  expect(errors).toMatchObject([{ policy: "delegation.scope" }]);
});

test("at the root the approved plan of the run is the limit, and without a run no file is approved", () => {
  const run = {
    phase: "execute",
    planFiles: ["/w/a.ts"],
    documents: "/w/docs",
    artefacts: { execute: "/w/log.md" },
  } as const;
  const tools = ["*"];
  expect(narrow({ tools }, { run }).scope.planFiles).toEqual(["/w/a.ts"]);
  expect(refusals({ tools, planFiles: ["/w/b.ts"] }, { run })).toHaveLength(1);
  expect(refusals({ tools, planFiles: ["/w/a.ts"] }, {})).toHaveLength(1);
  expect(refusals({}, { run })).toHaveLength(1);
  const doc = plan({ role: "doc", writePermission: "documents-and-artefact" });
  const found = narrow({ tools }, { run }, doc).scope;
  expect(found).toMatchObject({ documents: ["/w/docs"], artefact: "/w/log.md" });
  expect(refusals({ tools, documents: ["/etc"] }, { run }, doc)).toHaveLength(1);
});

test("a pattern covers its family, and nothing that only begins alike", () => {
  expect(coversTool(["files.*"], "files.read")).toBe(true);
  expect(coversTool(["files.*"], "files.a.b")).toBe(true);
  for (const tool of ["files", "filesx.read", "*", "sql.query"]) {
    expect(coversTool(["files.*"], tool), tool).toBe(false);
  }
  expect(coversTool(["*"], "anything")).toBe(true);
  expect(coversTool([], "files.read")).toBe(false);
});
